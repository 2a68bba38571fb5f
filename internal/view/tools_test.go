package view_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window"
)

// called and returned are a tool call and its result.
func called(id, tool, file string) events.Payload {
	return &events.ToolCalled{ToolCallID: id, ToolName: tool, Arguments: json.RawMessage(fmt.Sprintf(`{"file_path":%q}`, file))}
}

func returned(id, text string) events.Payload {
	result, _ := json.Marshal(text)
	return &events.ToolReturned{ToolCallID: id, Result: events.JSONResult(result)}
}

// results searches the tool results of a conversation.
func results(t *testing.T, c *view.Cache, r graph.Reader, conversation, text string, asOf uint64) window.ToolsFound {
	t.Helper()
	f, err := c.Of(view.Source{Messages: r, Rows: r}).SearchTools(t.Context(), id(conversation), recall.Query{Text: text, AsOf: asOf, By: recall.ByWords})
	require.NoError(t, err)
	return f
}

func TestToolResultsAreIndexedWhenTheyAreFirstAskedFor(t *testing.T) {
	t.Parallel()
	s, c := newStore(t), view.NewCache(64<<20, nil)
	s.add(t, "c", &events.MessageCreated{MessageID: "m", Role: "user", Content: "zebra"}, called("k1", "Read", "/w/a.go"), returned("k1", strings.Repeat("The parser fails on quotes. ", 100)))
	require.NotEmpty(t, found(t, c, s.model, "c", "zebra", 0))
	before := c.Figures().Bytes
	hits := results(t, c, s.model, "c", "the parser", 0).Hits
	require.Len(t, hits, 1)
	require.Equal(t, "Read", hits[0].Tool)
	require.Equal(t, []string{"/w/a.go"}, hits[0].Files)
	require.EqualValues(t, 3, hits[0].Seq)
	require.Greater(t, c.Figures().Bytes, before, "it counts in the cache")
	require.Empty(t, results(t, c, s.model, "c", "zebra", 0).Hits, "messages are not results")

	s.add(t, "c", called("k2", "Bash", "/w/b.go"), called("k3", "Bash", "/w/b.go"), returned("k3", "the parser again"))
	require.Len(t, results(t, c, s.model, "c", "parser", 0).Hits, 2)
	s.add(t, "c", returned("k2", "a parser that came late"), returned("nobody", "a parser without a call"))
	all := results(t, c, s.model, "c", "", 0).Hits
	require.Len(t, all, 4)
	require.Equal(t, []string{"", "Bash", "Bash", "Read"}, []string{all[0].Tool, all[1].Tool, all[2].Tool, all[3].Tool}, "newest first")
	s.add(t, "c", called("nobody", "Late", "/w/c.go"))
	require.Equal(t, "Late", results(t, c, s.model, "c", "", 0).Hits[0].Tool, "a call may follow its result")
	require.Empty(t, results(t, c, s.model, "c", "", s.seq-1).Hits[0].Tool, "as of before it")
}

// In any order of searches and appends, a search as of a sequence must answer like an index that was
// made when that sequence was the last.
func TestToolResultsAsOfASequenceAnswerAsBackThen(t *testing.T) {
	t.Parallel()
	words := strings.Fields("parser path quote lunch noon test fail cache shard index graph log event turn store file")
	random := rand.New(rand.NewPCG(3, 4))
	text := func() string {
		var w []string
		for range random.IntN(9) {
			w = append(w, words[random.IntN(len(words))])
		}
		return strings.Join(w, " ")
	}
	s, kept := newStore(t), view.NewCache(64<<20, nil)
	then := map[uint64][]window.CalledHit{}
	var open []string
	for n := range 60 {
		var list []events.Payload
		for k := range 1 + random.IntN(4) {
			name := fmt.Sprint("k", n, "-", k)
			list, open = append(list, called(name, words[random.IntN(4)], "/a.go")), append(open, name)
		}
		for range random.IntN(5) {
			if i := random.IntN(len(open) + 1); i < len(open) {
				list, open = append(list, returned(open[i], text())), append(open[:i], open[i+1:]...)
			}
		}
		s.add(t, "c", list...)
		query := "the parser of the log"
		then[s.seq] = results(t, view.NewCache(64<<20, nil), s.model, "c", query, 0).Hits
		if random.IntN(2) == 0 {
			require.Equal(t, then[s.seq], results(t, kept, s.model, "c", query, 0).Hits)
		}
	}
	for seq, want := range then {
		require.Equal(t, want, results(t, kept, s.model, "c", "the parser of the log", seq).Hits, "as of %d", seq)
	}
}

func TestTheIndexOfToolResultsKeepsTheNewestWithinItsShare(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	random := rand.New(rand.NewPCG(5, 6))
	const all = 1_500
	for n := range all {
		var text strings.Builder
		for range 150 {
			fmt.Fprintf(&text, "w%d ", random.IntN(1_000_000))
		}
		s.add(t, "c", called(fmt.Sprint("k", n), "Read", fmt.Sprint("/a", n)), returned(fmt.Sprint("k", n), text.String()+fmt.Sprint("parser", n)))
	}
	whole := view.NewCache(1<<30, nil)
	require.Zero(t, results(t, whole, s.model, "c", "parser0", 0).From)
	const budget = 8 << 20
	require.Greater(t, whole.Figures().Bytes, budget)
	c := view.NewCache(budget, nil)
	newest := results(t, c, s.model, "c", fmt.Sprint("parser", all-1), 0)
	require.Len(t, newest.Hits, 1)
	require.Equal(t, "Read", newest.Hits[0].Tool)
	require.NotZero(t, newest.From)
	require.LessOrEqual(t, c.Figures().Bytes, budget/4)
	require.Greater(t, c.Figures().Bytes, budget/8)
	require.Empty(t, results(t, c, s.model, "c", "parser0", 0).Hits)
	complete := func() {
		t.Helper()
		left := results(t, c, s.model, "c", "", 0)
		require.InDelta(t, left.From, left.Hits[len(left.Hits)-1].Seq, 1, "it says what it left out")
		require.Greater(t, len(left.Hits), 10)
		for i, hit := range left.Hits {
			require.Equal(t, s.seq-uint64(2*i), hit.Seq, "and nothing else")
			require.NotEmpty(t, hit.Tool, "seq %d", hit.Seq)
		}
		require.LessOrEqual(t, c.Figures().Bytes, budget/4)
	}
	complete()
	for n := range all {
		s.add(t, "c", called(fmt.Sprint("l", n), "Read", fmt.Sprint("/a", n)), returned(fmt.Sprint("l", n), fmt.Sprint("parser again ", strings.Repeat(fmt.Sprint("v", n, " x", n, " "), 70))))
		if n%100 == 0 {
			complete()
		}
	}
}

func TestSearchesForToolResultsMayRunAtOnce(t *testing.T) {
	t.Parallel()
	s, c := newStore(t), view.NewCache(1<<20, nil)
	for n := range 50 {
		s.add(t, "c", called(fmt.Sprint("k", n), "Read", "/a"), returned(fmt.Sprint("k", n), fmt.Sprint("parser ", n)))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			f, err := c.Of(view.Source{Messages: s.model, Rows: s.model}).SearchTools(t.Context(), id("c"), recall.Query{Text: "parser", By: recall.ByWords})
			if err != nil || len(f.Hits) != 50 {
				t.Errorf("%d hits, %v", len(f.Hits), err)
			}
		})
	}
	all.Wait()
}

func TestAnUnknownConversationHasNoToolResults(t *testing.T) {
	t.Parallel()
	s, c := newStore(t), view.NewCache(1<<20, nil)
	_, err := c.Of(view.Source{Messages: s.model, Rows: s.model}).SearchTools(t.Context(), id("nobody"), recall.Query{Text: "x"})
	require.ErrorIs(t, err, graph.ErrNotFound)
	require.Zero(t, c.Figures().Indexes)
}
