package window_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
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

// A search of a project ranks more conversations than it shows, because some may have left the project.
func TestMessagesOfConversationsThatAreNotShownAreNotRead(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for i := range 8 {
		s.apply(newTalk(t, fmt.Sprint("c", i)).user(strings.Repeat("Fix the parser. ", i+1)).assistant("Done.").events)
	}
	src := &counting{Graph: s.graph}
	q := about("parser")
	q.Tenant, q.MaxChars = tenant, 200
	source := window.TenantSource{Graph: src, Recall: s.indexes.OfTenants(s.graph)}
	all, _, err := window.SearchAll(t.Context(), source, q)
	require.NoError(t, err)
	require.Len(t, all, 8)

	gone := all[0].ID
	q.Limit, src.reads = 2, 0
	q.Of = func(_ context.Context, ranked []events.ConversationID) ([]bool, error) {
		in := make([]bool, len(ranked))
		for i, id := range ranked {
			in[i] = id != gone
		}
		return in, nil
	}
	some, _, err := window.SearchAll(t.Context(), source, q)
	require.NoError(t, err)
	require.Equal(t, all[1:3], some)
	require.Equal(t, 2, src.reads)
}
