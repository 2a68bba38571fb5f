package neo4jstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

func summariesBackend(t *testing.T) storetest.Backend[summary.Store] {
	t.Helper()
	c := testConfig(t)
	require.NoError(t, onlyProfile(t.Context(), c))
	return storetest.Backend[summary.Store]{
		SharedEngine: sharedEngine,
		Open: func(ctx context.Context, dir string) (summary.Store, error) {
			s, err := Open(ctx, c, generationOf(dir), SummariesCodec)
			return &Summaries{s}, err
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuseProfile(ctx, c, dir, text)
		},
	}
}

// onlyProfile makes a constraint that no two nodes have the same conversation and profile.
// Only refuseProfile can violate it, because no two conversations have the same id.
func onlyProfile(ctx context.Context, c Config) error {
	s, err := Open(ctx, c, 1, SummariesCodec) // makes the schema
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	return s.define(ctx, "CREATE CONSTRAINT of_a_test IF NOT EXISTS FOR (c:SummariesConversation) REQUIRE (c.generation, c.tenant, c.id, c.profile) IS UNIQUE")
}

// refuseProfile makes a node that claims to be the conversation "c" with this profile.
func refuseProfile(ctx context.Context, c Config, dir, profile string) (undo func() error, err error) {
	d, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &store{generation: generationOf(dir)}
	node := "(c:SummariesConversation {key: $key, generation: $generation, tenant: 't', id: 'c', profile: $profile})"
	params := map[string]any{"key": s.prefix() + "refused", "generation": s.generation, "profile": profile}
	undo = func() error {
		defer func() { _ = d.close() }()
		_, err := d.write(ctx, "MATCH "+node+" DELETE c", params)
		return err
	}
	_, err = d.write(ctx, "CREATE "+node, params)
	return undo, err
}

func TestSummariesConformance(t *testing.T) {
	t.Parallel()
	storetest.RunSummaries(t, summariesBackend(t))
}

// tellSummaries makes a small read model with every kind of row, in batches of one event.
func tellSummaries(t *testing.T, generation int) {
	t.Helper()
	s := openSummarised(t, testConfig(t), generation)
	s.add("one", &events.ConversationStarted{Title: "First", Profile: "p", MaxContextChars: 9_000})
	for range 4 {
		s.turn("one")
	}
	s.revise("one", s.cover("one", s.next["one"]+5))
	s.turn("untitled")
	s.add("gone", &events.ConversationDeleted{})
	list := s.history.Messages
	for i := range list {
		s.history.Messages = list[i : i+1]
		s.apply(t)
	}
}

func TestUnreadableStatesAreRemoved(t *testing.T) {
	t.Parallel()
	s := openSummarised(t, testConfig(t), generationOf(t.Name()))
	states := func() int {
		rows, err := s.Read(t.Context(), "MATCH (n:SummariesState) WHERE n.conversation = $key AND n.seq IS NOT NULL RETURN count(*)", map[string]any{"key": s.Key(conversation("c"))})
		require.NoError(t, err)
		v := &values{list: rows[0]}
		return v.int()
	}
	most := 0
	for range 100 { // without a summary
		s.turn("c")
		s.apply(t)
		most = max(most, states())
	}
	require.Equal(t, 2*keptStates, most)

	// An older build left more states.
	_, err := s.write(t.Context(), "UNWIND range(-1500, -1) AS seq CREATE (:SummariesState {conversation: $key, seq: seq})", map[string]any{"key": s.Key(conversation("c"))})
	require.NoError(t, err)
	for range 3 * keptStates {
		s.turn("c")
		s.apply(t)
	}
	require.LessOrEqual(t, states(), 2*keptStates)
}

// A read whose state was removed returns an error, because without the state it can't tell
// which marks are covered.
func TestAReadWithoutItsStateIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := openSummarised(t, testConfig(t), generationOf(t.Name()))
	s.turn("c")
	s.apply(t)
	_, err := s.write(t.Context(), "MATCH (n:SummariesState) WHERE n.conversation = $key AND n.seq > 0 DELETE n", map[string]any{"key": s.Key(conversation("c"))})
	require.NoError(t, err)
	_, err = s.Marks(t.Context(), conversation("c"), 0, 10)
	require.ErrorIs(t, err, projection.ErrUnavailable)
	_, err = s.Conversation(t.Context(), conversation("c"))
	require.ErrorIs(t, err, projection.ErrUnavailable)
}

func TestDeletionAndRemovalLeaveNothing(t *testing.T) {
	t.Parallel()
	c, generation := testConfig(t), generationOf(t.Name())
	s := openSummarised(t, c, generation)
	s.all(t, "c")
	count := func(where string) (n int) {
		rows, err := s.Read(t.Context(), "MATCH (n) WHERE any(label IN labels(n) WHERE label STARTS WITH 'Summaries') AND "+where+" RETURN count(*)",
			map[string]any{"prefix": s.prefix(), "generation": generation, "key": s.Key(conversation("c"))})
		require.NoError(t, err)
		v := &values{list: rows[0]}
		return v.int()
	}
	const ofC = "n.conversation = $key"
	require.Positive(t, count(ofC))
	s.add("c", &events.ConversationDeleted{})
	s.apply(t)
	require.Zero(t, count(ofC))
	const ofGeneration = "(coalesce(n.conversation, n.key) STARTS WITH $prefix OR n.generation = $generation)"
	require.Positive(t, count(ofGeneration))
	require.NoError(t, Remove(t.Context(), c, generation))
	require.Zero(t, count(ofGeneration))
}
