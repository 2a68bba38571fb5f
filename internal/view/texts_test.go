package view_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/recall"
)

// ranked returns the places of texts ranked by a query, after a search of the conversation.
func ranked(t *testing.T, c *view.Cache, s *store, query string, texts []string) []recall.Hit {
	t.Helper()
	search := c.Of(view.Source{Messages: s.model})
	_, err := search.Search(t.Context(), id("c"), recall.Query{Text: query})
	require.NoError(t, err)
	return search.Rank(id("c"), recall.Query{Text: query}, texts).Hits
}

func TestTextsAreRankedAsByAFreshCache(t *testing.T) {
	s := newStore(t)
	s.say("c", "Something was said.")
	for _, embedder := range []view.Embedder{nil, view.BuiltIn{}} {
		kept := view.NewCache(1<<20, embedder)
		texts := []string{"The garden was planted.", "", "The parser was mended."}
		for i := range 5 {
			texts = append(texts, fmt.Sprintf("Train %d went to Rome.", i))
			for _, list := range [][]string{texts, texts[:len(texts)-1], texts[1:]} {
				got := ranked(t, kept, s, "the parser", list)
				require.Equal(t, ranked(t, view.NewCache(1<<20, embedder), s, "the parser", list), got)
				require.Equal(t, "The parser was mended.", list[got[0].Seq-1])
				require.Equal(t, embedder != nil, got[0].Cosine > 0)
			}
		}
		require.Empty(t, ranked(t, kept, s, "the parser", nil))
	}
}

func TestTextsCountAndAreEvictedWithTheirConversation(t *testing.T) {
	s := newStore(t)
	s.say("c", "Something was said.")
	s.say("d", "Something else was said.")
	c := view.NewCache(1, view.BuiltIn{}) // room for one
	ranked(t, c, s, "garden", nil)
	before := c.Figures()
	ranked(t, c, s, "garden", []string{"The garden was planted.", "The parser was mended."})
	after := c.Figures()
	require.Greater(t, after.Bytes, before.Bytes+40)
	require.Equal(t, before.Loads, after.Loads)
	found(t, c, s.model, "d", "said", 0)
	require.Equal(t, 1, c.Figures().Indexes)
	require.Less(t, c.Figures().Bytes, after.Bytes)
	hits := c.Of(view.Source{Messages: s.model}).Rank(id("c"), recall.Query{Text: "garden"}, []string{"The garden was planted."}).Hits
	require.Len(t, hits, 1, "it is ranked nevertheless")
	require.Equal(t, 1, c.Figures().Indexes)
}

func TestConcurrentRanking(t *testing.T) {
	s, c := newStore(t), view.NewCache(1<<20, view.BuiltIn{})
	s.say("c", "Something was said.")
	lists := [][]string{{"The garden was planted.", "The parser was mended."}, {"The parser was mended."}}
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			list := lists[i%2]
			if hits := c.Of(view.Source{Messages: s.model}).Rank(id("c"), recall.Query{Text: "parser"}, list).Hits; len(hits) == 0 || list[hits[0].Seq-1] != "The parser was mended." {
				t.Errorf("%v", hits)
			}
		})
	}
	wait.Wait()
}
