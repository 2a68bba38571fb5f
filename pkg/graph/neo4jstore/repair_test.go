package neo4jstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

// Neo4j shows a commit piece by piece. A reader that was told of a repair while it saw
// only some of its rows would cache them under the new count, and nothing would correct it.
func TestARepairIsCountedOnlyAfterAllOfItCanBeSeen(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	s.add("c", &events.MessageCreated{MessageID: "m", Role: "user", Content: "hello"})
	s.apply(t)
	repairs := func() uint64 {
		t.Helper()
		cps, err := s.graph.Checkpoints(t.Context())
		require.NoError(t, err)
		require.Len(t, cps, 1)
		return cps[0].Repairs
	}
	commit := func() *Tx {
		t.Helper()
		done, err := s.graph.attempt(t.Context(), 0, true, func(tx *Tx) error {
			return tx.Drop(t.Context(), conversation("c"))
		})
		require.NoError(t, err)
		return done
	}
	first := commit()
	require.Zero(t, repairs(), "committed, but perhaps not all of it is visible")
	require.NoError(t, s.graph.finish(t.Context(), first))
	require.EqualValues(t, 1, repairs())
	require.NoError(t, s.graph.finish(t.Context(), first))
	require.EqualValues(t, 1, repairs(), "it was one")

	commit() // and the process ends here
	commit()
	require.EqualValues(t, 1, repairs())
	s.acquire(t)
	require.EqualValues(t, 3, repairs(), "the next owner counts what the one before has committed")
}

// Repairs that an older version has counted stay counted.
func TestTheCountOfRepairsGoesOnFromAnOlderVersions(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	_, err := s.graph.write(t.Context(), s.graph.engine("MATCH (s:$EngineSettled {key: $key}) SET s.repairs = 7"), map[string]any{"key": s.graph.checkpointKey(0)})
	require.NoError(t, err)
	require.NoError(t, s.graph.transact(t.Context(), 0, func(tx *Tx) error { return tx.Drop(t.Context(), conversation("c")) }))
	cps, err := s.graph.Checkpoints(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 8, cps[0].Repairs)
}
