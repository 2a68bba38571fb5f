package window_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// searched is a conversation with calls of tools.
func searched(t *testing.T) (*store, window.Source) {
	t.Helper()
	s := newStore(t)
	c := newTalk(t, "c").user("Why does it fail?").assistant("I look.").
		call("k1", "Bash", args{"command": "go test ./pkg/parser", "description": "Run the tests"}).result("k1", false, "--- FAIL: TestQuotes\n    parser.go:12: unexpected quote").
		call("k2", "Read", args{"file_path": "/w/pkg/parser.go"}).result("k2", true, strings.Repeat("func filler() {}\n", 200)+"func unquote(s string) string { return s }\n").
		user("And now?").assistant("Better.").
		call("k3", "Bash", args{"command": []string{"go", "test", "./..."}}).result("k3", true, "ok  	parser	0.01s").
		call("k4", "Edit", args{"file_path": "/w/pkg/parser.go", "old_string": "a"}).result("k4", true, "")
	c.add(&events.ToolReturned{ToolCallID: "nobody", Result: events.JSONResult(quoted(t, "a parser without a call")), Error: "exit status 1"})
	s.apply(c.events)
	return s, window.Source{Graph: s.graph, Recall: s.indexes.Of(view.Source{Messages: s.graph, Rows: s.graph})}
}

// calls returns the calls whose results a query finds.
func calls(t *testing.T, src window.Source, q window.SearchQuery) (ids []string) {
	t.Helper()
	q.Conversation, q.MaxChars = idOf("c"), 200
	if q.Limit == 0 {
		q.Limit = 10
	}
	hits, _, _, err := window.SearchTools(t.Context(), src, q)
	require.NoError(t, err)
	for _, h := range hits {
		ids = append(ids, h.Result.ToolCallID)
	}
	return ids
}

func TestASearchOfToolResultsPointsToTheirCalls(t *testing.T) {
	t.Parallel()
	_, src := searched(t)
	hits, found, next, err := window.SearchTools(t.Context(), src, window.SearchQuery{Conversation: idOf("c"), Text: "unexpected quote", Limit: 1, MaxChars: 200})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.Zero(t, found.From)
	require.Zero(t, next, "nothing else has these words")
	h := hits[0]
	require.Equal(t, "k1", h.Call.ToolCallID)
	require.Equal(t, "Bash", h.Call.ToolName)
	require.Equal(t, "go test ./pkg/parser", h.About)
	require.Contains(t, h.Text, "unexpected quote")
	require.Equal(t, 1.0, h.Match.Relevance)
	require.Positive(t, h.Match.BM25)

	hits, _, _, err = window.SearchTools(t.Context(), src, window.SearchQuery{Conversation: idOf("c"), Text: "unquote", Limit: 1, MaxChars: 200})
	require.NoError(t, err)
	require.Contains(t, hits[0].Text, "func unquote", "the part around the match")
	require.True(t, strings.HasPrefix(hits[0].Text, "[…]"), hits[0].Text)

	hits, _, _, err = window.SearchTools(t.Context(), src, window.SearchQuery{Conversation: idOf("c"), Text: "exit status", Limit: 1, MaxChars: 200})
	require.NoError(t, err)
	require.Equal(t, "a parser without a call\nexit status 1", hits[0].Text, "errors are searched")
	require.Zero(t, hits[0].Call.Seq)
	require.Empty(t, hits[0].About)
}

func TestAFilterKeepsToolResultsByTheirCallPlaceAndText(t *testing.T) {
	t.Parallel()
	_, src := searched(t)
	newest := []string{"nobody", "k4", "k3", "k2", "k1"}
	for name, c := range map[string]struct {
		q    window.SearchQuery
		want []string
	}{
		"all, newest first":    {window.SearchQuery{}, newest},
		"a tool in any case":   {window.SearchQuery{Keep: window.Filter{Tool: "bash"}}, []string{"k3", "k1"}},
		"a file":               {window.SearchQuery{Keep: window.Filter{File: "pkg/parser.go"}}, []string{"k4", "k2"}},
		"part of a name":       {window.SearchQuery{Keep: window.Filter{File: "arser.go"}}, nil},
		"a file and a tool":    {window.SearchQuery{Keep: window.Filter{File: "parser.go", Tool: "Edit"}}, []string{"k4"}},
		"a turn":               {window.SearchQuery{Keep: window.Filter{ToTurn: 1}}, []string{"k2", "k1"}},
		"from a turn":          {window.SearchQuery{Keep: window.Filter{FromTurn: 2, Tool: "Bash"}}, []string{"k3"}},
		"a phrase":             {window.SearchQuery{Keep: window.Filter{Contains: []string{"unexpected quo*"}}}, []string{"k1"}},
		"without a word":       {window.SearchQuery{Keep: window.Filter{Tool: "Bash", Without: []string{"fail"}}}, []string{"k3"}},
		"words and a tool":     {window.SearchQuery{Text: "parser", Keep: window.Filter{Tool: "Bash"}}, []string{"k3", "k1"}},
		"as of":                {window.SearchQuery{AsOf: 5}, []string{"k1"}},
		"the first two":        {window.SearchQuery{Limit: 2}, newest[:2]},
		"after the first four": {window.SearchQuery{From: 4}, newest[4:]},
		"after all":            {window.SearchQuery{From: 99}, nil},
		"no such word":         {window.SearchQuery{Text: "zebra"}, nil},
		"a prefix":             {window.SearchQuery{Prefixes: []string{"unexp"}}, []string{"k1"}},
	} {
		require.Equal(t, c.want, calls(t, src, c.q), name)
	}
}

func TestPagesOfToolResultsMakeUpTheWhole(t *testing.T) {
	t.Parallel()
	_, src := searched(t)
	for _, q := range []window.SearchQuery{{}, {Text: "parser"}, {Keep: window.Filter{Tool: "Bash"}}, {Keep: window.Filter{Without: []string{"quote"}}}} {
		q.Conversation, q.MaxChars, q.Limit = idOf("c"), 200, 100
		whole, _, next, err := window.SearchTools(t.Context(), src, q)
		require.NoError(t, err)
		require.Zero(t, next)
		var paged []window.ToolHit
		for q.Limit = 1; ; q.From = next {
			var page []window.ToolHit
			page, _, next, err = window.SearchTools(t.Context(), src, q)
			require.NoError(t, err)
			if paged = append(paged, page...); next == 0 {
				break
			}
		}
		require.Equal(t, whole, paged)
	}
}

// A branch finds the results that it inherited, with the turns that it shows them in.
func TestABranchFindsTheToolResultsThatItInherited(t *testing.T) {
	t.Parallel()
	s, _ := searched(t)
	branch := newTalk(t, "b").add(&events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "c", MessageID: "m8"}})
	branch.user("Another way?").assistant("Yes.").call("k1", "Grep", args{"pattern": "quote"}).result("k1", true, "a quote in the branch")
	s.apply(branch.events)
	lineage, err := graph.LineageOf(t.Context(), s.graph, idOf("b"), graph.Latest)
	require.NoError(t, err)
	require.NotNil(t, lineage.Inherited())
	read := lineage.Graph(s.graph)
	src := window.Source{Graph: s.indexes.Graph(read, lineage.Descent()), Recall: s.indexes.Of(view.Source{Messages: read, Rows: read, Edition: lineage.Descent()})}
	hits, _, _, err := window.SearchTools(t.Context(), src, window.SearchQuery{Conversation: idOf("b"), Text: "quote", Limit: 10, MaxChars: 300})
	require.NoError(t, err)
	var got []string
	for _, h := range hits {
		got = append(got, fmt.Sprint(h.Call.ToolName, " ", h.Result.InheritedFrom, " ", h.Result.Turn))
	}
	require.ElementsMatch(t, []string{"Grep  3", "Bash c 1"}, got, "the same id names two calls")
}

func TestAListWithoutWordsHasWhatTheFilterKeepsNewestFirst(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := newTalk(t, "c")
	for i := range 450 {
		c.user(fmt.Sprint("question ", i)).assistant(fmt.Sprint("answer ", i, " about the parser"))
	}
	s.apply(c.events)
	q := window.SearchQuery{Conversation: idOf("c"), Limit: 7, MaxChars: 200, AsOf: 801, Keep: window.Filter{Role: "user", Contains: []string{"question 3*"}}}
	var texts []string
	for before, pages := uint64(0), 0; ; pages++ {
		hits, next, err := window.List(t.Context(), s.source(), q, before)
		require.NoError(t, err)
		require.LessOrEqual(t, len(hits), 7)
		for _, h := range hits {
			texts = append(texts, h.Text)
		}
		if before = next; next == 0 {
			break
		}
		require.Less(t, pages, 100)
	}
	var want []string
	for i := 449; i >= 0; i-- {
		if text := fmt.Sprint("question ", i); strings.HasPrefix(text, "question 3") && 2*i+1 <= 801 {
			want = append(want, text)
		}
	}
	require.Equal(t, want, texts)
}

// A list begins where its filter begins: whatever is newer is not examined.
func TestAListOfTheBeginningOfALongConversationIsThereAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := newTalk(t, "c")
	for i := range window.MaxExamined/2 + 20 {
		c.user(fmt.Sprint("question ", i)).assistant(fmt.Sprint("answer ", i))
	}
	s.apply(c.events)
	hits, next, err := window.List(t.Context(), s.source(), window.SearchQuery{Conversation: idOf("c"), Limit: 5, MaxChars: 200, Keep: window.Filter{ToSeq: 3}}, 0)
	require.NoError(t, err)
	require.Zero(t, next)
	require.Len(t, hits, 3)
	require.Equal(t, "question 1", hits[0].Text)
	hits, next, err = window.List(t.Context(), s.source(), window.SearchQuery{Conversation: idOf("c"), Limit: 5, MaxChars: 200, Keep: window.Filter{FromTurn: window.MaxExamined/2 + 20, Role: "user"}}, 0)
	require.NoError(t, err)
	require.Zero(t, next, "nothing before that turn is examined")
	require.Len(t, hits, 1)
}
