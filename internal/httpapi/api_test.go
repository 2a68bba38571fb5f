package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
)

// bundle is mneme in one process, on free ports and in its own directory.
type bundle struct {
	t *testing.T
	*instance.Instance
}

func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return &bundle{t, i}
}

// problem is an RFC 9457 document.
type problem struct {
	Status int
	Title  string
	Detail string
	Errors []struct{ Message, Location string }
}

// do sends a request, requires the status, and decodes the answer.
func (b *bundle) do(status int, method, path string, header map[string]string, body []byte, answer any) {
	b.t.Helper()
	response, raw := b.send(method, path, header, body)
	require.Equal(b.t, status, response.StatusCode, "%s", raw)
	if status >= 400 {
		require.Equal(b.t, "application/problem+json", response.Header.Get("Content-Type"))
	}
	if text, ok := answer.(*string); ok {
		*text = string(raw)
	} else if answer != nil {
		require.NoError(b.t, json.Unmarshal(raw, answer), "%s", raw)
	}
}

// send sends a request and reads the answer.
func (b *bundle) send(method, path string, header map[string]string, body []byte) (*http.Response, []byte) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.HTTPURL()+path, bytes.NewReader(body))
	require.NoError(b.t, err)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK && request.URL.Path == "/v1/stream" { // it has no end: read what comes at once
		defer time.AfterFunc(streamGlance, func() { _ = response.Body.Close() }).Stop()
		raw, _ := io.ReadAll(response.Body)
		return response, raw
	}
	raw, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response, raw
}

// streamGlance is how long tests of all routes read a stream.
const streamGlance = 100 * time.Millisecond

func (b *bundle) get(path string, answer any) {
	b.t.Helper()
	b.do(http.StatusOK, http.MethodGet, path, nil, nil, answer)
}

func (b *bundle) refused(status int, method, path string, header map[string]string, body string) problem {
	b.t.Helper()
	var p problem
	b.do(status, method, path, header, []byte(body), &p)
	return p
}

func structured(conversation, id string, payload events.Payload) []byte {
	e, err := events.New(conversation, "test", id, payload)
	if err != nil {
		panic(err)
	}
	body, err := events.EncodeStructured(e)
	if err != nil {
		panic(err)
	}
	return body
}

func message(id, role, text string) *events.MessageCreated {
	return &events.MessageCreated{MessageID: id, Role: role, Content: text}
}

type publishAnswer struct {
	Events []struct {
		ID        string
		Seq       uint64
		Duplicate bool
	}
	Seq uint64
}

func (b *bundle) publish(body []byte) (answer publishAnswer) {
	b.t.Helper()
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeEvent}, body, &answer)
	return answer
}

func TestAtLeastWaitsUntilAnEventIsReadable(t *testing.T) {
	b := setup(t)
	for i := range 50 {
		text := fmt.Sprintf("message number %d", i)
		seq := b.publish(structured("c1", fmt.Sprint(i), message(fmt.Sprint("m", i), "user", text))).Seq
		var markdown string
		b.get(fmt.Sprintf("/v1/conversations/c1/context?format=markdown&at_least=%d", seq), &markdown)
		require.Contains(t, markdown, text)
	}
}

func TestBinaryModeMakesTheSameEvent(t *testing.T) {
	b := setup(t)
	header := map[string]string{
		"ce-specversion": "1.0", "ce-id": "1", "ce-source": "test", "ce-type": events.TypeMessageCreated, "ce-subject": "c1",
		"Content-Type": "application/json",
	}
	var answer publishAnswer
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", header, []byte(`{"message_id":"m1","role":"user","content":"hello"}`), &answer)
	require.False(t, answer.Events[0].Duplicate)
	again := b.publish([]byte(`{"specversion":"1.0","id":"1","source":"test","type":"dev.mneme.message.created.v1","subject":"c1","data":{"message_id":"m1","role":"user","content":"hello"}}`))
	require.True(t, again.Events[0].Duplicate)
	require.Equal(t, answer.Seq, again.Seq)
}

func TestAForeignEventIsStoredAndSkipped(t *testing.T) {
	b := setup(t)
	var foreign struct{ Seq uint64 }
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeEvent},
		[]byte(`{"specversion":"1.0","type":"com.example.build.finished","source":"ci","id":"1","subject":"c","data":{"ok":true}}`), &foreign)
	b.do(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/v1/conversations/c?at_least=%d", foreign.Seq), nil, nil, nil)
	b.publish(structured("c", "2", message("m1", "user", "hello")))
	var body string
	b.get(fmt.Sprintf("/v1/conversations/c/export?at_least=%d", b.head()), &body)
	require.Contains(t, body, "com.example.build.finished")
	var failed struct{ Failed []any }
	b.get("/v1/failed", &failed)
	require.Empty(t, failed.Failed)
}

func TestABatchWithBadEventsPublishesNothingAndListsThem(t *testing.T) {
	b := setup(t)
	good := string(structured("c1", "1", message("m1", "user", "x")))
	batch := "[" + good + `,{"specversion":"1.0"},` + strings.Replace(good, `"user"`, `"robot"`, 1) + "]"
	p := b.refused(422, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeBatch}, batch)
	require.Len(t, p.Errors, 2)
	require.Equal(t, "body[1].id", p.Errors[0].Location)
	require.Equal(t, "body[2].data.role", p.Errors[1].Location)
	state, err := b.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Zero(t, state.Head)
}

func TestProblemsNameTheBadField(t *testing.T) {
	b := setup(t)
	b.publish(structured("c1", "1", message("m1", "user", "x")))
	event := map[string]string{"Content-Type": events.ContentTypeEvent}
	for name, c := range map[string]struct {
		status       int
		method, path string
		header       map[string]string
		body         string
		location     string
	}{
		"a past to come":         {422, "GET", "/v1/conversations/c1?as_of=99", nil, "", "query.as_of"},
		"malformed JSON":         {400, "POST", "/v1/events", event, "{", ""},
		"no event at all":        {415, "POST", "/v1/events", map[string]string{"Content-Type": "text/plain"}, "hello", "header.content-type"},
		"a missing attribute":    {422, "POST", "/v1/events", event, `{"specversion":"1.0","type":"t","source":"s"}`, "body.id"},
		"an unknown type":        {422, "POST", "/v1/events", event, `{"specversion":"1.0","type":"t","source":"s","id":"1","subject":"c","data":{}}`, "body.type"},
		"a later version":        {422, "POST", "/v1/events", event, strings.Replace(string(structured("c", "1", message("m", "user", ""))), "created.v1", "created.v2", 1), "body.type"},
		"no conversation":        {422, "POST", "/v1/events", event, `{"specversion":"1.0","type":"dev.mneme.conversation.deleted.v1","source":"s","id":"1","data":{}}`, "body.subject"},
		"not UTF-8":              {400, "POST", "/v1/events", event, "{\"specversion\":\"\xff\"}", ""},
		"a body over the limit":  {413, "POST", "/v1/events", event, `{"data":"` + strings.Repeat("x", events.MaxEventBytes) + `"}`, ""},
		"a conversation unknown": {404, "GET", "/v1/conversations/c2", nil, "", ""},
		"a context unknown":      {404, "GET", "/v1/conversations/c2/context", nil, "", ""},
		"another tenant's":       {404, "GET", "/v1/conversations/c1?tenant=other", nil, "", ""},
		"a budget of nothing":    {422, "GET", "/v1/conversations/c1/context?max_chars=-1", nil, "", "query.max_chars"},
		"a strange strategy":     {422, "GET", "/v1/conversations/c1/context?strategy=magic", nil, "", "query.strategy"},
		"beyond the end":         {422, "GET", "/v1/conversations/c1/context?at_least=99", nil, "", "query.at_least"},
		"a wrong cursor":         {422, "GET", "/v1/conversations?cursor=xyz", nil, "", "query.cursor"},
		"a limit of −1":          {422, "GET", "/v1/conversations?limit=-1", nil, "", "query.limit"},
		"an unknown parameter":   {422, "GET", "/v1/conversations?colour=red", nil, "", "query.colour"},
	} {
		t.Run(name, func(t *testing.T) {
			sub := &bundle{t, b.Instance}
			p := sub.refused(c.status, c.method, c.path, c.header, c.body)
			require.NotEmpty(t, p.Detail)
			if c.location != "" {
				require.NotEmpty(t, p.Errors, "%+v", p)
				require.True(t, strings.HasSuffix(p.Errors[0].Location, c.location), "%+v", p)
			}
		})
	}
}

func TestABodyOfAnUnknownTypeIsToldBothTypesOfEvents(t *testing.T) {
	b := setup(t)
	for _, contentType := range []string{"text/plain", "application/json", "application/cloudevents+xml"} {
		p := b.refused(http.StatusUnsupportedMediaType, http.MethodPost, "/v1/events", map[string]string{"Content-Type": contentType}, "[]")
		require.Contains(t, p.Detail, events.ContentTypeEvent)
		require.Contains(t, p.Detail, events.ContentTypeBatch)
	}
}

func TestUnreadableNATSMessagesAreListedAsFailed(t *testing.T) {
	b := setup(t)
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	for _, body := range []string{"{", `{"specversion":"1.0","type":"dev.mneme.message.created.v9","source":"s","id":"1","subject":"c1","data":{}}`} {
		msg := &nats.Msg{Subject: "mneme.default.c1.message_created", Data: []byte(body), Header: nats.Header{"Content-Type": {events.ContentTypeEvent}}}
		_, err := conn.RequestMsg(msg, mnemetest.Patience)
		require.NoError(t, err)
	}
	seq := b.publish(structured("c1", "2", message("m1", "user", "still here"))).Seq
	var markdown string
	b.get(fmt.Sprintf("/v1/conversations/c1/context?format=markdown&at_least=%d", seq), &markdown)
	require.Contains(t, markdown, "still here")

	var failed struct{ Failed []httpapi.FailedEvent }
	b.get("/v1/failed?projection=graph", &failed)
	require.Len(t, failed.Failed, 2)
	require.Equal(t, "invalid", failed.Failed[0].Class)
	require.Contains(t, failed.Failed[1].Reason, "message.created.v9")
	require.Equal(t, "1", failed.Failed[1].EventID, "what could be read of it is shown")
	b.get("/v1/failed?projection=graph&tenant="+failed.Failed[0].Tenant, &failed)
	require.Len(t, failed.Failed, 2)
	b.get("/v1/failed?projection=graph&tenant=nobody", &failed)
	require.Empty(t, failed.Failed)
	var status httpapi.Status
	b.get("/v1/status", &status)
	require.Equal(t, 2, status.Projections[0].Failed)
}

func TestConversationsAreListedInPagesNewestFirst(t *testing.T) {
	b := setup(t)
	var last uint64
	for i := range 7 {
		last = b.publish(structured(fmt.Sprint("c", i), "1", message("m", "user", "x"))).Seq
	}
	var ignored map[string]any
	b.get(fmt.Sprintf("/v1/conversations/c6?at_least=%d", last), &ignored)
	var ids []string
	for cursor := ""; ; {
		var page struct {
			Conversations []httpapi.Conversation
			NextCursor    string `json:"next_cursor"`
		}
		b.get("/v1/conversations?limit=3&cursor="+url.QueryEscape(cursor), &page)
		for _, c := range page.Conversations {
			ids = append(ids, c.ID)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	require.Equal(t, []string{"c6", "c5", "c4", "c3", "c2", "c1", "c0"}, ids)
}

func TestTenantsMayUseTheSameIDs(t *testing.T) {
	b := setup(t)
	for _, tenant := range []string{"one", "two"} {
		var answer publishAnswer
		b.do(http.StatusCreated, http.MethodPost, "/v1/events?tenant="+tenant, map[string]string{"Content-Type": events.ContentTypeEvent},
			structured("c1", "1", message("m1", "user", "I am "+tenant)), &answer)
		require.False(t, answer.Events[0].Duplicate)
		var markdown string
		b.get(fmt.Sprintf("/v1/conversations/c1/context?format=markdown&tenant=%s&at_least=%d", tenant, answer.Seq), &markdown)
		require.Contains(t, markdown, "I am "+tenant)
	}
}

func TestFilesOfAFailedCallAreNotListed(t *testing.T) {
	b := setup(t)
	no := false
	b.publish(structured("c1", "1", message("m1", "user", "read them")))
	b.publish(structured("c1", "2", &events.ToolCalled{ToolCallID: "t1", ToolName: "read_file", Arguments: json.RawMessage(`{"path":"/src/a.go"}`)}))
	b.publish(structured("c1", "3", &events.ToolCalled{ToolCallID: "t2", ToolName: "edit_file", Arguments: json.RawMessage(`{"path":"/src/b.go"}`)}))
	seq := b.publish(structured("c1", "4", &events.ToolCalled{ToolCallID: "t3", ToolName: "read_file", Arguments: json.RawMessage(`{"path":"/src/none.go"}`)})).Seq
	failed := b.publish(structured("c1", "5", &events.ToolReturned{ToolCallID: "t3", Success: &no, Result: events.TextResult("no such file")})).Seq

	paths := func(query string) (list []string) {
		var answer struct{ Files []httpapi.File }
		b.get("/v1/conversations/c1/files?"+query, &answer)
		for _, f := range answer.Files {
			list = append(list, f.Kind+" "+f.Path)
		}
		return list
	}
	require.Equal(t, []string{"write /src/b.go", "read /src/a.go"}, paths(fmt.Sprintf("at_least=%d", failed)))
	require.Equal(t, []string{"read /src/none.go", "write /src/b.go", "read /src/a.go"}, paths(fmt.Sprintf("as_of=%d", seq)))
}

func TestLookupReturnsKnownEvents(t *testing.T) {
	b := setup(t)
	seq := b.publish(structured("c1", "1", message("m1", "user", "x"))).Seq
	b.get(fmt.Sprintf("/v1/conversations/c1?at_least=%d", seq), nil)
	var answer struct{ Events []struct{ Seq uint64 } }
	b.do(http.StatusOK, http.MethodPost, "/v1/events/lookup", map[string]string{"Content-Type": "application/json"},
		[]byte(`{"events":[{"conversation":"c1","source":"test","id":"2"},{"conversation":"c1","source":"test","id":"1"}]}`), &answer)
	require.Zero(t, answer.Events[0].Seq)
	require.Equal(t, seq, answer.Events[1].Seq)
}

func TestTheOpenAPIDocumentDescribesEveryPath(t *testing.T) {
	b := setup(t)
	var doc struct {
		OpenAPI string
		Paths   map[string]any
	}
	b.get("/openapi.json", &doc)
	require.True(t, strings.HasPrefix(doc.OpenAPI, "3.1"))
	for _, path := range []string{"/v1/events", "/v1/conversations", "/v1/conversations/{id}", "/v1/conversations/{id}/files", "/v1/conversations/{id}/context",
		"/v1/events/{seq}", "/v1/conversations/{id}/messages", "/v1/conversations/{id}/messages/{message_id}", "/v1/conversations/{id}/turns", "/v1/conversations/{id}/steps",
		"/v1/conversations/{id}/tool-calls", "/v1/conversations/{id}/tool-calls/{tool_call_id}", "/v1/status", "/v1/failed", "/v1/verify"} {
		require.Contains(t, doc.Paths, path)
	}
}

func TestAFullLogRefusesAtOnceAndDropsNothing(t *testing.T) {
	t.Parallel()
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", MaxBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, i.Close()) }()
	b := &bundle{t, i}
	event := map[string]string{"Content-Type": events.ContentTypeEvent}
	var last uint64
	for n := 0; ; n++ {
		require.Less(t, n, 20, "the log does not fill up")
		body := structured("c1", fmt.Sprint(n), message(fmt.Sprint("m", n), "user", fmt.Sprint(n)+strings.Repeat(" x", 50_000)))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.HTTPURL()+"/v1/events", bytes.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", events.ContentTypeEvent)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_ = response.Body.Close()
		if response.StatusCode == http.StatusInsufficientStorage {
			p := b.refused(http.StatusInsufficientStorage, http.MethodPost, "/v1/events", event, string(body))
			require.Contains(t, p.Detail, "0 of 1 events were stored: ")
			break
		}
		require.Equal(t, http.StatusCreated, response.StatusCode)
		last++
	}
	var c httpapi.Conversation
	b.get(fmt.Sprintf("/v1/conversations/c1?at_least=%d", last), &c)
	require.EqualValues(t, last, c.MessageCount)
}

func TestTheProblemSaysHowManyEventsWereStored(t *testing.T) {
	t.Parallel()
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", MaxBytes: 2 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, i.Close()) }()
	b := &bundle{t, i}
	var batch []string
	for n := range 3000 {
		batch = append(batch, string(structured("c1", fmt.Sprint(n), message(fmt.Sprint("m", n), "user", strings.Repeat("x", 700)))))
	}
	p := b.refused(http.StatusInsufficientStorage, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeBatch}, "["+strings.Join(batch, ",")+"]")
	state, err := i.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Positive(t, state.Head)
	require.Contains(t, p.Detail, fmt.Sprintf("%d of 3000 events were stored", state.Head))
}

func TestProblemsDoNotEchoTheBody(t *testing.T) {
	b := setup(t)
	var text string
	b.do(http.StatusBadRequest, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeEvent}, bytes.Repeat([]byte("g"), 5<<20), &text)
	require.Less(t, len(text), 2000)
}

func TestLookupOfADeletedConversationReturnsTheTombstone(t *testing.T) {
	b := setup(t)
	b.publish(structured("c1", "1", message("m1", "user", "x")))
	deleted := b.publish(structured("c1", "2", &events.ConversationDeleted{})).Seq
	var p problem
	b.do(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/v1/conversations/c1?at_least=%d", deleted), nil, nil, &p)
	var answer struct {
		Events []struct {
			Seq     uint64
			Content string
		}
	}
	b.do(http.StatusOK, http.MethodPost, "/v1/events/lookup", map[string]string{"Content-Type": "application/json"},
		[]byte(`{"events":[{"conversation":"c1","source":"test","id":"1"}]}`), &answer)
	require.Equal(t, deleted, answer.Events[0].Seq)
	require.Empty(t, answer.Events[0].Content)
}
