package neo4j_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
)

// nextMessage returns the sequence of the first message from an index on.
func nextMessage(h *storetest.History, from int) uint64 {
	for _, m := range h.Messages[from:] {
		if r, _, err := m.Decode(); err == nil && r.Type == events.TypeMessageCreated {
			return m.Seq
		}
	}
	return 0
}

// TestADeadlockIsRetried makes a deadlock: another transaction holds the conversation and
// waits for the checkpoint, while the batch holds the checkpoint and waits for the
// conversation, and has done so for longer than retries take.
func TestADeadlockIsRetried(t *testing.T) {
	t.Parallel()
	h := storetest.Realistic(1, 2)
	half := len(h.Messages) / 2
	want, _ := inSQLite(t, h.Messages)
	c, g := shared(t), generation(t)
	s := openGraph(t, c, g)
	require.Empty(t, drive(t, graphs, s, 4000, h.Messages[:half]))

	auth := neo4j.NoAuth()
	if p := neo4jtest.Password(); p != "" {
		auth = neo4j.BasicAuth("neo4j", p, "")
	}
	driver, err := neo4j.NewDriverWithContext(c.URI, auth)
	require.NoError(t, err)
	defer func() { _ = driver.Close(t.Context()) }()
	session := driver.NewSession(t.Context(), neo4j.SessionConfig{})
	defer func() { _ = session.Close(t.Context()) }()
	mark := fmt.Sprint("deadlock of ", g)
	var other neo4j.ExplicitTransaction
	lock := func(statement, key string) error {
		result, err := other.Run(t.Context(), statement, map[string]any{"key": key})
		if err != nil {
			return err
		}
		_, err = result.Single(t.Context())
		return err
	}
	runs := 0
	released := make(chan error, 1)
	p := graph.Projection()
	reduce := p.Reducers[events.TypeMessageCreated]
	reducers := map[string]projection.Reducer[*graph.Unit]{}
	maps.Copy(reducers, p.Reducers)
	first := nextMessage(h, half)
	reducers[events.TypeMessageCreated] = func(u *graph.Unit, e *events.Recorded) error {
		if e.Seq == first {
			runs++
		}
		if e.Seq == first && runs == 1 {
			var err error
			other, err = session.BeginTransaction(t.Context(), neo4j.WithTxMetadata(map[string]any{"test": mark}))
			require.NoError(t, err)
			require.NoError(t, lock("MATCH (c:Conversation {key: $key}) SET c.held = true WITH c MATCH (c)-[:HAS_MESSAGE]->(m) SET m.held = true RETURN count(m)", // the server aborts the transaction with fewer locks
				fmt.Sprint(g, "/t/conversation-0")))
			go func() {
				err := lock("MATCH (k:GraphCheckpoint {key: $key}) SET k.held = true RETURN k.key", fmt.Sprint(g, "/0"))
				if rollback := other.Rollback(t.Context()); err == nil {
					err = rollback
				}
				released <- err
			}()
			waits := func() bool {
				result, err := neo4j.ExecuteQuery(t.Context(), driver, "SHOW TRANSACTIONS YIELD metaData, status WHERE metaData.test = $mark AND status STARTS WITH 'Blocked' RETURN status",
					map[string]any{"mark": mark}, neo4j.EagerResultTransformer)
				return err == nil && len(result.Records) > 0
			}
			for deadline := time.Now().Add(patience); !waits() && time.Now().Before(deadline); {
				<-pause(5)
			}
			<-pause(3500)
		}
		return reduce(u, e)
	}
	p.Reducers = reducers
	cp, err := s.Acquire(t.Context(), 0, p.Fingerprint())
	require.NoError(t, err)
	_, err = p.Apply(t.Context(), s, cp, h.Messages[half:])
	require.NoError(t, err)
	require.Equal(t, 2, runs, "the deadlock ended the first one")
	require.NoError(t, <-released)
	require.Equal(t, want, stateOf(t, s))
}
