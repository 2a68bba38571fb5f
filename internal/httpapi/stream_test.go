package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

// follower reads a stream.
type follower struct {
	t     *testing.T
	lines *bufio.Reader
	ended error
}

// streamed is a message of a stream.
type streamed struct{ id, name, data string }

func (b *bundle) follow(query, lastEventID string) *follower {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.HTTPURL()+"/v1/stream?"+query, nil)
	require.NoError(b.t, err)
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	require.Equal(b.t, "text/event-stream", response.Header.Get("Content-Type"))
	return &follower{t: b.t, lines: bufio.NewReader(response.Body)}
}

// next reads up to the next message with data; false if the stream ends first.
func (f *follower) next() (m streamed, more bool) {
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			f.ended = err
			return m, false
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.name = value
		case "data":
			m.data = value
		case "":
			if m.data != "" {
				return m, true
			}
		}
	}
}

func (f *follower) event() (e httpapi.StreamedEvent) {
	f.t.Helper()
	m, more := f.next()
	require.True(f.t, more)
	require.Equal(f.t, "event", m.name)
	require.NoError(f.t, json.Unmarshal([]byte(m.data), &e))
	require.Equal(f.t, fmt.Sprint(e.Seq), m.id)
	return e
}

func TestAStreamSendsEventsAsTheyComeAndContinuesWhereItBrokeOff(t *testing.T) {
	b := setup(t)
	b.batch("old", message("m1", "user", "before"))
	live := b.follow("", "")
	b.batch("c", message("m1", "user", "one\r\ntwo"), call("k", "Read", `{}`), message("m2", "assistant", strings.Repeat("x", 70_000)))
	b.do(http.StatusCreated, http.MethodPost, "/v1/events?tenant=other", map[string]string{"Content-Type": events.ContentTypeEvent}, structured("c", "1", message("m1", "user", "secret")), nil)
	b.batch("d", message("m1", "user", "last"))

	first := live.event()
	require.EqualValues(t, 2, first.Seq, "only what comes after the request")
	require.Equal(t, "c", first.Conversation)
	var logged string
	b.get("/v1/events/2", &logged)
	require.JSONEq(t, logged, string(first.Event))
	require.Equal(t, "tool_called", live.event().Kind)
	large := live.event()
	require.Empty(t, large.Event, "too large to be sent")
	require.Greater(t, large.Bytes, 70_000)
	require.EqualValues(t, 6, live.event().Seq, "nothing of another tenant")

	again := b.follow("", "3")
	require.EqualValues(t, 4, again.event().Seq)
	require.EqualValues(t, 6, again.event().Seq)
	filtered := b.follow("from=1&conversation=c&kind=tool_called&kind=tool_returned", "")
	require.EqualValues(t, 3, filtered.event().Seq)

	b.do(http.StatusOK, http.MethodDelete, "/v1/conversations/c", nil, nil, nil)
	b.refused(404, http.MethodGet, fmt.Sprintf("/v1/conversations/c?at_least=%d", b.head()), nil, "")
	rest := b.follow("from=2", "")
	require.EqualValues(t, 6, rest.event().Seq, "nothing of a deleted conversation")
}

// nginx, as it is installed, would hold the messages of a stream back.
func TestProxiesAreAskedNotToHoldStreamsBack(t *testing.T) {
	b := setup(t)
	for path, method := range map[string]string{"/v1/stream?until_end=true": http.MethodGet, "/v1/verify/stream": http.MethodPost} {
		response, _ := b.send(method, path, nil, nil)
		require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"), path)
		require.Equal(t, "no", response.Header.Get("X-Accel-Buffering"), path)
	}
}

func TestAStreamBeginsWithTheNewestEventsAndStopsAtTheEnd(t *testing.T) {
	b := setup(t)
	b.batch("c", message("m1", "user", "one"), message("m2", "assistant", "two"))
	b.batch("d", message("m1", "user", "three"), message("m2", "assistant", "four"))
	for query, want := range map[string][]uint64{"last=2": {3, 4}, "last=1&conversation=c": {2}, "from=3": {3, 4}, "": {}, "last=9&conversation=none": {}} {
		f := b.follow("until_end=true&"+query, "")
		for _, seq := range want {
			require.Equal(t, seq, f.event().Seq, query)
		}
		m, more := f.next()
		require.True(t, more, query)
		require.Equal(t, streamed{"", "end", "{}"}, m, query)
		_, more = f.next()
		require.False(t, more, query)
	}
	b.refused(422, http.MethodGet, "/v1/stream?last=10001", nil, "")
}

func TestAStreamSendsTheStatus(t *testing.T) {
	b := setup(t)
	f := b.follow("topics=status", "")
	m, more := f.next()
	require.True(t, more)
	require.Equal(t, "status", m.name)
	require.Empty(t, m.id)
	var status httpapi.Status
	require.NoError(t, json.Unmarshal([]byte(m.data), &status))
	require.NotEmpty(t, status.Projections)
}

func TestStreamsAreBoundedAndRefuseWhatTheyDoNotKnow(t *testing.T) {
	b := setup(t)
	b.refused(422, http.MethodGet, "/v1/stream?kind=nonsense", nil, "")
	b.refused(422, http.MethodGet, "/v1/stream?topics=everything", nil, "")
	b.refused(422, http.MethodGet, "/v1/stream?from=99", nil, "")
	b.refused(422, http.MethodGet, "/v1/stream", map[string]string{"Last-Event-ID": "x"}, "")
	for range 8 {
		b.follow("", "")
	}
	b.refused(503, http.MethodGet, "/v1/stream", nil, "")
	b.follow("tenant=other", "")
}

func TestAStreamEndsWhenTheServerStops(t *testing.T) {
	b := setup(t)
	f := b.follow("", "")
	require.NoError(t, b.Close())
	_, more := f.next()
	require.False(t, more)
	require.Equal(t, io.EOF, f.ended, "in good order, not cut off")
}

func (f *follower) read(from io.Reader) { f.lines = bufio.NewReader(from) }
