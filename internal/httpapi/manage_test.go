package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

// write sends a change of a conversation and requires the status.
func (b *bundle) write(status int, method, path, key, body string) (w httpapi.Written) {
	b.t.Helper()
	header := map[string]string{}
	if key != "" {
		header["Idempotency-Key"] = key
	}
	if body != "" {
		header["Content-Type"] = "application/json"
	}
	b.do(status, method, path, header, []byte(body), &w)
	return w
}

func (b *bundle) create(body string) httpapi.Written {
	b.t.Helper()
	return b.write(http.StatusCreated, http.MethodPost, "/v1/conversations", "", body)
}

// show reads a conversation once it has applied a sequence.
func (b *bundle) show(conversation string, atLeast uint64) (c httpapi.Conversation) {
	b.t.Helper()
	b.get(fmt.Sprintf("/v1/conversations/%s?at_least=%d", conversation, atLeast), &c)
	return c
}

func (b *bundle) head() uint64 {
	b.t.Helper()
	state, err := b.Log.State(mnemetest.Context(b.t))
	require.NoError(b.t, err)
	return state.Head
}

func TestCreatingAConversationStoresItsProperties(t *testing.T) {
	b := setup(t)
	w := b.create(`{"id":"c/1 é","title":"T","tags":["a","b"],"agent":"scout","model":"m","cwd":"/w","project":"p","profile":"fast","max_context_chars":5000}`)
	require.Equal(t, "c/1 é", w.ConversationID)
	require.False(t, w.Duplicate)
	m, err := b.Log.Get(mnemetest.Context(t), w.Seq)
	require.NoError(t, err)
	r, _, err := m.Decode()
	require.NoError(t, err)
	require.Equal(t, w.EventID, r.ID)
	require.Equal(t, "mneme/context-api", r.Source)
	c := b.show("c%2F1%20%C3%A9", w.Seq)
	require.NotEmpty(t, c.CreatedAt)
	require.Equal(t, httpapi.Conversation{
		ID: "c/1 é", Title: "T", Tags: []string{"a", "b"}, Status: "active", Agent: "scout", Model: "m", Cwd: "/w", Project: "p", Profile: "fast",
		MaxContextChars: 5000, CreatedAt: c.CreatedAt, UpdatedAt: c.CreatedAt, FirstSeq: w.Seq, LastSeq: w.Seq,
	}, c)

	made := b.create(`{}`)
	require.Len(t, made.ConversationID, 26, "a ULID")
	require.NotEqual(t, made.ConversationID, b.create(`{}`).ConversationID)
}

func TestAChangeLeavesOtherPropertiesAlone(t *testing.T) {
	b := setup(t)
	b.create(`{"id":"c","title":"T","tags":["a"]}`)
	seq := b.write(200, http.MethodPatch, "/v1/conversations/c", "", `{"status":"archived"}`).Seq
	c := b.show("c", seq)
	require.Equal(t, []any{"T", []string{"a"}, "archived"}, []any{c.Title, c.Tags, c.Status})
	seq = b.write(200, http.MethodPatch, "/v1/conversations/c", "", `{"title":"","tags":[]}`).Seq
	c = b.show("c", seq)
	require.Equal(t, []any{"", []string{}, "archived"}, []any{c.Title, c.Tags, c.Status})
}

func TestADeletedConversationKeepsItsIDTaken(t *testing.T) {
	b := setup(t)
	b.create(`{"id":"c"}`)
	w := b.write(200, http.MethodDelete, "/v1/conversations/c?reason=asked%20to", "", "")
	m, err := b.Log.Get(mnemetest.Context(t), w.Seq)
	require.NoError(t, err)
	require.JSONEq(t, `{"reason":"asked to"}`, string(m.Data))
	for _, applied := range []bool{false, true} {
		if applied {
			b.refused(404, http.MethodGet, fmt.Sprintf("/v1/conversations/c?at_least=%d", w.Seq), nil, "")
		}
		b.write(404, http.MethodDelete, "/v1/conversations/c", "", "")
		b.write(404, http.MethodPatch, "/v1/conversations/c", "", `{"title":"x"}`)
		p := b.refused(409, http.MethodPost, "/v1/conversations", map[string]string{"Content-Type": "application/json"}, `{"id":"c"}`)
		require.Equal(t, "body.id", p.Errors[0].Location)
	}
	require.Equal(t, w.Seq, b.head())
}

func TestAnIdempotencyKeyReturnsTheSameSequence(t *testing.T) {
	b := setup(t)
	b.create(`{"id":"other"}`)
	for _, c := range []struct {
		status                    int
		method, path, body, other string
	}{
		{201, http.MethodPost, "/v1/conversations", `{"id":"c","title":"T"}`, `{"id":"c","title":"U"}`},
		{201, http.MethodPost, "/v1/conversations", `{"title":"no id"}`, `{"title":"another"}`},
		{200, http.MethodPatch, "/v1/conversations/c", `{"title":"V"}`, `{"title":"W"}`},
		{200, http.MethodDelete, "/v1/conversations/c?reason=x", "", ""},
	} {
		key := "key of " + c.method + c.body
		first := b.write(c.status, c.method, c.path, key, c.body)
		require.False(t, first.Duplicate)
		require.Equal(t, key, first.EventID)
		want := first
		want.Duplicate = true
		otherPath := strings.Replace(c.path, "reason=x", "reason=y", 1)
		for _, applied := range []bool{false, true} {
			if applied {
				last, partition, err := b.Log.Last(mnemetest.Context(t), "default", first.ConversationID)
				require.NoError(t, err)
				require.Equal(t, first.Seq, last)
				b.awaitApplied(partition, last)
			}
			require.Equal(t, want, b.write(c.status, c.method, c.path, key, c.body), "applied: %v", applied)
			b.write(409, c.method, otherPath, key, c.other)
		}
		require.Equal(t, first.Seq, b.head())
	}
}

// awaitApplied returns once every projection has applied a sequence.
func (b *bundle) awaitApplied(partition int, seq uint64) {
	b.t.Helper()
	for _, name := range []string{"graph", "files"} {
		require.NoError(b.t, b.Log.AwaitProgress(b.t.Context(), name, partition, 10*time.Millisecond, func() (bool, error) {
			for _, s := range b.Status() {
				if s.Projection == name && s.Partition == partition {
					return s.Checkpoint.Seq >= seq, nil
				}
			}
			return false, nil
		}))
	}
}

func TestOneOfManyConcurrentCreatesOrDeletesSucceeds(t *testing.T) {
	b := setup(t)
	b.create(`{"id":"d"}`)
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers := map[string]int{}
	for i := range 20 {
		for name, c := range map[string][3]string{
			"create": {http.MethodPost, "/v1/conversations", fmt.Sprintf(`{"id":"c","title":"%d"}`, i)},
			"delete": {http.MethodDelete, "/v1/conversations/d", ""},
		} {
			wg.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), c[0], b.HTTPURL()+c[1], strings.NewReader(c[2]))
				if err != nil {
					t.Error(err)
					return
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
				mu.Lock()
				answers[fmt.Sprint(name, " ", response.StatusCode)]++
				mu.Unlock()
			})
		}
	}
	wg.Wait()
	require.Equal(t, map[string]int{"create 201": 1, "create 409": 19, "delete 200": 1, "delete 404": 19}, answers)
	require.EqualValues(t, 3, b.head())
}

func TestAChangeDoesNotWaitForTheReadModel(t *testing.T) {
	b := setup(t)
	for i := range 30 { // most of the time the read model lags
		id := fmt.Sprint("c", i)
		b.publish(structured(id, "1", message("m", "user", "x")))
		b.write(200, http.MethodPatch, "/v1/conversations/"+id, "", `{"title":"T"}`)
	}
}

func TestAnInvalidDeletionDoesNotLockAConversation(t *testing.T) {
	b := setup(t)
	w := b.create(`{"id":"c"}`)
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.RequestMsg(&nats.Msg{Subject: "mneme.default.c.conversation_deleted", Data: []byte("not an event")}, mnemetest.Patience)
	require.NoError(t, err)
	b.write(200, http.MethodPatch, "/v1/conversations/c", "", `{"title":"T"}`)
	require.Equal(t, "T", b.show("c", w.Seq+2).Title)

	_, err = conn.RequestMsg(&nats.Msg{Subject: "mneme.default.noise.message_created", Data: []byte("not an event")}, mnemetest.Patience)
	require.NoError(t, err)
	b.awaitApplied(0, w.Seq+3)
	b.write(404, http.MethodPatch, "/v1/conversations/noise", "", `{"title":"T"}`)
}

func TestARefusedChangeNamesTheBadField(t *testing.T) {
	b := setup(t)
	b.create(`{"id":"c"}`)
	b.publish(structured("c", "1", message("m1", "user", "x")))
	long := strings.Repeat("é", 300) // 600 bytes, 300 characters
	for name, c := range map[string]struct {
		status             int
		method, path, body string
		contentType        string
		location           string
	}{
		"an unknown field":       {422, "POST", "/v1/conversations", `{"colour":"red"}`, "", "body.colour"},
		"a wrong type":           {422, "POST", "/v1/conversations", `{"title":1}`, "", "body.title"},
		"a tag that is not text": {422, "POST", "/v1/conversations", `{"tags":["a",1]}`, "", "body.tags[1]"},
		"tags that are null":     {422, "PATCH", "/v1/conversations/c", `{"tags":null}`, "", "body.tags"},
		"a title that is null":   {422, "PATCH", "/v1/conversations/c", `{"title":null,"tags":[]}`, "", "body.title"},
		"an id that is null":     {422, "POST", "/v1/conversations", `{"id":null}`, "", "body.id"},
		"a name in capitals":     {422, "POST", "/v1/conversations", `{"title":"a","Title":"b"}`, "", "body.Title"},
		"a fraction":             {422, "POST", "/v1/conversations", `{"max_context_chars":5.0}`, "", "body.max_context_chars"},
		"an exponent":            {422, "POST", "/v1/conversations", `{"max_context_chars":1e3}`, "", "body.max_context_chars"},
		"over 64 bits":           {422, "POST", "/v1/conversations", `{"max_context_chars":9223372036854775808}`, "", "body.max_context_chars"},
		"null":                   {422, "POST", "/v1/conversations", `null`, "", "body"},
		"an empty id":            {422, "POST", "/v1/conversations", `{"id":""}`, "", "body.id"},
		"an id over the limit":   {422, "POST", "/v1/conversations", `{"id":"` + long + `"}`, "", "body.id"},
		"a negative size":        {422, "POST", "/v1/conversations", `{"max_context_chars":-1}`, "", "body.max_context_chars"},
		"a status of a new one":  {422, "POST", "/v1/conversations", `{"status":"archived"}`, "", "body.status"},
		"an unknown status":      {422, "PATCH", "/v1/conversations/c", `{"status":"deleted"}`, "", "body.status"},
		"an empty status":        {422, "PATCH", "/v1/conversations/c", `{"status":""}`, "", "body.status"},
		"nothing to change":      {422, "PATCH", "/v1/conversations/c", `{}`, "", "body"},
		"an array":               {422, "PATCH", "/v1/conversations/c", `[]`, "", "body"},
		"no body":                {400, "PATCH", "/v1/conversations/c", "", "", ""},
		"two values":             {400, "POST", "/v1/conversations", `{"id":"d"}{"id":"e"}`, "", "body"},
		"no JSON":                {400, "POST", "/v1/conversations", "{", "", "body"},
		"another content type":   {415, "POST", "/v1/conversations", "id: c", "application/yaml", ""},
		"an unknown parameter":   {422, "DELETE", "/v1/conversations/c?why=x", "", "", "query.why"},
		"a change of nobody":     {404, "PATCH", "/v1/conversations/nobody", `{"title":"x"}`, "", ""},
		"a deletion of nobody":   {404, "DELETE", "/v1/conversations/nobody", "", "", ""},
		"another tenant's":       {404, "DELETE", "/v1/conversations/c?tenant=other", "", "", ""},
		"one that is there":      {409, "POST", "/v1/conversations", `{"id":"c"}`, "", "body.id"},
	} {
		t.Run(name, func(t *testing.T) {
			sub := &bundle{t, b.Instance}
			contentType := c.contentType
			if contentType == "" {
				contentType = "application/json"
			}
			p := sub.refused(c.status, c.method, c.path, map[string]string{"Content-Type": contentType}, c.body)
			require.NotEmpty(t, p.Detail)
			if c.location != "" {
				require.NotEmpty(t, p.Errors, "%+v", p)
				require.Equal(t, c.location, p.Errors[0].Location, "%+v", p)
			}
		})
	}
	p := b.refused(422, http.MethodDelete, "/v1/conversations/c", map[string]string{"Idempotency-Key": long}, "")
	require.Equal(t, "header.Idempotency-Key", p.Errors[0].Location)
	require.EqualValues(t, 2, b.head())
}
