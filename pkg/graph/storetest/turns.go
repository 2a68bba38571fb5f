package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// The reads of a graph, for cases that expect them to work.

func must[T any](value T, err error) func(t tester) T {
	return func(t tester) T {
		t.Helper()
		require.NoError(t, err)
		return value
	}
}

type graphBench struct {
	*bench[*graph.Unit, graph.Store]
}

func (b graphBench) conversation(c string) graph.Conversation {
	b.t.Helper()
	return b.conversationAsOf(c, graph.Latest)
}

func (b graphBench) conversationAsOf(c string, seq uint64) graph.Conversation {
	b.t.Helper()
	return must(b.store.Conversation(b.ctx, id(c), seq))(b.t)
}

func (b graphBench) messages(c string, q graph.MessageQuery) []graph.Message {
	b.t.Helper()
	return must(b.store.Messages(b.ctx, id(c), q))(b.t)
}

func (b graphBench) transcript(c string, before uint64, limit int) []graph.Entry {
	b.t.Helper()
	return must(b.store.Transcript(b.ctx, id(c), graph.TranscriptQuery{Before: before, Limit: limit}))(b.t)
}

func (b graphBench) calls(c string, ids ...string) map[string]graph.ToolCall {
	b.t.Helper()
	return byID(must(b.store.Calls(b.ctx, id(c), refs(ids...), graph.Latest))(b.t))
}

func (b graphBench) results(c string, ids ...string) map[string]graph.ToolResult {
	b.t.Helper()
	return byID(must(b.store.Results(b.ctx, id(c), refs(ids...), graph.Latest))(b.t))
}

// refs returns refs to a conversation's own rows.
func refs(ids ...string) (list []graph.Ref) {
	for _, one := range ids {
		list = append(list, graph.Ref{ID: one})
	}
	return list
}

func byID[T any](rows map[graph.Ref]T) map[string]T {
	found := map[string]T{}
	for ref, row := range rows {
		found[ref.ID] = row
	}
	return found
}

// nameOf returns the id of an entry's row.
func nameOf(e graph.Entry) string {
	switch {
	case e.Message != nil:
		return e.Message.MessageID
	case e.Call != nil:
		return e.Call.ToolCallID
	default:
		return "result of " + e.Result.ToolCallID
	}
}

// turnCases test turns, steps, calls and results.
func turnCases(w graphShop) []namedCase {
	return []namedCase{
		{"a turn has all intermediate messages, calls and results", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", message("u1", "user", "fix it"))
			h.Add("c", message("a1", "assistant", "I look"))
			h.Add("c", read("k1", "/a"))
			h.Add("c", result("k1", "text", true))
			h.Add("c", message("a2", "assistant", "I change"))
			h.Add("c", write("k2", "/a"))
			h.Add("c", result("k2", "done", true))
			h.Add("c", message("a3", "assistant", "Fixed."))
			h.Add("c", message("u2", "user", "thanks"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				var got []string
				for _, e := range b.transcript("c", 0, 100) {
					p := e.Position()
					got = append(got, fmt.Sprintf("%d: %s turn %d step %d n %d", p.Seq, nameOf(e), p.Turn, p.Step, p.N))
				}
				require.Equal(t, []string{
					"9: u2 turn 2 step 3 n 5",
					"8: a3 turn 1 step 3 n 4",
					"7: result of k2 turn 1 step 2 n 2",
					"6: k2 turn 1 step 2 n 2",
					"5: a2 turn 1 step 2 n 3",
					"4: result of k1 turn 1 step 1 n 1",
					"3: k1 turn 1 step 1 n 1",
					"2: a1 turn 1 step 1 n 2",
					"1: u1 turn 1 step 0 n 1",
				}, got)
				c := b.conversation("c")
				require.Equal(t, []int{5, 2, 3, 2, 2}, []int{c.MessageCount, c.TurnCount, c.StepCount, c.ToolCallCount, c.ToolResultCount})
				require.Equal(t, len("fix it")+len("I look")+len("I change")+len("Fixed.")+len("thanks"), c.TotalChars)
			})
		}},
		{"what comes before the first user message is turn 0", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", message("s", "system", "be kind"))
			h.Add("c", read("k", "/a"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, graph.Position{Seq: 2, N: 1}, b.calls("c", "k")["k"].Position)
				require.Zero(t, b.conversation("c").TurnCount)
			})
		}},
		{"a result may come before its call and a call before its message", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", result("k1", "early", true))
			p := read("k1", "/a")
			p.MessageID = "later"
			h.Add("c", p)
			h.Add("c", message("later", "assistant", "x"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, "early", b.results("c", "k1")["k1"].Result.Text)
				require.Equal(t, "later", b.calls("c", "k1")["k1"].MessageID)
				require.Empty(t, b.failed())
			})
		}},
		{"a call without a message and a result without a call stay", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", read("k1", "/a"))
			h.Add("c", result("k2", "x", true))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Len(t, b.transcript("c", 0, 10), 2)
				require.Empty(t, b.calls("c", "k2"))
				require.Empty(t, b.results("c", "k1"))
			})
		}},
		{"calls and results come back with all they have", func(t *testing.T) {
			h := NewHistory()
			h.AddAs("c", "one", &events.ToolCalled{ToolCallID: "k", MessageID: "m", ToolName: "run", Arguments: []byte(`{"a": 1}`), Iteration: 4})
			h.AddAs("c", "two", &events.ToolReturned{ToolCallID: "k", Success: new(false), Result: events.JSONResult([]byte(`{"x":[1]}`)), Error: "exit 1", DurationMS: new(1.25)})
			h.AddAs("c", "three", &events.ToolReturned{ToolCallID: "k2", Result: events.JSONResult([]byte(`null`))})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, map[string]graph.ToolCall{"k": {
					Position: graph.Position{Seq: 1, N: 1}, Origin: graph.Origin{EventID: "one", Source: "storetest"},
					ToolCallID: "k", MessageID: "m", ToolName: "run", Arguments: graph.NewBody(`{"a":1}`), Iteration: 4,
				}}, b.calls("c", "k", "unknown"))
				require.Equal(t, map[string]graph.ToolResult{"k": {
					Position: graph.Position{Seq: 2, N: 1}, Origin: graph.Origin{EventID: "two", Source: "storetest"},
					ToolCallID: "k", Success: new(false), Result: graph.NewBody(`{"x":[1]}`), Error: "exit 1", DurationMS: new(1.25),
				}, "k2": {
					Position: graph.Position{Seq: 3, N: 2}, Origin: graph.Origin{EventID: "three", Source: "storetest"},
					ToolCallID: "k2", Result: graph.NewBody(`null`),
				}}, b.results("c", "k", "k2"))
			})
		}},
		{"calls and results are read as of a sequence", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			h.Add("c", message("m", "user", "x"))
			h.Add("c", read("k", "/a"))
			h.Add("c", result("k", "x", true))
			b.apply(h.Messages)
			for asOf, want := range []int{0, 0, 1, 1} {
				require.Len(t, must(b.store.Calls(b.ctx, id("c"), refs("k"), uint64(asOf)))(t), want)
			}
			for asOf, want := range []int{0, 0, 0, 1} {
				require.Len(t, must(b.store.Results(b.ctx, id("c"), refs("k"), uint64(asOf)))(t), want)
			}
		}},
	}
}

// bothWays is inOneBatchAndInMany for graphs.
func bothWays(t *testing.T, w graphShop, h *History, check func(t *testing.T, b graphBench)) {
	t.Helper()
	inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[*graph.Unit, graph.Store]) { check(t, graphBench{b}) })
}
