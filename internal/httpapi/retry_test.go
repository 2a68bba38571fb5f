package httpapi_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

// unreadable publishes an invalid event over NATS and returns its sequence.
func (b *bundle) unreadable(subject, body string) uint64 {
	b.t.Helper()
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(b.t, err)
	defer conn.Close()
	msg := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{"Content-Type": {events.ContentTypeEvent}}}
	reply, err := conn.RequestMsg(msg, mnemetest.Patience)
	require.NoError(b.t, err)
	var ack struct{ Seq uint64 }
	require.NoError(b.t, json.Unmarshal(reply.Data, &ack))
	return ack.Seq
}

// awaitSeq waits until a conversation is applied up to a sequence in both read models.
func (b *bundle) awaitSeq(conversation string, seq uint64) {
	b.t.Helper()
	b.get(fmt.Sprintf("/v1/conversations/%s?at_least=%d", conversation, seq), nil)
	b.get(fmt.Sprintf("/v1/conversations/%s/files?at_least=%d", conversation, seq), nil)
}

func (b *bundle) retry(status int, r httpapi.RetryRequest, answer any) {
	b.t.Helper()
	body, err := json.Marshal(r)
	require.NoError(b.t, err)
	b.do(status, http.MethodPost, "/v1/retries", map[string]string{"Content-Type": "application/json"}, body, answer)
}

func TestAFailedEventIsShownUnchanged(t *testing.T) {
	b := setup(t)
	seq := b.unreadable("mneme.default.c1.message_created", "{")
	binary := b.unreadable("mneme.default.c1.message_created", "\xff\xfe")
	b.publish(structured("c1", "2", message("m1", "user", "x")))
	b.settled()

	var d httpapi.FailedDetail
	b.get(fmt.Sprint("/v1/failed/", seq), &d)
	require.Equal(t, "{", d.Data)
	require.Equal(t, "ev.0.default.c1.message_created", d.Subject)
	require.Equal(t, []string{events.ContentTypeEvent}, d.Headers["Content-Type"])
	var names []string
	for _, f := range d.Failed {
		names = append(names, f.Projection)
	}
	require.Equal(t, written(), names)
	require.NotEmpty(t, d.Failed[0].Reason)
	d = httpapi.FailedDetail{}
	b.get(fmt.Sprint("/v1/failed/", binary), &d)
	require.Equal(t, []byte("\xff\xfe"), d.Binary)
	b.refused(404, "GET", "/v1/failed/3", nil, "")
	b.refused(404, "GET", "/v1/failed/4711", nil, "")

	deleted := b.publish(structured("c1", "3", &events.ConversationDeleted{})).Seq
	late := b.publish(structured("c1", "4", message("m2", "user", "secret"))).Seq
	require.Greater(t, late, deleted)
	last := b.publish(structured("c2", "5", message("m3", "user", "x"))).Seq
	b.awaitSeq("c2", last)
	d = httpapi.FailedDetail{}
	b.get(fmt.Sprint("/v1/failed/", late), &d)
	require.Contains(t, d.Absent, "deleted")
	require.Empty(t, d.Data)
}

// written lists the read models that a server without embeddings writes.
func written() (names []string) {
	for _, m := range readmodel.Ours() {
		if !m.Enriches {
			names = append(names, m.Name)
		}
	}
	return names
}

func TestFailedEventsAreFiltered(t *testing.T) {
	b := setup(t)
	for _, subject := range []string{"mneme.default.c1.x", "mneme.other.c1.x", "mneme.default.c2.x"} {
		b.unreadable(subject, "{")
	}
	b.publish(structured("c3", "2", message("m1", "user", "x")))
	b.settled()
	for query, want := range map[string]string{
		"":                               "[" + strings.Join(slices.Repeat([]string{"1 2 3"}, len(written())), " ") + "]",
		"?projection=files&tenant=other": "[2]",
		"?projection=graph&tenant=default&conversation=c1": "[1]",
		"?projection=graph&class=invalid&after=1&limit=1":  "[2]",
		"?projection=graph&class=error":                    "[]",
	} {
		var page struct{ Failed []httpapi.FailedEvent }
		b.get("/v1/failed"+query, &page)
		seqs := []uint64{}
		for _, f := range page.Failed {
			seqs = append(seqs, f.Seq)
		}
		require.Equal(t, want, fmt.Sprint(seqs), query)
	}
	p := b.refused(422, "GET", "/v1/failed?conversation=c1", nil, "")
	require.Contains(t, p.Detail, "tenant")
}

func TestRetriedEventsAreAppliedOrFailAgain(t *testing.T) {
	t.Parallel()
	config := instance.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)}
	up := func() *bundle {
		i, err := instance.Start(t.Context(), config)
		require.NoError(t, err)
		return &bundle{t, i}
	}
	b := up()
	bad := b.unreadable("mneme.default.bad.message_created", "{")
	nameless := b.unreadable("mneme.default.%zz.message_created", "{")
	good := b.publish(structured("good", "1", message("m1", "user", "it is here"))).Seq
	b.awaitSeq("good", good)
	require.NoError(t, b.Close())

	// An event that an earlier build could not apply but this one can.
	db, err := sql.Open("sqlite", filepath.Join(config.Data, "models", "graph-1.db"))
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO failed (seq, tenant, conversation, event_id, type, class, reason) VALUES (?, 'default', 'good', '1', 'x', 'error', 'no room')", good)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	b = up()
	defer func() { require.NoError(t, b.Close()) }()

	b.retry(422, httpapi.RetryRequest{}, nil)
	b.retry(422, httpapi.RetryRequest{Seq: 1, All: true}, nil)
	b.retry(422, httpapi.RetryRequest{Conversation: "good"}, nil)
	b.retry(404, httpapi.RetryRequest{Seq: 4711}, nil)
	b.retry(404, httpapi.RetryRequest{Seq: bad, Tenant: "other"}, nil)
	b.retry(404, httpapi.RetryRequest{Seq: bad, Class: "error"}, nil)
	b.retry(404, httpapi.RetryRequest{Tenant: "default", Conversation: "nobody"}, nil)

	var r httpapi.Retry
	b.retry(200, httpapi.RetryRequest{Seq: bad}, &r)
	require.Equal(t, []int{0, len(written())}, []int{r.Applied, r.Failed}, "in all projections: %+v", r)
	require.Empty(t, r.Conversations[0].Error)

	r = httpapi.Retry{}
	b.retry(200, httpapi.RetryRequest{Seq: nameless, Projection: "graph"}, &r)
	require.Equal(t, []int{0, 1}, []int{r.Applied, r.Failed})
	require.Contains(t, r.Conversations[0].Error, "names no conversation")

	paths := []string{"/v1/conversations/good", "/v1/conversations/good/context", "/v1/conversations/good/export", "/v1/conversations"}
	var old []string
	for _, path := range paths {
		old = append(old, b.tag(path))
	}
	r = httpapi.Retry{}
	b.retry(200, httpapi.RetryRequest{All: true, Class: "error"}, &r)
	require.Equal(t, httpapi.Retry{Applied: 1, Conversations: []httpapi.RetriedConversation{{Projection: "graph", Tenant: "default", Conversation: "good", Retried: 1, Applied: 1}}}, r)

	for i, path := range paths {
		require.NotEqual(t, old[i], b.tag(path), "as much was applied as before, but it may be something else")
	}

	// Retrying page by page ends, with the same result.
	applied, failed := 0, 0
	for request := (httpapi.RetryRequest{All: true, Limit: 1}); ; {
		r = httpapi.Retry{}
		b.retry(200, request, &r)
		applied, failed = applied+r.Applied, failed+r.Failed
		if request.After = r.NextAfter; request.After == 0 {
			break
		}
	}
	require.Equal(t, []int{0, 2 * len(written())}, []int{applied, failed})
	var markdown string
	b.get("/v1/conversations/good/context?format=markdown", &markdown)
	require.Contains(t, markdown, "it is here")
	var status httpapi.Status
	b.get("/v1/status", &status)
	require.Equal(t, 2, status.Projections[0].Failed)
}
