package sqlitestore

import (
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/projection"
)

// The cost of an append and of a read of the newest N must not depend on the length of the
// conversation. These tests check the plans of the statements actually used, and count the pages
// that SQLite reads.

// stores holds both stores and their history.
type stores struct {
	graph   *Graph
	files   *Files
	graphCP projection.Checkpoint
	filesCP projection.Checkpoint
	history *storetest.History
	covered map[string]*covered // by conversation
}

// covered tracks the summaries of a conversation.
type covered struct {
	next []uint64   // by level, from 1: where the next range begins
	open [][]string // by level: the ids not consolidated yet
}

func openStores(t *testing.T) *stores {
	t.Helper()
	s := &stores{history: storetest.NewHistory(), covered: map[string]*covered{}}
	var err error
	dir := t.TempDir()
	s.graph, err = OpenGraph(t.Context(), Path(dir, "graph", 1))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.graph.Close()) })
	s.files, err = OpenFiles(t.Context(), Path(dir, "files", 1))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.files.Close()) })
	s.graphCP, err = s.graph.Acquire(t.Context(), 0, graphProjection.Fingerprint())
	require.NoError(t, err)
	s.filesCP, err = s.files.Acquire(t.Context(), 0, filesProjection.Fingerprint())
	require.NoError(t, err)
	return s
}

var (
	graphProjection   = graph.Projection()
	filesProjection   = graph.FilesProjection(files.DefaultTable())
	insightProjection = insight.Projection(files.DefaultTable())
)

func (s *stores) apply(t *testing.T) {
	t.Helper()
	var err error
	s.graphCP, err = graphProjection.Apply(t.Context(), s.graph, s.graphCP, s.history.Messages)
	require.NoError(t, err)
	s.filesCP, err = filesProjection.Apply(t.Context(), s.files, s.filesCP, s.history.Messages)
	require.NoError(t, err)
	s.history.Messages = nil
}

func (s *stores) add(conversation string, p events.Payload) {
	if s.covered[conversation] == nil {
		first := s.history.Next
		s.covered[conversation] = &covered{next: slices.Repeat([]uint64{first}, 16), open: make([][]string, 16)}
	}
	s.history.Add(conversation, p)
}

// summarise covers the conversation so far, and consolidates every three summaries of a level. Each
// summary has a revision.
func (s *stores) summarise(name string) {
	c, last := s.covered[name], s.history.Next-1
	var children []string
	for level := 1; ; level++ {
		p := &events.SummaryWritten{
			SummaryID: fmt.Sprint("s", s.history.Next), Level: level, FirstSeq: c.next[level], LastSeq: last, Children: children, Conversation: "said", Method: "extractive",
		}
		s.add(name, p)
		revision := *p
		revision.SummaryID, revision.Supersedes = p.SummaryID+"'", p.SummaryID
		s.add(name, &revision)
		c.next[level], c.open[level] = last+1, append(c.open[level], p.SummaryID)
		if len(c.open[level]) < 3 {
			return
		}
		children, c.open[level] = c.open[level], nil
	}
}

// everything returns one event of each kind, chosen to make each event do as much work as possible.
func (s *stores) everything(c string) {
	n := int(s.history.Next)
	no := false
	title := fmt.Sprint("title", n)
	s.add(c, &events.ConversationStarted{Title: title, Cwd: "/w"})
	s.add(c, &events.ConversationUpdated{Title: &title})
	s.add(c, &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: "user", Content: "hello", References: []events.Reference{{File: "f", Name: "Parse"}}})
	s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("k", n), ToolName: "Grep", Arguments: []byte(`{"path":"/w"}`)})
	s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("k", n), Result: events.JSONResult([]byte(`"a.go:1: x"`))})
	s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("f", n), ToolName: "Read", Arguments: []byte(`{"file_path":"/w/a.go"}`)})
	s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("f", n), Result: events.JSONResult([]byte(`"no"`)), Success: &no})
	s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("e", n), Result: events.JSONResult([]byte(`"early"`))})
	s.add(c, &events.ToolCondensed{ToolCallID: "nobody", Content: "of no result", Model: "m"}) // refused
	s.add(c, &events.ToolCondensed{ToolCallID: fmt.Sprint("k", n), Content: "short", Model: "m"})
	s.summarise(c)
	s.history.AddAs(c, "again", &events.MessageCreated{MessageID: "again", Role: "user"}) // a duplicate after the first time
	s.history.AddAs(c, "clash", &events.MessageCreated{MessageID: "clash", Role: "user", Content: title})
}

// newest runs every read of the newest N.
func (s *stores) newest(t *testing.T, c string) {
	t.Helper()
	ctx, id := t.Context(), events.ConversationID{Tenant: "t", ID: c}
	conversation, err := s.graph.Conversation(ctx, id, graph.Latest)
	require.NoError(t, err)
	_, err = s.graph.Conversation(ctx, id, conversation.LastSeq-1)
	require.NoError(t, err)
	list, err := s.graph.Messages(ctx, id, graph.MessageQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 10)
	_, err = s.graph.Messages(ctx, id, graph.MessageQuery{Limit: 10, Role: "assistant", Before: list[2].Seq})
	require.NoError(t, err)
	entries, err := s.graph.Transcript(ctx, id, graph.TranscriptQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 10)
	_, err = s.graph.Calls(ctx, id, []graph.Ref{{ID: "k1"}}, graph.Latest)
	require.NoError(t, err)
	_, err = s.graph.Results(ctx, id, []graph.Ref{{ID: "k1"}}, graph.Latest)
	require.NoError(t, err)
	_, err = s.graph.MessagesByID(ctx, id, []graph.Ref{{ID: "again"}}, graph.Latest)
	require.NoError(t, err)
	at, err := s.graph.MessagesAt(ctx, id, []uint64{list[0].Seq, list[3].Seq})
	require.NoError(t, err)
	require.Len(t, at, 2)
	bags, err := s.graph.Bags(ctx, id, graph.BagQuery{From: list[9].Seq, Limit: 10})
	require.NoError(t, err)
	require.Len(t, bags, 10)
	candidates, err := s.graph.Candidates(ctx, "t", graph.CandidateQuery{Terms: []string{"hello", "title1"}, Except: "nobody"})
	require.NoError(t, err)
	require.NotEmpty(t, candidates)
	candidates, err = s.graph.Candidates(ctx, "t", graph.CandidateQuery{Terms: []string{"hello"}, Keep: func(*graph.Message) bool { return true }, FromSeq: 1, ToSeq: conversation.LastSeq})
	require.NoError(t, err)
	require.NotEmpty(t, candidates)
	_, err = s.graph.Counts(ctx, id, []uint64{conversation.LastSeq, 1})
	require.NoError(t, err)
	s.newestSummaries(t, id, conversation.LastSeq)
	for _, oldest := range []bool{true, false} {
		for _, role := range []string{"", "user"} {
			list, err := s.graph.Messages(ctx, id, graph.MessageQuery{Limit: 10, Role: role, From: 3, Before: conversation.LastSeq, OldestFirst: oldest})
			require.NoError(t, err)
			require.Len(t, list, 10)
		}
		list, err = s.graph.Messages(ctx, id, graph.MessageQuery{Turn: 2, OldestFirst: oldest})
		require.NoError(t, err)
		require.Len(t, list, 1)
		for _, calls := range []bool{true, false} {
			entries, err = s.graph.Transcript(ctx, id, graph.TranscriptQuery{Limit: 10, From: 3, OldestFirst: oldest, CallsOnly: calls})
			require.NoError(t, err)
			require.Len(t, entries, 10)
		}
		_, err = s.graph.Conversations(ctx, "t", graph.ConversationQuery{Limit: 1, Created: oldest})
		require.NoError(t, err)
		q := graph.ListQuery{Limit: 3, OldestFirst: oldest}
		turns, err := graph.Turns(ctx, s.graph, id, q)
		require.NoError(t, err)
		require.Len(t, turns.Rows, 3)
		_, err = graph.Steps(ctx, s.graph, id, graph.StepQuery{ListQuery: q, Turn: &turns.Rows[1].Number})
		require.NoError(t, err)
		calls, err := graph.ToolCalls(ctx, s.graph, id, graph.CallQuery{ListQuery: q})
		require.NoError(t, err)
		require.Len(t, calls.Rows, 3)
		messages, err := graph.Messages(ctx, s.graph, id, graph.MessageListQuery{ListQuery: q, Calls: true})
		require.NoError(t, err)
		require.Len(t, messages.Rows, 3)
	}
	_, err = s.graph.Holders(ctx, []projection.Claim{{Conversation: id}})
	require.NoError(t, err)
	_, err = s.files.Files(ctx, id, graph.FileQuery{Limit: 1})
	require.NoError(t, err)
}

// about runs every read of code mentions.
func (s *stores) about(t *testing.T, q graph.CodeQuery) []graph.AboutCode {
	t.Helper()
	list, _, err := graph.ConversationsAbout(t.Context(), s.graph, s.files, "t", q)
	require.NoError(t, err)
	return list
}

// newestSummaries runs every read of the newest summaries, including those that look into the past.
func (s *stores) newestSummaries(t *testing.T, id events.ConversationID, last uint64) {
	t.Helper()
	ctx := t.Context()
	for _, asOf := range []uint64{0, last - 1, 200} {
		for level := range 3 {
			for _, frontier := range []bool{true, false} {
				for _, superseded := range []bool{true, false} {
					q := graph.SummaryQuery{AsOf: asOf, Level: level, Frontier: frontier, Superseded: superseded, Limit: 3, OldestFirst: asOf == 200}
					list, err := s.graph.Summaries(ctx, id, q)
					require.NoError(t, err)
					if level == 0 {
						require.NotEmpty(t, list)
						_, err = s.graph.SummariesByID(ctx, id, []string{list[0].SummaryID}, asOf)
						require.NoError(t, err)
					}
				}
			}
		}
	}
	entries, err := s.graph.Transcript(ctx, id, graph.TranscriptQuery{Limit: 1, CallsOnly: true, Before: last - 10})
	require.NoError(t, err)
	_, err = s.graph.Condensations(ctx, id, []graph.Ref{entries[0].Call.Ref()}, graph.Latest)
	require.NoError(t, err)
}

func TestEveryStatementOfAppendsAndNewestReadsIsASeek(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	for range 10 {
		s.everything("c")
		s.everything("gone")
		s.apply(t)
	}
	s.add("gone", &events.ConversationDeleted{})
	s.apply(t)
	s.newest(t, "c")
	require.NotEmpty(t, s.about(t, graph.CodeQuery{File: "f"}))
	require.NotEmpty(t, s.about(t, graph.CodeQuery{File: "a.go", Line: 1}))
	require.NotEmpty(t, s.about(t, graph.CodeQuery{Name: "Parse"}))
	for _, d := range []*db{s.graph.db, s.files.db} {
		statements := slices.AppendSeq(slices.Collect(maps.Keys(d.writer.stmts)), maps.Keys(d.writer.execs))
		for _, c := range d.idle {
			statements = slices.AppendSeq(statements, maps.Keys(c.stmts))
		}
		require.Greater(t, len(statements), 15)
		for _, statement := range statements {
			for _, step := range plan(t, d.writer, statement) {
				search := strings.HasPrefix(step, "SEARCH ") && (strings.Contains(step, " USING ") || step == "SEARCH conversation" || step == "SEARCH bag")
				if !search && !strings.Contains(step, "SUBQUERY") && !slices.Contains(overParameters, step) && !inWords.MatchString(step) {
					t.Errorf("%q in the plan of\n%s", step, statement)
				}
			}
		}
	}
}

// inWords matches the steps that look up a term in a full-text index, or a row. SQLite says SCAN for every virtual
// table; = is a row, M a term, >< a range of rows, and 192 the index's own order of rows from the last one.
var inWords = regexp.MustCompile(`^SCAN (title_)?words VIRTUAL TABLE INDEX (0:=|192:M1(><)?)$`)

// overParameters matches the steps that loop over a statement's parameters, over as many rows, or over partitions,
// which are few.
var overParameters = []string{"SCAN checkpoint", "SCAN k VIRTUAL TABLE INDEX 1:", "SCAN 32-ROW VALUES CLAUSE", "SCAN CONSTANT ROW", "CO-ROUTINE k", "SCAN k", "CO-ROUTINE first", "SCAN first", "CREATE BLOOM FILTER"}

// plan returns SQLite's plan for a statement.
func plan(t *testing.T, c *conn, statement string) (steps []string) {
	t.Helper()
	switch statement {
	case "BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK":
		return nil
	}
	rows, err := c.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, make([]any, strings.Count(statement, "?"))...)
	require.NoError(t, Each(rows, err, func(rows *sql.Rows) error {
		var id, parent, unused int
		var step string
		err := rows.Scan(&id, &parent, &unused, &step)
		steps = append(steps, step)
		return err
	}), statement)
	return steps
}

func TestFailedEventsAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	s.everything("c")
	s.everything("d")
	s.apply(t)
	s.everything("c")
	s.apply(t)
	require.Equal(t, []string{"SCAN failed USING COVERING INDEX failed_by_class"}, plan(t, s.graph.writer, countFailed))
	const invalid, key = projection.ClassInvalid, "SEARCH failed USING INTEGER PRIMARY KEY (rowid>?)"
	for _, c := range []struct {
		query projection.FailedQuery
		plan  string
	}{
		{projection.FailedQuery{}, key},
		{projection.FailedQuery{Tenant: "t"}, key},
		{projection.FailedQuery{Class: invalid}, "SEARCH failed USING INDEX failed_by_class (class=? AND rowid>?)"},
		{projection.FailedQuery{Tenant: "t", Class: invalid}, "SEARCH failed USING INDEX failed_by_class (class=? AND rowid>?)"},
		{projection.FailedQuery{Tenant: "t", Conversation: "c"}, "SEARCH failed USING INDEX failed_by_conversation (tenant=? AND conversation=? AND rowid>?)"},
		{projection.FailedQuery{Tenant: "t", Conversation: "c", Class: invalid}, "SEARCH failed USING INDEX failed_by_conversation (tenant=? AND conversation=? AND rowid>?)"},
	} {
		require.Empty(t, s.graph.idle)
		c.query.Limit = 2
		list, err := s.graph.Failed(t.Context(), c.query)
		require.NoError(t, err)
		require.Len(t, list, 2)
		reader := s.graph.idle[0]
		for statement := range reader.stmts {
			require.Equal(t, []string{c.plan}, plan(t, s.graph.writer, statement))
		}
		require.NoError(t, reader.close())
		s.graph.idle = nil
	}
}

func TestMatchedCallsAndResultsAreNotStored(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	waiting := func() (n int) {
		for _, table := range []string{"tracked_call", "early_result"} {
			var rows int
			require.NoError(t, s.files.read.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows))
			n += rows
		}
		return n
	}
	call := &events.ToolCalled{ToolCallID: "k1", ToolName: "Grep", Arguments: []byte(`{"path":"/w"}`)}
	early := &events.ToolReturned{ToolCallID: "k2", Result: events.TextResult("a.go:1: x")}
	s.add("c", call)
	s.add("c", early)
	s.apply(t)
	require.Equal(t, 2, waiting())
	for _, id := range []string{"k1", "k3"} {
		s.add("c", &events.ToolReturned{ToolCallID: id, Result: early.Result})
	}
	for _, id := range []string{"k2", "k3"} {
		s.add("c", &events.ToolCalled{ToolCallID: id, ToolName: call.ToolName, Arguments: call.Arguments})
	}
	s.apply(t)
	require.Zero(t, waiting())
}

func TestALongConversationCostsNoMoreThanAShortOne(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	rounds := 300 // of ten events
	if mnemetest.All {
		rounds = 2500
	}
	for _, c := range []string{"long", "short", "warm"} { // a rare role
		s.add(c, &events.MessageCreated{MessageID: "first", Role: "assistant"})
	}
	for n := range rounds {
		s.everything("long")
		if n%(rounds/10) == 0 {
			s.everything("short")
			s.everything("warm")
		}
	}
	s.apply(t)
	s.newest(t, "warm")
	cost := func(c string, do func(c string)) int {
		before := s.pages(t)
		do(c)
		return s.pages(t) - before
	}
	for name, do := range map[string]func(c string){
		"newest reads": func(c string) { s.newest(t, c) },
		"append":       func(c string) { s.everything(c); s.apply(t) },
	} {
		do("warm") // prepares the statements
		short, long := cost("short", do), cost("long", do)
		t.Logf("%s: %d pages in the short conversation, %d in the long one", name, short, long)
		require.Positive(t, short)
		// SQLite descends trees from the root, so the counts are the same except for the page where
		// a position happens to be.
		require.LessOrEqual(t, float64(long), 1.2*float64(short), name)
	}
}

func TestManyConversationsInAFileCostNoMoreThanFew(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	mention := func(name, c string, n int) {
		s.add(c, &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: "user", Content: "hello", References: []events.Reference{{File: "/w/" + name, Name: name}}})
		s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("k", n), ToolName: "Read", Arguments: fmt.Appendf(nil, `{"file_path":"/w/%d/%s"}`, n, name)})
	}
	for n := range 3000 {
		mention("many.go", fmt.Sprint("c", n%1000), n)
		if n%50 == 0 {
			mention("few.go", fmt.Sprint("c", n), n+10_000)
		}
	}
	s.apply(t)
	cost := func(q graph.CodeQuery) int {
		before := s.pages(t)
		require.Len(t, s.about(t, q), 20)
		return s.pages(t) - before
	}
	for name, query := range map[string]func(file string) graph.CodeQuery{
		"file":   func(file string) graph.CodeQuery { return graph.CodeQuery{File: file} },
		"symbol": func(file string) graph.CodeQuery { return graph.CodeQuery{Name: file} },
	} {
		cost(query("few.go")) // prepares the statements
		few, many := cost(query("few.go")), cost(query("many.go"))
		t.Logf("%s: %d pages of 60 mentions, %d of 3000", name, few, many)
		require.Positive(t, few)
		// A search reads up to the newest 200 mentions of a file, so 200 against 60 here; reads of
		// accesses follow an index for up to graph.MaxMentions.
		require.LessOrEqual(t, many, 6*few, name)
	}
}

func TestAGiantTurnIsListedAtTheCostOfAShortOne(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	for c, calls := range map[string]int{"short": 30, "giant": 3000, "warm": 30} {
		s.add(c, &events.MessageCreated{MessageID: "u1", Role: "user"})
		for i := range calls {
			s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint(i), ToolName: "run", Arguments: []byte(`{}`)})
			s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint(i), Result: events.TextResult("done")})
		}
		s.add(c, &events.MessageCreated{MessageID: "u2", Role: "user"})
	}
	s.apply(t)
	cost := func(c string) int {
		before := s.pages(t)
		page, err := graph.Turns(t.Context(), s.graph, events.ConversationID{Tenant: "t", ID: c}, graph.ListQuery{})
		require.NoError(t, err)
		require.Len(t, page.Rows, 2)
		return s.pages(t) - before
	}
	cost("warm") // prepares the statements
	short, giant := cost("short"), cost("giant")
	t.Logf("%d pages for the short turn, %d for the giant one", short, giant)
	require.Positive(t, short)
	require.LessOrEqual(t, float64(giant), 1.2*float64(short))
}

// pages counts the pages that the connections have read so far.
func (s *stores) pages(t *testing.T) (n int) {
	t.Helper()
	count := func(c *conn) {
		require.NoError(t, c.Raw(func(driver any) error {
			for _, op := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
				pages, _, err := driver.(sqlite.DBStatus).Status(op, false)
				if err != nil {
					return err
				}
				n += pages
			}
			return nil
		}))
	}
	for _, d := range []*db{s.graph.db, s.files.db} {
		count(d.writer)
		for _, c := range d.idle {
			count(c)
		}
	}
	return n
}
