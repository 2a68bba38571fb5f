package neo4jstore

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
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

func TestARepairKeepsWhereConversationsBranched(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	from := func(parent string) *events.ConversationStarted {
		return &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: parent, MessageID: "m"}}
	}
	s.add("parent", &events.MessageCreated{MessageID: "m", Role: "user", Content: "hello"})
	s.add("branch", from("parent"))
	s.add("leaf", from("branch"))
	s.add("other", from("parent"))
	s.add("other", from("branch")) // it says so later, which counts
	log := s.history.Messages
	s.apply(t)
	repair := func(name string, of func(eventlog.Message) bool) {
		t.Helper()
		kept := slices.DeleteFunc(slices.Clone(log), func(m eventlog.Message) bool { return !of(m) })
		_, _, err := graphProjection.Reapply(t.Context(), s.graph, s.graphCP, conversation(name), kept)
		require.NoError(t, err)
	}
	branches := func() (list []string) {
		t.Helper()
		rows, err := s.graph.Read(t.Context(), "MATCH (p:Conversation)-[:HAS_BRANCH]->(b:Conversation) WHERE p.key STARTS WITH $prefix RETURN p.id + ' > ' + b.id AS pair ORDER BY pair", map[string]any{"prefix": s.graph.prefix()})
		require.NoError(t, err)
		for _, row := range rows {
			list = append(list, row[0].(string))
		}
		return list
	}
	want := []string{"branch > leaf", "branch > other", "parent > branch"}
	require.Equal(t, want, branches())
	for _, name := range []string{"parent", "branch", "leaf", "other"} {
		of := func(m eventlog.Message) bool { return m.Header.Get("ce-subject") == name }
		repair(name, of)
		require.Equal(t, want, branches(), "after a repair of %s", name)
	}

	repair("branch", func(eventlog.Message) bool { return false })
	require.Empty(t, branches(), "its events were purged")
	s.add("branch", from("parent"))
	s.apply(t)
	require.Equal(t, want, branches())
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

// Who compares a checkpoint with the log must get a sequence and the event at it, also between the commit of a
// batch and its settling, which takes seconds on a busy server. Otherwise the read model seems to follow another log.
func TestACheckpointThatIsNotSettledYetShowsTheEventOfTheSequenceBefore(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	s.add("c", &events.MessageCreated{MessageID: "m", Role: "user", Content: "hello"})
	s.apply(t)
	shown := func() projection.Checkpoint {
		t.Helper()
		cps, err := s.graph.Checkpoints(t.Context())
		require.NoError(t, err)
		require.Len(t, cps, 1)
		return cps[0]
	}
	settled := shown()
	require.Equal(t, s.graphCP.Seq, settled.Seq)
	require.Equal(t, s.graphCP.Event, settled.Event)

	next := s.graphCP
	next.Seq++
	next.Event = events.DigestOf("the next event")
	committed, err := s.graph.attempt(t.Context(), 0, true, func(tx *Tx) error { return tx.Advance(t.Context(), next) })
	require.NoError(t, err)
	require.Equal(t, settled.Seq, shown().Seq)
	require.Equal(t, settled.Event, shown().Event)

	require.NoError(t, s.graph.finish(t.Context(), committed))
	require.Equal(t, next.Seq, shown().Seq)
	require.Equal(t, next.Event, shown().Event)
}

// An older version, which may run beside this one, settles a sequence without its event.
func TestACheckpointThatAnOlderVersionSettledShowsItsEvent(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	s.add("c", &events.MessageCreated{MessageID: "m", Role: "user", Content: "hello"})
	s.apply(t)
	_, err := s.graph.write(t.Context(), s.graph.engine("MATCH (s:$EngineSettled {key: $key}) SET s.event = $event"),
		map[string]any{"key": s.graph.checkpointKey(0), "event": events.DigestOf("an event before").String()})
	require.NoError(t, err)
	cps, err := s.graph.Checkpoints(t.Context())
	require.NoError(t, err)
	require.Equal(t, s.graphCP.Event, cps[0].Event)
}
