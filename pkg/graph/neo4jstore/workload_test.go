package neo4jstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
)

var (
	graphProjection = graph.Projection()
	filesProjection = graph.FilesProjection(files.DefaultTable())
)

// stores holds both stores with their history and a spy on their driver.
type stores struct {
	graph   *Graph
	files   *Files
	graphCP projection.Checkpoint
	filesCP projection.Checkpoint
	history *storetest.History
	spy     *spy
	covered map[string]*covered // by conversation
}

func openStores(t *testing.T, c Config) *stores {
	t.Helper()
	s := &stores{history: storetest.NewHistory(), covered: map[string]*covered{}}
	s.graph, s.files = openBoth(t, c, generationOf(t.Name()))
	s.spy = watch(&s.graph.store, &s.files.store)
	s.acquire(t)
	return s
}

func (s *stores) acquire(t *testing.T) {
	t.Helper()
	var err error
	s.graphCP, err = s.graph.Acquire(t.Context(), 0, graphProjection.Fingerprint())
	require.NoError(t, err)
	s.filesCP, err = s.files.Acquire(t.Context(), 0, filesProjection.Fingerprint())
	require.NoError(t, err)
}

// apply applies the events added to the history since the last call, as one batch.
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

// covered says how far the summaries of a conversation reach.
type covered struct {
	next []uint64   // by level, from 1: where the next range begins
	open [][]string // by level: the ids of unconsolidated summaries
}

func conversation(name string) events.ConversationID {
	return events.ConversationID{Tenant: "t", ID: name}
}

// round adds one event of each kind, each with as much to do as possible.
func (s *stores) round(c string) {
	n, no := int(s.history.Next), false
	title := fmt.Sprint("title", n)
	s.add(c, &events.ConversationStarted{Title: title, Cwd: "/w"})
	s.add(c, &events.ConversationUpdated{Title: &title})
	s.add(c, &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: "user", Content: "hello", References: []events.Reference{{File: "f", Name: "Parse"}}})
	s.add(c, &events.MessageCreated{MessageID: fmt.Sprint("a", n), Role: "assistant", Content: "yes"})
	s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("k", n), MessageID: fmt.Sprint("a", n), ToolName: "Grep", Arguments: []byte(`{"path":"/w"}`)})
	s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("k", n), Result: events.TextResult("a.go:1: x")})
	s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("f", n), ToolName: "Read", Arguments: []byte(`{"file_path":"/w/a.go"}`)})
	s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("f", n), Result: events.TextResult("no"), Success: &no})
	s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("early", n), Result: events.TextResult("early")})
	s.add(c, &events.ToolCondensed{ToolCallID: fmt.Sprint("k", n), Content: "short", Model: "m"})
	s.summarise(c)
}

// summarise covers the conversation so far, and consolidates every three summaries of a
// level. Each summary has a revision.
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

// append makes every kind of write, in batches of one event and of many.
func (s *stores) append(t *testing.T, c string) {
	t.Helper()
	s.round(c)
	list := s.history.Messages
	for i := range list { // each after the rows that it depends on are stored
		s.history.Messages = list[i : i+1]
		s.apply(t)
	}
	s.round(c)
	s.round(c) // consolidates summaries
	s.apply(t)
	n := s.history.Next
	s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("late", n), Result: events.TextResult("before its call")})
	s.apply(t)
	s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("late", n), MessageID: fmt.Sprint("lm", n), ToolName: "Read", Arguments: []byte(`{"file_path":"/w/b.go"}`)})
	s.apply(t)
	s.add(c, &events.MessageCreated{MessageID: fmt.Sprint("lm", n), Role: "assistant", Content: "after its call"})
	s.apply(t)
	s.history.AddAs(c, "again", &events.MessageCreated{MessageID: "again", Role: "user"}) // a duplicate from the second time on
	s.history.AddAs(c, "clash", &events.MessageCreated{MessageID: "clash", Role: "user", Content: fmt.Sprint(n)})
	s.apply(t)
	s.add("branch of "+c, &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: c, MessageID: "again"}})
	s.apply(t)

	rounds := 10 // the statements are the same for any number of rows
	if mnemetest.All {
		rounds = 40
	}
	gone := fmt.Sprint("gone", n)
	for range rounds {
		s.round(c)
		s.round(gone)
	}
	s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("big", n), MessageID: fmt.Sprint("bm", n), ToolName: "Read", Arguments: []byte(`{"file_path":"/w/b.go"}`)})
	s.history.AddRaw("ev.0.t."+gone+".message_created", nil, nil)
	s.apply(t)
	for range rounds {
		s.round(c)
	}
	s.apply(t)
	for i := range rounds { // one batch has the first half of each, the next batch the second
		s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("early", n, i), Result: events.TextResult("early")})
		s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("open", n, i), ToolName: "Grep", Arguments: []byte(`{"path":"/w"}`)})
	}
	s.apply(t)
	for i := range rounds {
		s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("early", n, i), ToolName: "Read", Arguments: []byte(`{"file_path":"/w/a.go"}`)})
		s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("open", n, i), Result: events.TextResult("a.go:1: x")})
	}
	s.add(gone, &events.ConversationDeleted{})
	s.apply(t)
	require.NoError(t, s.graph.Update(t.Context(), 0, func(tx projection.Tx[*graph.Unit]) error { return tx.Drop(t.Context(), conversation(gone)) }))
	require.NoError(t, s.files.Update(t.Context(), 0, func(tx projection.Tx[*graph.FilesUnit]) error { return tx.Drop(t.Context(), conversation(gone)) }))

	require.NoError(t, s.graph.Halt(t.Context(), 0, s.graphCP.Epoch, ""))
	require.NoError(t, s.files.Halt(t.Context(), 0, s.filesCP.Epoch, ""))
	s.acquire(t)
}

// newest makes every read of the end of a conversation.
func (s *stores) newest(t *testing.T, c string) {
	t.Helper()
	ctx, id := t.Context(), conversation(c)
	now, err := s.graph.Conversation(ctx, id, graph.Latest)
	require.NoError(t, err)
	_, err = s.graph.Conversation(ctx, id, now.LastSeq-1)
	require.NoError(t, err)
	_, err = s.graph.Counts(ctx, id, []uint64{now.LastSeq, now.LastSeq - 20})
	require.NoError(t, err)
	s.newestSummaries(t, id, now.LastSeq)
	for _, oldest := range []bool{false, true} {
		for _, role := range []string{"", "user"} {
			list, err := s.graph.Messages(ctx, id, graph.MessageQuery{Limit: 10, Role: role, From: now.LastSeq - 200, OldestFirst: oldest})
			require.NoError(t, err)
			require.Len(t, list, 10)
			refs := []graph.Ref{{ID: list[0].MessageID}, {ID: "nobody"}}
			_, err = s.graph.MessagesByID(ctx, id, refs, graph.Latest)
			require.NoError(t, err)
			at, err := s.graph.MessagesAt(ctx, id, []uint64{list[0].Seq, list[3].Seq})
			require.NoError(t, err)
			require.Len(t, at, 2)
		}
		for _, calls := range []bool{false, true} {
			list, err := s.graph.Transcript(ctx, id, graph.TranscriptQuery{Limit: 10, From: now.LastSeq - 200, OldestFirst: oldest, CallsOnly: calls})
			require.NoError(t, err)
			require.Len(t, list, 10)
		}
		list, err := s.graph.Messages(ctx, id, graph.MessageQuery{Turn: now.TurnCount - 1, OldestFirst: oldest})
		require.NoError(t, err)
		require.Len(t, list, 1)
		calls, err := graph.ToolCalls(ctx, s.graph, id, graph.CallQuery{ListQuery: graph.ListQuery{Limit: 3, OldestFirst: oldest}})
		require.NoError(t, err)
		require.Len(t, calls.Rows, 3)
		_, err = s.graph.Calls(ctx, id, []graph.Ref{calls.Rows[0].Call.Ref()}, graph.Latest)
		require.NoError(t, err)
		_, err = s.graph.Results(ctx, id, []graph.Ref{calls.Rows[0].Call.Ref()}, graph.Latest)
		require.NoError(t, err)
		turns, err := graph.Turns(ctx, s.graph, id, graph.ListQuery{Limit: 3, OldestFirst: oldest})
		require.NoError(t, err)
		require.Len(t, turns.Rows, 3)
	}
	bags, err := s.graph.Bags(ctx, id, graph.BagQuery{From: now.LastSeq - 200, Limit: 10})
	require.NoError(t, err)
	require.Len(t, bags, 10)
	candidates, err := s.graph.Candidates(ctx, "t", graph.CandidateQuery{Terms: []string{"hello"}, Fresh: true})
	require.NoError(t, err)
	require.NotEmpty(t, candidates)
	candidates, err = s.graph.Candidates(ctx, "t", graph.CandidateQuery{Terms: []string{"hello"}, Keep: func(*graph.Message) bool { return true }, FromSeq: 1, ToSeq: now.LastSeq})
	require.NoError(t, err)
	require.NotEmpty(t, candidates)
	for _, q := range []graph.CodeQuery{{File: "f"}, {File: "a.go"}, {Name: "Parse"}} {
		require.NotEmpty(t, s.about(t, q))
	}
	list, err := s.files.Files(ctx, id, graph.FileQuery{Limit: 2})
	require.NoError(t, err)
	require.NotEmpty(t, list)
	seq, _, err := s.files.LastSeq(ctx, id)
	require.NoError(t, err)
	require.NotZero(t, seq)
}

// about makes every read of mentions of code.
func (s *stores) about(t *testing.T, q graph.CodeQuery) []graph.AboutCode {
	t.Helper()
	list, _, err := graph.ConversationsAbout(t.Context(), s.graph, s.files, "t", q)
	require.NoError(t, err)
	return list
}

// newestSummaries makes every read of summaries and condensations.
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
	entries, err := s.graph.Transcript(ctx, id, graph.TranscriptQuery{Limit: 1, CallsOnly: true})
	require.NoError(t, err)
	_, err = s.graph.Condensations(ctx, id, []graph.Ref{entries[0].Call.Ref()}, graph.Latest)
	require.NoError(t, err)
}

// rest makes every other read.
func (s *stores) rest(t *testing.T, c string) {
	t.Helper()
	ctx, id := t.Context(), conversation(c)
	for _, created := range []bool{false, true} {
		page, err := s.graph.Conversations(ctx, "t", graph.ConversationQuery{Created: created})
		require.NoError(t, err)
		require.NotEmpty(t, page.Rows)
	}
	_, err := s.files.Files(ctx, id, graph.FileQuery{AsOf: 5})
	require.NoError(t, err)
	for _, r := range []projection.ReadStore{s.graph, s.files} {
		checkpoints, err := r.Checkpoints(ctx)
		require.NoError(t, err)
		require.Len(t, checkpoints, 1)
		_, err = r.Failed(ctx, projection.FailedQuery{Limit: 10})
		require.NoError(t, err)
		_, err = r.Failed(ctx, projection.FailedQuery{Tenant: "t", Conversation: id.ID, Class: projection.ClassError, Limit: 10})
		require.NoError(t, err)
		_, err = r.CountFailed(ctx)
		require.NoError(t, err)
		_, err = r.Holders(ctx, []projection.Claim{{Conversation: id}})
		require.NoError(t, err)
		require.NoError(t, r.Hashes(ctx, func(projection.ConversationHash) error { return nil }))
	}
}
