package neo4jstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// sharedEngine leaves the engine's cases to the graph and the files, because a round trip takes long: make
// test-all runs them for every read model.
var sharedEngine = !mnemetest.All

func backends(t *testing.T) (storetest.Backend[graph.Store], storetest.Backend[graph.FilesStore]) {
	c := testConfig(t)
	g := storetest.Backend[graph.Store]{
		Open: func(ctx context.Context, dir string) (graph.Store, error) {
			return OpenGraph(ctx, c, generationOf(dir))
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "Message", "payload_key", events.MessageKey(text))
		},
	}
	f := storetest.Backend[graph.FilesStore]{
		Open: func(ctx context.Context, dir string) (graph.FilesStore, error) {
			return OpenFiles(ctx, c, generationOf(dir))
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "FilesEvent", "payload_key", events.ToolCallKey("of "+text))
		},
	}
	return g, f
}

// refuse makes a node without a conversation that occupies the key of an event of the
// conversation "c".
func refuse(ctx context.Context, c Config, dir, label, property, payload string) (undo func() error, err error) {
	d, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &store{db: d, generation: generationOf(dir)}
	node := "(n:" + label + " {" + property + ": $key})"
	key := map[string]any{"key": s.payloadKey(events.ConversationID{Tenant: "t", ID: "c"}, payload)}
	undo = func() error {
		defer func() { _ = d.close() }()
		_, err := d.write(ctx, "MATCH "+node+" DELETE n", key)
		return err
	}
	_, err = d.write(ctx, "CREATE "+node, key)
	return undo, err
}

func TestGraphConformance(t *testing.T) {
	t.Parallel()
	g, _ := backends(t)
	storetest.RunGraph(t, g)
}

func TestFilesConformance(t *testing.T) {
	t.Parallel()
	_, f := backends(t)
	storetest.RunFiles(t, f)
}

func TestProjectsConformance(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	storetest.RunProjects(t, storetest.Backend[project.Store]{
		SharedEngine: sharedEngine,
		Open: func(ctx context.Context, dir string) (project.Store, error) {
			s, err := Open(ctx, c, generationOf(dir), ProjectsCodec)
			return NewProjects(s), err
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "ProjectsEvent", "payload_key", events.MessageKey(text))
		},
	})
}

func TestInsightConformance(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	storetest.RunInsight(t, storetest.Backend[insight.Store]{
		SharedEngine: sharedEngine,
		Open: func(ctx context.Context, dir string) (insight.Store, error) {
			s, err := Open(ctx, c, generationOf(dir), InsightCodec)
			return &Insight{s}, err
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "InsightEvent", "payload_key", events.MessageKey(text))
		},
	})
}

func TestBranchConformance(t *testing.T) {
	t.Parallel()
	g, f := backends(t)
	storetest.RunBranches(t, g, f)
}

// generations opens the generations of a server without other data.
func generations(t *testing.T, d *db) {
	c := d.Config
	g, err := OpenGenerations(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	storetest.RunGenerations(t, func(t *testing.T) storetest.Place {
		_, err := g.write(t.Context(), "MATCH (n) WHERE NOT n:MnemeSchema DETACH DELETE n", nil)
		require.NoError(t, err)
		return storetest.Place{
			Generations: g,
			OpenGraph:   func(ctx context.Context, n int) (graph.Store, error) { return OpenGraph(ctx, c, n) },
			OpenFiles:   func(ctx context.Context, n int) (graph.FilesStore, error) { return OpenFiles(ctx, c, n) },
		}
	})
	t.Run("summaries have generations too", func(t *testing.T) {
		for generation := 1; generation <= 2; generation++ {
			s := openSummarised(t, c, generation)
			s.turn("c")
			s.apply(t)
		}
		require.NoError(t, g.Supersede(t.Context(), "summaries", 1, 2))
		require.NoError(t, g.Discard(t.Context(), "summaries", 1))
		b, err := g.Builds(t.Context(), "summaries")
		require.NoError(t, err)
		require.Equal(t, projection.Builds{Serving: 2, Others: []int{}, Last: 2}, b)
		cps, err := g.Checkpoints(t.Context(), "summaries", 2)
		require.NoError(t, err)
		require.Len(t, cps, 1)
		opened, err := OpenReader(t.Context(), c, 2, SummariesCodec)
		require.NoError(t, err)
		r := &Summaries{opened}
		defer func() { require.NoError(t, r.Close()) }()
		found, err := r.Conversation(t.Context(), conversation("c"))
		require.NoError(t, err)
		require.Equal(t, cps[0].Seq, found.LastSeq)
	})
	t.Run("embeddings have generations too", func(t *testing.T) {
		for generation := 1; generation <= 2; generation++ {
			s := openEmbedded(t, c, generation, 8)
			s.say("c", "hello")
			s.apply(t)
		}
		require.NoError(t, g.Supersede(t.Context(), "embeddings", 1, 2))
		require.NoError(t, g.Discard(t.Context(), "embeddings", 1))
		b, err := g.Builds(t.Context(), "embeddings")
		require.NoError(t, err)
		require.Equal(t, projection.Builds{Serving: 2, Others: []int{}, Last: 2}, b)
		for generation, want := range map[int]int{1: 0, 2: 1} {
			opened, err := OpenReader(t.Context(), c, generation, EmbeddingsCodec)
			require.NoError(t, err)
			r := &Embeddings{opened}
			defer func() { require.NoError(t, r.Close()) }()
			found, err := r.Embeddings(t.Context(), conversation("c"), graph.BagQuery{})
			require.NoError(t, err)
			require.Len(t, found, want)
		}
	})
	t.Run("a process unaware that its generation was superseded can't start it again", func(t *testing.T) {
		s, err := OpenGraph(t.Context(), c, 1)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		declared := graph.Projection()
		fingerprint := declared.Fingerprint()
		if g.change(t.Context(), "graph", func(s *serving) error { *s = serving{generation: 1}; return nil }) != nil {
			t.Fatal("the node could not be set back")
		}
		_, err = s.Acquire(t.Context(), 0, fingerprint)
		require.NoError(t, err)
		require.NoError(t, g.Supersede(t.Context(), "graph", 1, 2))
		_, err = s.Acquire(t.Context(), 0, fingerprint)
		require.NoError(t, err, "it is kept up to date for a while")
		require.NoError(t, g.Discard(t.Context(), "graph", 1))
		_, err = s.Acquire(t.Context(), 0, fingerprint)
		require.ErrorIs(t, err, projection.ErrSuperseded)
		b, err := g.Builds(t.Context(), "graph")
		require.NoError(t, err)
		require.NotContains(t, b.Others, 1, "nothing was written")
	})
}
