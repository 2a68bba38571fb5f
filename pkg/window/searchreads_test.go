package window_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/window"
)

// manyFit is a conversation in which 500 messages and 500 results have the words of a query, and every hundredth of them
// the phrase of a filter. The results are all different or, if they are the same, all but these.
func manyFit(t *testing.T, same bool) (*counting, window.SearchQuery) {
	t.Helper()
	s := newStore(t)
	c := newTalk(t, "c").user("Look.")
	for i := range 500 {
		text := "the parser reads tokens"
		if !same || i%100 == 50 {
			text += fmt.Sprintf(" for item %d", i)
		}
		if i%100 == 50 {
			text += " as in a zebra crossing"
		}
		id := fmt.Sprintf("k%d", i)
		c.assistant(fmt.Sprintf("%s, says %d", text, i)).call(id, "Read", args{"file_path": "/w/a.go"}).result(id, true, text)
	}
	s.apply(c.events)
	src := &counting{Graph: s.graph, files: s.files, recall: s.indexes.Of(view.Source{Messages: s.graph, Rows: s.graph})}
	return src, window.SearchQuery{Conversation: idOf("c"), Text: "parser tokens", MaxChars: 200}
}

// Every hit that a filter may leave out is read, but not one by one.
func TestAFilteredSearchReadsManyHitsAtOnce(t *testing.T) {
	t.Parallel()
	src, q := manyFit(t, false)
	q.Keep = window.Filter{Contains: []string{"zebra crossing"}}
	for _, q.Limit = range []int{1, 5, 6, 20} {
		src.reads = 0
		hits, _, _, err := window.Search(t.Context(), src.source(), q)
		require.NoError(t, err)
		require.Len(t, hits, min(q.Limit, 5))
		require.LessOrEqual(t, src.reads, 10, "messages with a limit of %d", q.Limit)

		src.reads = 0
		results, _, _, err := window.SearchTools(t.Context(), src.source(), q)
		require.NoError(t, err)
		require.Len(t, results, min(q.Limit, 5))
		require.LessOrEqual(t, src.reads, 2*10, "results and their calls with a limit of %d", q.Limit)
	}
}

func TestASearchReadsManyEqualResultsAtOnce(t *testing.T) {
	t.Parallel()
	src, q := manyFit(t, true)
	q.Limit = 7
	hits, _, next, err := window.SearchTools(t.Context(), src.source(), q)
	require.NoError(t, err)
	require.Len(t, hits, 6, "those with the phrase, and all others together")
	require.Zero(t, next)
	require.LessOrEqual(t, src.reads, 2*10)
}

// A page ends with the hit that fills it, although more were read.
func TestPagesOfAFilteredSearchMakeUpTheWhole(t *testing.T) {
	t.Parallel()
	src, q := manyFit(t, false)
	q.Keep, q.Limit = window.Filter{Without: []string{"zebra"}}, 1000
	whole, _, next, err := window.Search(t.Context(), src.source(), q)
	require.NoError(t, err)
	require.Zero(t, next)
	require.Equal(t, 495+1, len(whole), "the first message is near those with the words")
	results, _, _, err := window.SearchTools(t.Context(), src.source(), q)
	require.NoError(t, err)
	require.Equal(t, 495, len(results))

	var seqs []uint64
	for q.Limit = 7; ; q.From = next {
		var page []window.Hit
		page, _, next, err = window.Search(t.Context(), src.source(), q)
		require.NoError(t, err)
		for _, h := range page {
			seqs = append(seqs, h.Seq)
		}
		if next == 0 {
			break
		}
	}
	require.Equal(t, len(whole), len(seqs))
	for i := range whole {
		require.Equal(t, whole[i].Seq, seqs[i])
	}

	seqs = nil
	for q.From = 0; ; q.From = next {
		var page []window.ToolHit
		page, _, next, err = window.SearchTools(t.Context(), src.source(), q)
		require.NoError(t, err)
		for _, h := range page {
			seqs = append(seqs, h.Result.Seq)
		}
		if next == 0 {
			break
		}
	}
	require.Equal(t, len(results), len(seqs))
	for i := range results {
		require.Equal(t, results[i].Result.Seq, seqs[i])
	}
}
