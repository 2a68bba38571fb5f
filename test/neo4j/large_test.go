package neo4j_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/eventlog"
)

// A server gives a transaction only so much time and memory, and a repair is one transaction. A
// rebuild has no such limit, and readers see the old rows until it is done.
func TestAConversationTooLargeToRepairIsRebuilt(t *testing.T) {
	if !mnemetest.All {
		t.Skip("takes a minute: only with MNEME_TEST_ALL=1")
	}
	server := neo4jtest.Own(t)
	s := mnemetest.UpWith(t, "--data", t.TempDir(), "--store", "neo4j", "--neo4j-uri", server.URI(), "--neo4j-write-timeout", "1s")
	conn, err := eventlog.Connect(s.NATS, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer conn.Close()
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	const messages = 1500
	publish(t, log, referring("large", messages, 10, false))
	reply, err := conn.RequestMsg(&nats.Msg{
		Subject: "mneme.t.large.message_created", Data: []byte("{"), Header: nats.Header{"Content-Type": {events.ContentTypeEvent}},
	}, patience)
	require.NoError(t, err)
	var ack struct{ Seq uint64 }
	require.NoError(t, json.Unmarshal(reply.Data, &ack))
	verified(t, s.HTTP, ack.Seq)

	out, stderr, code := s.Run("failed", "retry", "--conversation", "large", "--projection", "graph", "--tenant", "t", "--json")
	require.Equal(t, 1, code, stderr)
	var retry httpapi.Retry
	require.NoError(t, json.Unmarshal([]byte(out), &retry), out)
	require.Len(t, retry.Conversations, 1)
	require.True(t, retry.Conversations[0].Rebuilding, out)
	require.Contains(t, retry.Conversations[0].Error, "graph is being rebuilt")
	status, body, _ := get(t, s.HTTP+"/v1/conversations/large/messages?tenant=t&limit=1")
	require.Equal(t, http.StatusOK, status, body)
	require.Eventually(t, func() bool {
		out, stderr, code := s.Run("status", "--json")
		require.Zero(t, code, stderr)
		var now httpapi.Status
		require.NoError(t, json.Unmarshal([]byte(out), &now))
		for _, p := range now.Projections {
			if p.Name == "graph" {
				return p.Generation == 2
			}
		}
		return false
	}, 2*time.Minute, 100*time.Millisecond)
	verified(t, s.HTTP, ack.Seq)
}
