package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/transcript"
)

// imported is the answer of an import.
type imported struct {
	Read, Published, Duplicate, Rejected, Conversations int
	Seq                                                 uint64
	Problems                                            []httpapi.LineProblem
}

func (b *bundle) importLines(tenant string, body []byte) (answer imported) {
	b.t.Helper()
	for { // on a busy machine the log may not answer in time; the answer then says what to do
		response, raw := b.send(http.MethodPost, "/v1/import?tenant="+tenant, map[string]string{"Content-Type": "application/x-ndjson"}, body)
		if response.StatusCode == http.StatusGatewayTimeout && bytes.Contains(raw, []byte("send all of it again")) {
			continue
		}
		require.Equal(b.t, http.StatusOK, response.StatusCode, "%s", raw)
		require.NoError(b.t, json.Unmarshal(raw, &answer))
		break
	}
	require.Equal(b.t, answer.Read, answer.Published+answer.Duplicate+answer.Rejected)
	return answer
}

func (b *bundle) export(id, query string) (body string) {
	b.t.Helper()
	b.get("/v1/conversations/"+id+"/export?"+query, &body)
	return body
}

func decode(t *testing.T, lines string) (list []events.Event) {
	t.Helper()
	for line := range strings.Lines(lines) {
		e, err := events.DecodeStructured([]byte(strings.TrimSuffix(line, "\n")))
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

func TestAnExportHoldsEveryEventUnchanged(t *testing.T) {
	b := setup(t)
	var want []events.Event
	add := func(id string, p events.Payload, change func(*events.Event)) {
		e, err := events.New("c/1", "//agent/é 1", id, p)
		require.NoError(t, err)
		if change != nil {
			change(&e)
		}
		want = append(want, e)
		_, err = b.Log.Publish(mnemetest.Context(t), "default", e)
		require.NoError(t, err)
		b.publish(structured("other", id, message(id, "user", "between them")))
	}
	add("1", &events.ConversationStarted{Title: "x", Cwd: "/src"}, nil)
	add("2", message("m1", "user", "é\n\u2028 <&> 😀"), func(e *events.Event) {
		e.Time = time.Date(2026, 3, 1, 9, 0, 0, 123456789, time.FixedZone("", 5400))
		e.Extensions["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		e.DataSchema = "https://example.org/schema"
	})
	add("3", message("m2", "assistant", ""), func(e *events.Event) {
		e.Data = []byte("{\n  \"message_id\": \"m2\",\r\n  \"role\": \"assistant\", \"content\": \"half \\ud83d of a pair\", \"unknown\": [1.50, {}] }")
	})
	add("4", &events.ToolCalled{ToolCallID: "t1", ToolName: "Read", Arguments: []byte(`{"n":1.0,"a":"","a":"twice"}`)}, nil)
	add("5", &events.ToolReturned{ToolCallID: "t1", Result: events.TextResult(strings.Repeat("long ", 50_000))}, nil)
	add("6", &events.SummaryWritten{SummaryID: "s1", Level: 1, FirstSeq: 1, LastSeq: 2, Conversation: "x", Method: "extractive"}, nil)
	add("7", message("m3", "user", "bye"), nil)
	add("8", &events.Foreign{Type: "com.example.build.finished", Data: []byte("two\nlines")}, func(e *events.Event) { e.DataContentType = "text/plain" })
	// These do not count: a duplicate, an event that contradicts another, and an invalid event.
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	raw := func(e events.Event) uint64 {
		subject, err := events.Address{Tenant: "default", Conversation: e.Subject, Kind: events.Kind(e.Type)}.Subject()
		require.NoError(t, err)
		header, data := events.EncodeMessage(e)
		_, err = conn.RequestMsg(&nats.Msg{Subject: subject, Header: header, Data: data}, mnemetest.Patience)
		require.NoError(t, err)
		return b.head()
	}
	contradiction, err := events.New("c/1", "other", "9", message("m1", "user", "another text"))
	require.NoError(t, err)
	raw(want[1])
	raw(contradiction)
	broken := want[1]
	broken.Data = []byte("{")
	seq := raw(broken)

	got := decode(t, b.export("c%2F1", fmt.Sprintf("at_least=%d", seq)))
	require.Len(t, got, len(want))
	for i, e := range want {
		if i == 2 { // compare it as one line
			e.Data = []byte(strings.NewReplacer("\r", " ", "\n", " ").Replace(string(e.Data)))
		}
		e.Extensions[transcript.SequenceExtension] = fmt.Sprint(2*i + 1)
		require.True(t, e.Equal(&got[i]), "%s\n%+v\n%+v", e.ID, e, got[i])
	}
}

func TestADeletedConversationIsNotExported(t *testing.T) {
	b := setup(t)
	b.publish(structured("c1", "1", message("m1", "user", "x")))
	seq := b.publish(structured("c1", "2", &events.ConversationDeleted{})).Seq
	b.refused(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/v1/conversations/c1/export?at_least=%d&wait_ms=60000", seq), nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/none/export", nil, "")
	b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/conversations/c1/export?at_least=99", nil, "")
}

// long publishes a conversation larger than all buffers on the way to a client.
func (b *bundle) long(id string, n int) uint64 {
	b.t.Helper()
	var list []events.Event
	for i := range n {
		e, err := events.New(id, "test", fmt.Sprint(i), message(fmt.Sprint("m", i), "user", strings.Repeat(fmt.Sprint(i, " "), 1<<15)))
		require.NoError(b.t, err)
		list = append(list, e)
	}
	acks, err := b.Log.PublishAll(mnemetest.Context(b.t), "default", list)
	require.NoError(b.t, err)
	return acks[len(acks)-1].Seq
}

// stalled requests an export and reads only its first bytes.
func stalled(t *testing.T, url, path string) *bufio.Reader {
	t.Helper()
	conn := dial(t, url, "")
	require.NoError(t, conn.SetReadBuffer(128<<10))
	_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	_, err = in.Peek(64)
	require.NoError(t, err)
	return in
}

func rest(t *testing.T, in *bufio.Reader) error {
	t.Helper()
	response, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func TestDeletingDuringAnExportAbortsIt(t *testing.T) {
	b := setup(t)
	seq := b.long("c1", 100)
	in := stalled(t, b.HTTPURL(), fmt.Sprintf("/v1/conversations/c1/export?at_least=%d&wait_ms=60000", seq))
	seq = b.publish(structured("c1", "gone", &events.ConversationDeleted{})).Seq
	b.refused(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/v1/conversations/c1?at_least=%d", seq), nil, "")
	require.ErrorIs(t, rest(t, in), io.ErrUnexpectedEOF)
}

func TestOnlyStalledClientsAreCutOff(t *testing.T) {
	mnemetest.Long(t)
	const stall = 2 * time.Second // a busy machine lets a client read within it
	f := setupFront(t, func(c *httpapi.Config) { c.Stall = stall })
	seq := f.long("c1", 100)
	path := fmt.Sprintf("/v1/conversations/c1/export?at_least=%d&wait_ms=60000", seq)
	var dead []*bufio.Reader
	for range 5 { // 4 run at once: the fifth must wait until one is cut off
		dead = append(dead, stalled(t, f.HTTPURL(), path))
	}
	require.Eventually(t, func() bool { return strings.Count(f.logged.String(), "export broke off") == len(dead) }, mnemetest.Patience, 10*time.Millisecond)
	for _, in := range dead {
		require.Error(t, rest(t, in))
	}

	response, err := http.ReadResponse(stalled(t, f.HTTPURL(), path), &http.Request{Method: http.MethodGet})
	require.NoError(t, err)
	began, n := time.Now(), int64(0)
	for ; ; time.Sleep(stall / 4) {
		read, err := io.CopyN(io.Discard, response.Body, 1<<20)
		n += read
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "after %s and %d bytes", time.Since(began), n)
	}
	require.Greater(t, time.Since(began), 2*stall)
	require.Greater(t, n, int64(8<<20))
}
