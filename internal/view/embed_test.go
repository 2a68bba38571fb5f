package view_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window"
)

// refusing are the vectors that a model made of the messages of a store, without those that it refused.
type refusing struct {
	graph.EmbeddingsReader
	graph.RecallReader
	refused func(seq uint64) bool
}

func (r *refusing) Embeddings(ctx context.Context, id events.ConversationID, q graph.BagQuery) (list []graph.Embedding, err error) {
	for len(list) < q.Limit {
		bags, err := r.Bags(ctx, id, q)
		if err != nil || len(bags) == 0 {
			return list, err
		}
		for i := range bags {
			if q.From = bags[i].Seq + 1; len(list) < q.Limit && !r.refused(bags[i].Seq) {
				list = append(list, graph.Embedding{Seq: bags[i].Seq, Dimensions: 2, Vectors: []byte{1, 2}})
			}
		}
	}
	return list, nil
}

// elsewhere embeds queries with that model.
type elsewhere struct{ view.BuiltIn }

func (elsewhere) Query(_ context.Context, text string) (recall.Vector, error) {
	if text == "" {
		return nil, nil
	}
	return recall.Vector{1, 2}, nil
}

// A message that the model refuses for good does not keep those far behind it from getting their vectors.
func TestSearchesFindTheVectorsOfMessagesThatWereRefusedAtFirst(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	texts := make([]string, 3_000)
	for i := range texts {
		texts[i] = fmt.Sprint("message ", i)
	}
	s.say("c", texts...)
	vectors := &refusing{RecallReader: s.model, refused: func(seq uint64) bool { return seq == 1 || seq >= 2_500 && seq < 2_600 }}
	c := view.NewCache(64<<20, elsewhere{})
	missing := func() string {
		found, err := c.Of(view.Source{Messages: s.model, Embeddings: vectors}).Search(t.Context(), id("c"), recall.Query{Text: "message", Limit: 1})
		require.NoError(t, err)
		return found.Missing
	}
	require.Equal(t, "101 of 3000 messages have no vectors", missing())
	vectors.refused = func(seq uint64) bool { return seq == 1 }
	last := ""
	for range 5 { // each looks at a part of them
		last = missing()
	}
	require.Equal(t, "1 of 3000 messages have no vectors", last)
	vectors.refused = func(uint64) bool { return false }
	for range 5 {
		last = missing()
	}
	require.Empty(t, last)
}

// A query of the beginning of a word alone has no vector. It leaves those of the messages to the next search.
func TestAQueryWithoutAVectorLosesNoVectorsOfMessages(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	texts := make([]string, 1_500)
	for i := range texts {
		texts[i] = fmt.Sprint("message ", i)
	}
	s.say("c", texts...)
	vectors := &refusing{RecallReader: s.model, refused: func(uint64) bool { return false }}
	c := view.NewCache(64<<20, elsewhere{})
	search := func(q recall.Query) window.Found {
		t.Helper()
		q.Limit = 1
		found, err := c.Of(view.Source{Messages: s.model, Embeddings: vectors}).Search(t.Context(), id("c"), q)
		require.NoError(t, err)
		require.Len(t, found.Hits, 1)
		return found
	}
	found := search(recall.Query{Prefixes: []string{"mess"}})
	require.Empty(t, found.Model)
	require.Empty(t, found.Missing)
	found = search(recall.Query{Text: "message"})
	require.NotEmpty(t, found.Model)
	require.Empty(t, found.Missing)
	require.Positive(t, found.Hits[0].Cosine)
}

// otherwise are vectors of passages into which the texts were not cut.
type otherwise struct{ graph.EmbeddingsReader }

func (otherwise) Embeddings(context.Context, events.ConversationID, graph.BagQuery) ([]graph.Embedding, error) {
	return []graph.Embedding{{Seq: 1, Dimensions: 2, Vectors: []byte{1, 2, 3, 4, 5, 6}}, {Seq: 2, Dimensions: 2, Vectors: []byte{1, 2}}}, nil
}

// Vectors that an earlier version made of a text may be more or fewer than its passages.
func TestVectorsOfOtherPassagesLeaveAMessageWithoutVectors(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.say("c", "message 1", "message 2")
	c := view.NewCache(64<<20, elsewhere{}).Of(view.Source{Messages: s.model, Embeddings: otherwise{}})
	for range 2 {
		found, err := c.Search(t.Context(), id("c"), recall.Query{Text: "message", Limit: 2})
		require.NoError(t, err)
		require.Len(t, found.Hits, 2)
		require.Equal(t, "1 of 2 messages have no vectors", found.Missing)
	}
}
