package neo4j_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/eventlog"
)

// leavesNothingOfAnErasedConversation shows that what a client can clear of Neo4j's files is cleared by the erasure, and the
// rest as the report says: mneme and Neo4j are stopped, Neo4j's store and its transaction logs are removed, and mneme fills it
// from the log. It is the last step, because it stops the server.
func leavesNothingOfAnErasedConversation(t *testing.T, o *own) {
	mnemetest.Long(t)
	const gone, stays = "zanzibarcanary", "quagmirewords"
	neo4jtest.Wipe(t, o.server)
	dir, data, server := o.dir, t.TempDir(), o.server
	store, transactions := filepath.Join(dir, "data", "databases", "neo4j"), filepath.Join(dir, "data", "transactions", "neo4j")
	up := func() *mnemetest.Server {
		t.Helper()
		return mnemetest.UpWith(t, "--data", data, "--store", "neo4j", "--neo4j-uri", server.URI())
	}
	program := up()
	run := func(want int, args ...string) string {
		t.Helper()
		out, stderr, code := program.Run(args...)
		require.Equal(t, want, code, "%v: %s%s", args, out, stderr)
		return out + stderr
	}
	found := func(text, below string) int {
		t.Helper()
		s, err := erasure.Search(t.Context(), []string{below}, []string{text})
		require.NoError(t, err)
		require.Positive(t, s.Files)
		return len(s.Hits)
	}

	conn, err := eventlog.Connect(program.NATS, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer conn.Close()
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	say := func(conversation, text string) {
		t.Helper()
		var seq uint64
		for i := range 40 {
			e, err := events.New(conversation, "test", fmt.Sprint(i), &events.MessageCreated{
				MessageID: fmt.Sprint("m", i), Role: []string{"user", "assistant"}[i%2], Content: fmt.Sprintf("%d of it: ", i) + strings.Repeat("the "+text+" ", 20),
			})
			require.NoError(t, err)
			ack, err := log.Publish(mnemetest.Context(t), "default", e)
			require.NoError(t, err)
			seq = ack.Seq
		}
		response, err := http.Get(fmt.Sprintf("%s/v1/conversations/%s?at_least=%d&wait_ms=60000", program.HTTP, conversation, seq))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	say("gone", gone)
	say("stays", stays)
	require.Positive(t, found(gone, transactions), "each transaction is in the log of transactions at once")
	require.Contains(t, run(0, "search", gone), "gone")

	report := run(0, "erase", "conversation", "gone", "--yes")
	require.Contains(t, report, "remove the folders databases and transactions", "the report says what is left")
	require.NotContains(t, run(0, "search", gone), gone)
	require.Zero(t, found(gone, data), "the log")
	t.Logf("after the erasure: %d in the store, %d in the transaction logs", found(gone, store), found(gone, transactions))
	require.Positive(t, found(gone, transactions), "if Neo4j no longer keeps this, the documentation promises too little")

	require.Zero(t, program.Stop())
	require.NoError(t, server.Stop())
	t.Logf("after Neo4j was stopped: %d in the store, %d in the transaction logs", found(gone, store), found(gone, transactions))
	require.Positive(t, found(gone, store), "free records keep their bytes")
	require.NoError(t, os.RemoveAll(store))
	require.NoError(t, os.RemoveAll(transactions))
	require.Zero(t, found(gone, dir), "what stays is no user data")
	if !mnemetest.All {
		return // another start of Neo4j takes long, so only make test-all goes on to fill it again
	}
	server = neo4jtest.Restart(t, server)
	program = up()
	require.Eventually(t, func() bool {
		out, _, code := program.Run("search", stays)
		return code == 0 && strings.Contains(out, "stays")
	}, 2*time.Minute, 100*time.Millisecond, "mneme fills it from the log")
	run(0, "verify")
	require.Zero(t, program.Stop())
	require.NoError(t, server.Stop()) // writes what it holds in memory
	require.Positive(t, found(stays, store), "the search would find it")
	require.Zero(t, found(gone, dir)+found(gone, data))
}
