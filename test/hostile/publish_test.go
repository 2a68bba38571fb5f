package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

// raw stores a message, as anyone may who can reach the NATS server, and returns its sequence.
func raw(t *testing.T, s *mnemetest.Server, subject, id, body string) uint64 {
	t.Helper()
	conn, err := nats.Connect(s.NATS, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	msg := nats.NewMsg(subject)
	msg.Data = []byte(body)
	if id != "" {
		msg.Header.Set(events.HeaderMsgID, id)
	}
	ack, err := js.PublishMsg(mnemetest.Context(t), msg)
	require.NoError(t, err)
	require.False(t, ack.Duplicate)
	return ack.Sequence
}

func message(id, text string) map[string]any {
	return map[string]any{"message_id": id, "role": "user", "content": text}
}

// published is the answer to a publish.
type published struct {
	Events []struct {
		Seq       uint64
		Duplicate bool
	}
	Detail      string
	ExistingSeq uint64 `json:"existing_seq"`
	Errors      []struct {
		Location, Message string
		Value             json.RawMessage
	}
}

func read[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.Body, &v), "%s", a.Body)
	return v
}

func TestAnotherEventUnderAnIDIsRefusedAndNotAcknowledged(t *testing.T) {
	s := up(t)
	first := publish(t, s, "c", "same", "message.created", message("m1", "one"))
	require.Equal(t, http.StatusCreated, first.Status)
	seq := read[published](t, first).Events[0].Seq

	again := publish(t, s, "c", "same", "message.created", message("m1", "one"))
	require.Equal(t, http.StatusCreated, again.Status)
	require.True(t, read[published](t, again).Events[0].Duplicate)

	other := publish(t, s, "c", "same", "message.created", message("m2", "two"))
	require.Equal(t, http.StatusConflict, other.Status, "%s", other.Body)
	p := read[published](t, other)
	require.Contains(t, p.Detail, fmt.Sprintf("at sequence %d", seq))
	require.Equal(t, seq, p.ExistingSeq)
	require.Equal(t, "body.id", p.Errors[0].Location)

	batch := []map[string]any{}
	for i, id := range []string{"new", "same", "never"} {
		batch = append(batch, map[string]any{"specversion": "1.0", "type": "dev.mneme.message.created.v1", "source": "test", "id": id, "subject": "c", "data": message(fmt.Sprint("b", i), id)})
	}
	body, err := json.Marshal(batch)
	require.NoError(t, err)
	a := do(t, http.MethodPost, s.HTTP+"/v1/events", body, func(r *http.Request) { r.Header.Set("Content-Type", events.ContentTypeBatch) })
	require.Equal(t, http.StatusConflict, a.Status, "%s", a.Body)
	p = read[published](t, a)
	require.Contains(t, p.Detail, "1 of 3 events were stored, the first ones")
	require.Equal(t, seq, p.ExistingSeq)
	require.Equal(t, "body[1].id", p.Errors[0].Location)
	require.Equal(t, "body", p.Errors[1].Location)
	require.JSONEq(t, fmt.Sprintf(`[{"id":"new","seq":%d,"duplicate":false}]`, seq+1), string(p.Errors[1].Value))
}

func TestAForgedMessageIDSwallowsNoPublishedEvent(t *testing.T) {
	s := up(t)
	victim := events.Event{Subject: "c", Source: "test", ID: "1"}
	junk := raw(t, s, "mneme.default.elsewhere.x", victim.Identity("default").String(), "junk")
	a := publish(t, s, "c", "1", "message.created", message("m1", "the real words"))
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	got := read[published](t, a).Events[0]
	require.False(t, got.Duplicate)
	require.Greater(t, got.Seq, junk)
	out, stderr, code := s.Run("context", "c", "--at-least", fmt.Sprint(got.Seq))
	require.Zero(t, code, stderr)
	require.Contains(t, out, "the real words")
}

func TestAMessageWithAnUnreadableSubjectPoisonsNoConversation(t *testing.T) {
	s := up(t)
	a := publish(t, s, "c", "1", "message.created", message("m1", "hello"))
	require.Equal(t, http.StatusCreated, a.Status)
	seq := raw(t, s, "mneme.default.c.message%5Fcreated", "", "{}")

	conversation := s.HTTP + "/v1/conversations/c"
	for _, path := range []string{"/context?", "/messages?", "/turns?", "?"} {
		for _, parameter := range []string{"at_least", "as_of"} {
			if path == "?" && parameter == "as_of" {
				continue
			}
			got := do(t, http.MethodGet, fmt.Sprintf("%s%s%s=%d", conversation, path, parameter, seq), nil, nil)
			require.Equal(t, http.StatusOK, got.Status, "%s %s: %s", path, parameter, got.Body)
		}
	}
	got := do(t, http.MethodGet, conversation+"/export", nil, nil)
	require.Equal(t, http.StatusOK, got.Status, "%s", got.Body)
	require.Contains(t, string(got.Body), "hello")
	got = do(t, http.MethodPost, conversation+"/branches", []byte(`{"id":"b","message_id":"m1"}`), func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })
	require.Equal(t, http.StatusCreated, got.Status, "%s", got.Body)

	require.Eventually(t, func() bool {
		list := do(t, http.MethodGet, s.HTTP+"/v1/failed?"+url.Values{"projection": {"graph"}}.Encode(), nil, nil)
		var failed struct{ Failed []struct{ Seq uint64 } }
		return json.Unmarshal(list.Body, &failed) == nil && len(failed.Failed) == 1 && failed.Failed[0].Seq == seq
	}, mnemetest.Patience, 20*time.Millisecond, "it is listed as failed")
}
