package view_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/view/viewtest"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window"
)

// library is a history of conversations, and the read models of it.
type library struct {
	served
	*storetest.History
	t        *testing.T
	graph    *sqlitestore.Graph
	files    *sqlitestore.Files
	projects *sqlitestore.Projects
}

func (l *library) Graph(context.Context) (view.Pinned[graph.Reader], error) {
	return view.Pinned[graph.Reader]{Model: l.graph, Generation: 1, Release: func() {}}, nil
}

func (l *library) Files(context.Context) (view.Pinned[graph.FilesReader], error) {
	return view.Pinned[graph.FilesReader]{Model: l.files, Generation: 1, Release: func() {}}, nil
}

func (l *library) Projects(context.Context) (view.Pinned[project.Reader], error) {
	return view.Pinned[project.Reader]{Model: l.projects, Generation: 1, Release: func() {}}, nil
}

func newLibrary(t *testing.T) *library {
	t.Parallel()
	return &library{t: t, History: storetest.NewHistory()}
}

// ran adds results of tools to a conversation. Each call has the place of its result as its id, from k1.
func (l *library) ran(conversation string, texts ...string) {
	for i, text := range texts {
		id := fmt.Sprint("k", i+1)
		l.Add(conversation, called(id, "Edit", "/a.go"))
		l.Add(conversation, returned(id, text))
	}
}

// begun starts a conversation of a project. It ends with a message "m", from which others may branch.
func (l *library) begun(conversation, in string, texts ...string) {
	l.Add(conversation, &events.ConversationStarted{Project: in})
	l.ran(conversation, texts...)
	l.Add(conversation, &events.MessageCreated{MessageID: "m", Role: "assistant", Content: "Done."})
}

// branched starts a branch at the message "m" of a conversation, as begun does.
func (l *library) branched(conversation, in, parent string, texts ...string) {
	l.Add(conversation, &events.ConversationStarted{Project: in, BranchedFrom: &events.BranchedAt{ConversationID: parent, MessageID: "m"}})
	l.ran(conversation, texts...)
	l.Add(conversation, &events.MessageCreated{MessageID: "m", Role: "assistant", Content: "Done."})
}

// stored makes the read models of the history.
func (l *library) stored() *library {
	l.t.Helper()
	var err error
	dir := l.t.TempDir()
	l.graph, err = sqlitestore.OpenGraph(l.t.Context(), filepath.Join(dir, "graph.db"))
	require.NoError(l.t, err)
	l.files, err = sqlitestore.OpenFiles(l.t.Context(), filepath.Join(dir, "files.db"))
	require.NoError(l.t, err)
	opened, err := sqlitestore.Open(l.t.Context(), filepath.Join(dir, "projects.db"), sqlitestore.ProjectsCodec)
	require.NoError(l.t, err)
	l.projects = sqlitestore.NewProjects(opened)
	l.t.Cleanup(func() { _, _, _ = l.graph.Close(), l.files.Close(), l.projects.Close() })
	applyAll(l, graph.Projection(), l.graph)
	applyAll(l, graph.FilesProjection(files.DefaultTable()), l.files)
	applyAll(l, project.Projection(files.DefaultTable()), l.projects)
	return l
}

// applyAll applies the history to a read model.
func applyAll[U projection.Unit](l *library, p projection.Projection[U], s projection.Store[U]) {
	l.t.Helper()
	cp, err := s.Acquire(l.t.Context(), 0, p.Fingerprint())
	require.NoError(l.t, err)
	_, err = p.Apply(l.t.Context(), s, cp, l.Messages)
	require.NoError(l.t, err)
}

// search searches the tool results of a project as a request does.
func (l *library) search(c *view.Cache, in string, q window.SearchQuery) (*view.ToolsOf, []view.ToolHit) {
	l.t.Helper()
	if q.MaxChars = 200; q.Limit == 0 {
		q.Limit = 1_000
	}
	models := viewtest.Watch(l)
	defer func() { require.Empty(l.t, models.Leaks()) }()
	pins := view.New(view.Config{Models: models, Cache: c}).Pin()
	defer pins.Release()
	r, _, err := pins.Projects(l.t.Context())
	require.NoError(l.t, err)
	p, err := project.Find(l.t.Context(), r, "t", in, graph.Latest)
	require.NoError(l.t, err)
	tools, err := pins.ToolsOf(l.t.Context(), p, q.Keep)
	require.NoError(l.t, err)
	hits, err := tools.Search(l.t.Context(), q)
	require.NoError(l.t, err)
	return tools, hits
}

// names returns which results were found.
func names(hits []view.ToolHit) (list []string) {
	for _, h := range hits {
		list = append(list, h.Conversation.ID.ID+"/"+h.Result.ToolCallID)
	}
	return list
}

// branches are a conversation with a branch, a branch of that, and one in which no tool ran.
func branches(t *testing.T) *library {
	l := newLibrary(t)
	l.begun("parent", "p", "a zebra in the parser", "lunch at noon")
	l.branched("branch", "p", "parent", "the zebra again, in a branch")
	l.branched("twig", "p", "branch", "lunch in a twig", "a zebra in a twig")
	l.branched("silent", "p", "twig")
	l.Add("parent", called("k3", "Read", "/b.go"))
	l.Add("parent", returned("k3", "a zebra after the branches"))
	return l.stored()
}

func TestAResultThatBranchesInheritedIsFoundOnce(t *testing.T) {
	l := branches(t)
	c := view.NewCache(64<<20, nil)
	newest := []string{"parent/k3", "twig/k2", "twig/k1", "branch/k1", "parent/k2", "parent/k1"}
	for name, want := range map[string]struct {
		q    window.SearchQuery
		want []string
	}{
		"all, newest first": {window.SearchQuery{}, newest},
		"words":             {window.SearchQuery{Text: "zebra"}, []string{"parent/k3", "twig/k2", "branch/k1", "parent/k1"}},
		"a prefix":          {window.SearchQuery{Prefixes: []string{"zeb"}}, []string{"parent/k3", "twig/k2", "branch/k1", "parent/k1"}},
		"a phrase":          {window.SearchQuery{Text: "zebra", Keep: window.Filter{Contains: []string{"a zebra in"}}}, []string{"twig/k2", "parent/k1"}},
		"a tool":            {window.SearchQuery{Keep: window.Filter{Tool: "Read"}}, newest[:1]},
		"a file":            {window.SearchQuery{Keep: window.Filter{File: "a.go"}}, newest[1:]},
		"no such word":      {window.SearchQuery{Text: "giraffe"}, nil},
	} {
		tools, hits := l.search(c, "p", want.q)
		require.ElementsMatch(t, want.want, names(hits), name)
		require.Equal(t, []any{3, 0, false}, []any{tools.Searched, tools.Left, tools.Partial}, "%s: a branch without results of its own is none", name)
		for limit := 1; limit < 8; limit++ {
			q := want.q
			q.Limit = limit
			_, some := l.search(c, "p", q)
			require.Equal(t, hits[:min(limit, len(hits))], some, "%s: a limit counts each once", name)
		}
	}
	_, hits := l.search(c, "p", window.SearchQuery{})
	require.Equal(t, newest, names(hits))
}

func TestABranchElsewhereShowsOnlyItsOwnResults(t *testing.T) {
	l := newLibrary(t)
	l.begun("parent", "p", "a zebra in the parser")
	l.branched("branch", "q", "parent", "the zebra again")
	l.stored()
	c := view.NewCache(64<<20, nil)
	_, hits := l.search(c, "p", window.SearchQuery{Text: "zebra"})
	require.Equal(t, []string{"parent/k1"}, names(hits))
	_, hits = l.search(c, "q", window.SearchQuery{Text: "zebra"})
	require.Equal(t, []string{"branch/k1"}, names(hits))
}

func TestResultsThatBranchesInheritedDoNotFillASearch(t *testing.T) {
	l := newLibrary(t)
	var texts []string
	for n := range 2_000 {
		texts = append(texts, fmt.Sprint("zebra ", n))
	}
	l.begun("parent", "p", texts...)
	const branches = 12 // with 24,000 results that they inherited
	for n := range branches {
		l.branched(fmt.Sprint("b", n), "p", "parent", "a zebra of its own")
	}
	l.stored()
	tools, hits := l.search(view.NewCache(1<<30, nil), "p", window.SearchQuery{Text: "zebra"})
	require.Equal(t, []any{branches + 1, 0, false}, []any{tools.Searched, tools.Left, tools.Partial})
	require.Len(t, hits, 1_000)
}

func TestEqualResultsOfAConversationAreFoundOnce(t *testing.T) {
	l := newLibrary(t)
	l.begun("one", "p", "the zebra", "a zebra and a lion", "the zebra", "the zebra")
	l.begun("two", "p", "the zebra")
	l.stored()
	c := view.NewCache(64<<20, nil)
	_, hits := l.search(c, "p", window.SearchQuery{Text: "the zebra"})
	require.Equal(t, []string{"two/k1", "one/k4", "one/k2"}, names(hits), "the newest of them, and those of another conversation too")
	require.Equal(t, []int{0, 2, 0}, []int{hits[0].Duplicates, hits[1].Duplicates, hits[2].Duplicates})
	_, hits = l.search(c, "p", window.SearchQuery{})
	require.Equal(t, []string{"two/k1", "one/k4", "one/k2"}, names(hits), "without words, too")
}

// More results are read than are missing, but no more are shown.
func TestASearchWithEqualResultsShowsNoMoreThanItsLimit(t *testing.T) {
	l := newLibrary(t)
	texts := []string{}
	for i := range 20 {
		texts = append(texts, "the zebra", fmt.Sprint("the zebra ", i))
	}
	l.begun("one", "p", texts...)
	l.stored()
	_, hits := l.search(view.NewCache(64<<20, nil), "p", window.SearchQuery{Limit: 3})
	require.Equal(t, []string{"one/k40", "one/k39", "one/k38"}, names(hits))
	_, hits = l.search(view.NewCache(64<<20, nil), "p", window.SearchQuery{Limit: 21})
	require.Len(t, hits, 21)
}

// scores are the scores of the results that a query finds, by text.
func scores(hits []view.ToolHit) map[string]float64 {
	list := map[string]float64{}
	for _, h := range hits {
		list[h.Text] = h.Match.BM25
	}
	return list
}

func TestAWordIsAsRareAsWithoutTheBranchesThatInheritedIt(t *testing.T) {
	parent := []string{"a zebra in the parser", "lunch at noon", "the parser works"}
	branch, twig := []string{"the lunch again, in a branch"}, []string{"another lunch in the parser", ""}
	l := newLibrary(t)
	l.begun("parent", "p", parent...)
	l.branched("branch", "p", "parent", branch...)
	l.branched("twig", "p", "branch", twig...)
	for n := range 5 {
		l.branched(fmt.Sprint("empty", n), "p", "twig", "")
	}
	l.stored()
	apart := &library{t: t, History: storetest.NewHistory()}
	apart.begun("parent", "p", parent...)
	apart.begun("branch", "p", branch...)
	apart.begun("twig", "p", twig...)
	apart.stored()
	for _, q := range []window.SearchQuery{{Text: "zebra lunch parser"}, {Text: "noon", Prefixes: []string{"pars", "lun"}}} {
		_, want := apart.search(view.NewCache(64<<20, nil), "p", q)
		_, got := l.search(view.NewCache(64<<20, nil), "p", q)
		require.NotEmpty(t, want)
		require.Equal(t, scores(want), scores(got))
		require.Len(t, got, len(want))
	}
}

func TestACacheWithoutRoomForAllConversationsFindsTheSame(t *testing.T) {
	l := newLibrary(t)
	for n := range 20 {
		l.begun(fmt.Sprint("c", n), "p", fmt.Sprint("a zebra in the parser ", strings.Repeat("and more ", n)), fmt.Sprint("lunch ", n))
		l.branched(fmt.Sprint("b", n), "p", fmt.Sprint("c", n), fmt.Sprint("the parser again ", n))
	}
	l.stored()
	large, small := view.NewCache(64<<20, nil), view.NewCache(1, nil)
	for _, q := range []window.SearchQuery{{}, {Text: "zebra parser"}, {Text: "parser", Limit: 7}, {Prefixes: []string{"lun"}}, {Text: "parser", Keep: window.Filter{Without: []string{"zebra"}}}} {
		tools, want := l.search(large, "p", q)
		require.NotEmpty(t, want)
		require.Equal(t, []any{40, 0, false}, []any{tools.Searched, tools.Left, tools.Partial})
		for range 2 {
			tools, hits := l.search(small, "p", q)
			require.Equal(t, want, hits)
			require.Equal(t, []any{40, 0, false}, []any{tools.Searched, tools.Left, tools.Partial})
		}
	}
	require.Zero(t, large.Figures().Evicted)
	require.Equal(t, 1, small.Figures().Indexes)
	require.Greater(t, small.Figures().Evicted, 40)
}

// words are some that no other text has.
func words(name string, n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%sx%d ", name, i)
	}
	return text.String()
}

func TestASearchSaysForWhichConversationsTheCacheHasNoRoom(t *testing.T) {
	l := newLibrary(t)
	const all = 8
	for n := range all {
		l.begun(fmt.Sprint("c", n), "p", "a zebra", words(fmt.Sprint("w", n), 2_500)) // about a quarter of a MiB
	}
	l.stored()
	large := view.NewCache(1<<30, nil)
	tools, whole := l.search(large, "p", window.SearchQuery{})
	require.Equal(t, []int{all, 0}, []int{tools.Searched, tools.Left})
	small := view.NewCache(4<<20, nil)
	for range 2 {
		tools, hits := l.search(small, "p", window.SearchQuery{})
		require.Greater(t, tools.Searched, 1)
		require.Greater(t, tools.Left, 1)
		require.Equal(t, all, tools.Searched+tools.Left)
		require.False(t, tools.Partial, "of those that were searched, nothing was left out")
		require.Equal(t, whole[:2*tools.Searched], hits, "the newest ones, as with a larger cache")
		require.LessOrEqual(t, small.Figures().Bytes, 2<<20, "a search leaves room for others")
		_, hits = l.search(small, "p", window.SearchQuery{Text: "zebra"})
		require.Len(t, hits, tools.Searched)
	}
}

func TestASearchSaysThatItLeftOutResultsOfALongConversation(t *testing.T) {
	l := newLibrary(t)
	var long []string
	for n := range 20 {
		long = append(long, words(fmt.Sprint("w", n), 1_000))
	}
	l.begun("long", "p", long...)
	l.begun("short", "q", "a zebra")
	l.branched("branch", "r", "long", "a zebra", "another zebra")
	l.stored()
	c := view.NewCache(1, nil)
	tools, hits := l.search(c, "p", window.SearchQuery{})
	require.True(t, tools.Partial)
	require.Less(t, len(hits), len(long))
	require.Equal(t, "long/k20", names(hits)[0], "the newest are there")
	_, whole := l.search(view.NewCache(1<<30, nil), "p", window.SearchQuery{})
	require.Equal(t, whole[:len(hits)], hits)

	tools, _ = l.search(c, "q", window.SearchQuery{})
	require.False(t, tools.Partial)
	tools, hits = l.search(c, "r", window.SearchQuery{})
	require.Equal(t, []string{"branch/k2", "branch/k1"}, names(hits))
	require.False(t, tools.Partial, "what a branch inherited is that of its parent")
}
