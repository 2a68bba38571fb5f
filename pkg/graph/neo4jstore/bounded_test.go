package neo4jstore

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
)

// The cost of an append and of a read of the newest N must not depend on the length of the
// conversation. The tests count the server's accesses to its store.

func TestCostIsIndependentOfConversationLength(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	messages := 1_000
	if mnemetest.All {
		messages = 100_000
	}
	for n := range messages {
		s.turn("long")
		if n%10 == 0 {
			s.summarise("long")
		}
		if n%(messages/100) == 0 {
			s.turn("short")
			s.summarise("short")
		}
		if n%500 == 499 {
			s.apply(t)
		}
	}
	s.spy.since()
	s.spy.prefix = "PROFILE "
	costs := map[string]map[string]int64{}
	plans := map[string][]any{}
	for _, c := range []string{"short", "long"} {
		costs[c] = s.costs(t, c, plans)
	}
	for _, name := range slices.Sorted(maps.Keys(costs["long"])) {
		short, long := costs["short"][name], costs["long"][name]
		t.Logf("%-40s %5d db hits in the short conversation, %5d in the long one", name, short, long)
		require.Positive(t, short, name)
		if float64(long) > 1.1*float64(short)+5 {
			t.Errorf("%s grows with the conversation", name)
			t.Log(plans[name]...)
		}
	}
}

func TestCostIsIndependentOfAFilesConversations(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	mention := func(name, c string, n int) {
		s.add(c, &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: "user", Content: "hello", References: []events.Reference{{File: "/w/" + name, StartLine: n, Name: name}}})
		s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("k", n), ToolName: "Read", Arguments: fmt.Appendf(nil, `{"file_path":"/w/%d/%s"}`, n, name)})
	}
	for n := range 600 {
		mention("many.go", fmt.Sprint("c", n%300), n)
		if n%10 == 0 {
			mention("few.go", fmt.Sprint("c", n), n+10_000)
		}
	}
	s.apply(t)
	s.spy.since()
	s.spy.prefix = "PROFILE "
	cost := func(q graph.CodeQuery) (n int64) {
		require.Len(t, s.about(t, q), 20)
		for _, one := range s.spy.since() {
			of := hits(t, []sent{one})
			if n += of; of > 7000 { // a scan costs more
				t.Errorf("%d db hits in\n%s\n%s", of, one.statement, one.summary.Profile().Arguments()["string-representation"])
			}
		}
		return n
	}
	for name, query := range map[string]func(file string) graph.CodeQuery{
		"file":   func(file string) graph.CodeQuery { return graph.CodeQuery{File: file} },
		"symbol": func(file string) graph.CodeQuery { return graph.CodeQuery{Name: file} },
	} {
		few, many := cost(query("few.go")), cost(query("many.go"))
		t.Logf("%s: %d db hits with 60 mentions, %d with 600", name, few, many)
		require.Positive(t, few)
		// Conversations are found among the newest 200, not 60; the index of accesses is read
		// up to graph.MaxMentions entries.
		require.LessOrEqual(t, many, 6*few, name)
	}
}

// turn adds a message and sometimes a call with its result.
func (s *stores) turn(c string) {
	n := s.history.Next
	role := "assistant"
	if n%5 == 0 {
		role = "user"
	}
	s.add(c, &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: role, Content: "hello"})
	if n%2 == 0 {
		return
	}
	s.add(c, &events.ToolCalled{ToolCallID: fmt.Sprint("k", n), MessageID: fmt.Sprint("m", n), ToolName: "Read", Arguments: fmt.Appendf(nil, `{"file_path":"/w/%d.go"}`, n%50)})
	s.add(c, &events.ToolReturned{ToolCallID: fmt.Sprint("k", n), Result: events.TextResult("text")})
}

// costs measures everything whose cost must not grow, and adds the plans.
func (s *stores) costs(t *testing.T, c string, plans map[string][]any) map[string]int64 {
	t.Helper()
	ctx, id, costs := t.Context(), conversation(c), map[string]int64{}
	now, err := s.graph.Conversation(ctx, id, graph.Latest)
	require.NoError(t, err)
	s.spy.since()
	cost := func(name string, err error) {
		t.Helper()
		require.NoError(t, err, name)
		list := s.spy.since()
		costs[name] = hits(t, list)
		for _, one := range list {
			plans[name] = append(plans[name], one.summary.Profile().Arguments()["string-representation"])
		}
	}
	_, err = s.graph.Conversation(ctx, id, graph.Latest)
	cost("conversation now", err)
	_, err = s.graph.Conversation(ctx, id, now.LastSeq-50)
	cost("conversation as of then", err)
	_, err = s.graph.Counts(ctx, id, []uint64{now.LastSeq, now.LastSeq - 50})
	cost("counts", err)
	_, err = s.graph.Messages(ctx, id, graph.MessageQuery{Limit: 40})
	cost("newest 40 messages", err)
	list, err := s.graph.Messages(ctx, id, graph.MessageQuery{Limit: 5, Role: "user"})
	cost("newest 5 messages of a role", err)
	_, err = s.graph.Messages(ctx, id, graph.MessageQuery{Turn: list[0].Turn})
	cost("message of a turn", err)
	_, err = s.graph.MessagesByID(ctx, id, []graph.Ref{{ID: list[0].MessageID}}, graph.Latest)
	cost("message by id", err)
	_, err = s.graph.Messages(ctx, id, graph.MessageQuery{Limit: 10, OldestFirst: true})
	cost("oldest 10 messages", err)
	_, err = s.graph.Transcript(ctx, id, graph.TranscriptQuery{Limit: 40})
	cost("newest 40 of the transcript", err)
	_, err = s.graph.Transcript(ctx, id, graph.TranscriptQuery{Limit: 10, CallsOnly: true})
	cost("newest 10 calls", err)
	_, err = graph.ToolCalls(ctx, s.graph, id, graph.CallQuery{ListQuery: graph.ListQuery{Limit: 10}})
	cost("newest 10 calls with their results", err)
	_, err = graph.Turns(ctx, s.graph, id, graph.ListQuery{Limit: 3})
	cost("newest 3 turns", err)
	_, err = s.graph.Summaries(ctx, id, graph.SummaryQuery{Limit: 5})
	cost("newest 5 summaries", err)
	_, err = s.graph.Summaries(ctx, id, graph.SummaryQuery{Level: 1, Limit: 5})
	cost("newest 5 summaries of a level", err)
	for when, asOf := range map[string]uint64{"now": now.LastSeq, "then": now.FirstSeq + 600} {
		var frontier []graph.Summary
		for ; len(frontier) != 1; asOf-- { // back to a sequence where one summary was on the frontier
			s.spy.since()
			frontier, err = s.graph.Summaries(ctx, id, graph.SummaryQuery{AsOf: asOf, Level: 1, Frontier: true})
			require.NoError(t, err)
		}
		cost("frontier of level 1 "+when, nil)
		_, err = s.graph.SummariesByID(ctx, id, []string{frontier[0].SummaryID}, asOf+1)
		cost("summary by id "+when, err)
	}
	_, err = s.files.Files(ctx, id, graph.FileQuery{Limit: 20})
	cost("newest 20 files", err)
	_, _, err = s.files.LastSeq(ctx, id)
	cost("last sequence of files", err)

	n := s.history.Next
	for _, p := range []events.Payload{
		&events.ConversationStarted{Title: "title", Cwd: "/w"},
		&events.ConversationUpdated{Status: "archived"},
		&events.MessageCreated{MessageID: fmt.Sprint("u", n), Role: "user", Content: "hello", References: []events.Reference{{File: fmt.Sprint(n)}}},
		&events.MessageCreated{MessageID: fmt.Sprint("a", n), Role: "assistant", Content: "hello"},
		&events.ToolCalled{ToolCallID: fmt.Sprint("c", n), MessageID: fmt.Sprint("a", n), ToolName: "Read", Arguments: []byte(`{"file_path":"/w/0.go"}`)},
		&events.ToolReturned{ToolCallID: fmt.Sprint("c", n), Result: events.TextResult("no"), Success: new(bool)},
		&events.ToolCondensed{ToolCallID: fmt.Sprint("c", n), Content: "short", Model: "m"},
		&events.SummaryWritten{SummaryID: fmt.Sprint("s", n), Level: 1, FirstSeq: s.covered[c].next[1], LastSeq: n, Conversation: "said", Method: "extractive"},
	} {
		s.add(c, p)
		s.apply(t)
		name := "append " + p.EventType()
		if costs[name] != 0 {
			name += " of an assistant"
		}
		cost(name, nil)
	}
	return costs
}
