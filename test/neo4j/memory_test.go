package neo4j_test

import (
	"context"
	"errors"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
)

// hasLittleMemory needs a server with 8 MiB for a transaction.
func hasLittleMemory(t *testing.T, o *own) {
	neo4jtest.Wipe(t, o.server)
	c := neo4jstore.Config{URI: o.server.URI(), ConnectTimeout: mnemetest.Patience}
	driver, err := neo4j.NewDriverWithContext(c.URI, neo4j.NoAuth())
	require.NoError(t, err)
	defer func() { _ = driver.Close(t.Context()) }()
	nodes := func() int {
		t.Helper()
		result, err := neo4j.ExecuteQuery(t.Context(), driver, "MATCH (n:GraphEvent) RETURN count(n)", nil, neo4j.EagerResultTransformer)
		require.NoError(t, err)
		n, _ := result.Records[0].Values[0].(int64)
		return int(n)
	}

	t.Run("removes a deleted conversation in pieces, even after its process has died", func(t *testing.T) {
		turns := 200 // 13 events each
		if mnemetest.All {
			turns = 8000
		}
		h := storetest.Realistic(1, turns)
		p := newProxy(t, c.URI)
		dying := openGraph(t, neo4jstore.Config{URI: p.URI(), ConnectTimeout: mnemetest.Patience}, 1)
		require.Empty(t, drive(t, graphs, dying, 4000, h.Messages))
		require.Greater(t, nodes(), len(h.Messages), "and the description of the conversation")

		deleted := h.Add("conversation-0", &events.ConversationDeleted{})
		want, _ := inSQLite(t, h.Messages)
		cp, err := dying.Acquire(t.Context(), 0, graphs.Fingerprint())
		require.NoError(t, err)
		p.atCommit(func() cut { return theAnswer }) // of the deletion, so that the next owner removes the rows
		_, err = graphs.Apply(t.Context(), dying, cp, h.Since(deleted))
		require.ErrorIs(t, err, projection.ErrUnavailable)
		require.NotZero(t, nodes(), "it died before it was done")

		next := openGraph(t, c, 1)
		got := stateOf(t, next)
		require.Equal(t, want.Seq-1, got.Seq, "who waits for it is not yet told that everything is settled")
		got.Seq = want.Seq
		require.Equal(t, want, got, "but the deletion counts at once")
		_, err = next.Acquire(t.Context(), 0, graphs.Fingerprint())
		require.NoError(t, err)
		require.Zero(t, nodes())
		require.Equal(t, want, stateOf(t, next))
	})

	t.Run("gets halves of a batch that is too large", func(t *testing.T) {
		h := storetest.Realistic(3, 40)
		want, wantFiles := inSQLite(t, h.Messages)
		inGraph, inFiles := openGraph(t, c, 2), openFiles(t, c, 2)
		counted := &counting{Graph: inGraph}
		require.Empty(t, drive(t, graphs, counted, 4000, h.Messages))
		require.Greater(t, counted.tooLarge, 0, "else this tests nothing")
		require.Empty(t, drive(t, tracked, inFiles, 4000, h.Messages))
		require.Equal(t, want, stateOf(t, inGraph))
		require.Equal(t, wantFiles, stateOf(t, inFiles))
	})
}

// counting counts how often a batch was too large for a store.
type counting struct {
	*neo4jstore.Graph
	tooLarge int
}

func (c *counting) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.Unit]) error) error {
	err := c.Graph.Update(ctx, partition, fn)
	if errors.Is(err, projection.ErrTooLarge) {
		c.tooLarge++
	}
	return err
}
