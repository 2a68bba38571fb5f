package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/projection"
)

// bundle is mneme in this process, with its log output.
type bundle struct {
	t *testing.T
	*instance.Instance
	logged *logged
}

// logged is the log of a bundle, in JSON.
type logged struct{ mnemetest.Log }

// lines returns the records with a message.
func (l *logged) lines(t *testing.T, msg string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		record := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		if record["msg"] == msg {
			list = append(list, record)
		}
	}
	return list
}

// up starts mneme as the environment says, and waits until its projections are live.
func up(t *testing.T, data string, change ...func(*instance.Config)) *bundle {
	t.Helper()
	b := &bundle{t: t, logged: &logged{}}
	var err error
	c := instance.Config{
		Data: data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", MaxBytes: 64 << 20,
		Logger: slog.New(slog.NewJSONHandler(b.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&c)
	}
	b.Instance, err = instance.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	require.Eventually(t, func() bool {
		for _, s := range b.Status() {
			if s.State != projection.StateLive {
				return false
			}
		}
		return true
	}, mnemetest.Patience, time.Millisecond)
	return b
}

// message is an event in a conversation; traceparent may be "".
func message(t *testing.T, id, text, traceparent string) events.Event {
	t.Helper()
	e, err := events.New("c1", "test", id, &events.MessageCreated{MessageID: id, Role: "user", Content: text})
	require.NoError(t, err)
	if traceparent != "" {
		e.Extensions["traceparent"] = traceparent
	}
	return e
}

func (b *bundle) do(method, path, traceparent, contentType string, body []byte) (int, []byte) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.HTTPURL()+path, bytes.NewReader(body))
	require.NoError(b.t, err)
	request.Header.Set("Content-Type", contentType)
	if traceparent != "" {
		request.Header.Set("traceparent", traceparent)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response.StatusCode, answer
}

// post publishes over HTTP and returns the highest sequence.
func (b *bundle) post(traceparent string, list ...events.Event) uint64 {
	b.t.Helper()
	body, contentType := structured(b.t, list), events.ContentTypeBatch
	if len(list) == 1 {
		body, contentType = body[1:len(body)-1], events.ContentTypeEvent
	}
	status, answer := b.do(http.MethodPost, "/v1/events", traceparent, contentType, body)
	require.Equal(b.t, http.StatusCreated, status, "%s", answer)
	var published struct{ Seq uint64 }
	require.NoError(b.t, json.Unmarshal(answer, &published))
	return published.Seq
}

func structured(t *testing.T, list []events.Event) []byte {
	t.Helper()
	var all [][]byte
	for _, e := range list {
		body, err := events.EncodeStructured(e)
		require.NoError(t, err)
		all = append(all, body)
	}
	return append(append([]byte("["), bytes.Join(all, []byte(","))...), ']')
}

// overNATS publishes as an agent that knows only NATS does.
func (b *bundle) overNATS(e events.Event) {
	b.t.Helper()
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(b.t, err)
	defer conn.Close()
	header, body := events.EncodeMessage(e)
	_, err = conn.RequestMsg(&nats.Msg{Subject: "mneme.default." + e.Subject + "." + events.Kind(e.Type), Header: header, Data: body}, 10*time.Second)
	require.NoError(b.t, err)
}

// read reads the context of the conversation once a sequence is applied.
func (b *bundle) read(traceparent string, seq uint64) string {
	b.t.Helper()
	status, answer := b.do(http.MethodGet, fmt.Sprintf("/v1/conversations/c1/context?format=markdown&at_least=%d", seq), traceparent, "", nil)
	require.Equal(b.t, http.StatusOK, status, "%s", answer)
	return string(answer)
}

func (b *bundle) status() (s httpapi.Status) {
	b.t.Helper()
	code, answer := b.do(http.MethodGet, "/v1/status", "", "", nil)
	require.Equal(b.t, http.StatusOK, code)
	require.NoError(b.t, json.Unmarshal(answer, &s))
	return s
}
