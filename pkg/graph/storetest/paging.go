package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/graph"
)

// pages reads a list to its end, page by page, and checks that no page is too large.
func pages[T any](t tester, q graph.ListQuery, read func(graph.ListQuery) (graph.Page[T], error)) (all []T) {
	t.Helper()
	for n := 0; ; n++ {
		require.Less(t, n, 10_000, "the list does not end")
		page, err := read(q)
		require.NoError(t, err)
		if q.Limit > 0 {
			require.LessOrEqual(t, len(page.Rows), q.Limit)
		}
		all = append(all, page.Rows...)
		if q.Start = page.Next; q.Start == 0 {
			return all
		}
	}
}

// lists holds the expected lists of a conversation, made from its whole transcript, oldest
// first.
type lists struct {
	messages []graph.MessageWithCalls
	turns    []graph.Turn
	steps    []graph.Step
	calls    []graph.ToolUse
}

func listsOf(transcript []graph.Entry, firstSeq uint64) (l lists) {
	results, called := map[string]*graph.ToolResult{}, map[string]bool{}
	for _, e := range transcript {
		if e.Result != nil {
			results[e.Result.ToolCallID] = e.Result
		} else if e.Call != nil {
			called[e.Call.ToolCallID] = true
		}
	}
	var step *graph.Step
	for _, e := range transcript {
		p := e.Position()
		if len(l.turns) == 0 || l.turns[len(l.turns)-1].Number != p.Turn {
			l.turns = append(l.turns, graph.Turn{Number: p.Turn, FirstSeq: p.Seq})
			if p.Turn == 0 {
				l.turns[0].FirstSeq = firstSeq
			}
		}
		turn := &l.turns[len(l.turns)-1]
		if (e.Message == nil || e.Message.Role == "assistant") && (step == nil || step.Turn != p.Turn || step.Number != p.Step) {
			l.steps = append(l.steps, graph.Step{Turn: p.Turn, Number: p.Step})
			step = &l.steps[len(l.steps)-1]
		}
		switch {
		case e.Message != nil:
			l.messages = append(l.messages, graph.MessageWithCalls{Message: *e.Message})
			turn.Counts.MessageCount++
			turn.Counts.TotalChars += e.Message.Content.Chars
			switch e.Message.Role {
			case "user":
				turn.User = e.Message
				turn.Counts.TurnCount++
			case "assistant":
				turn.Counts.StepCount++
				step.Message = e.Message
			}
		case e.Call != nil:
			turn.Counts.ToolCallCount++
			u := graph.ToolUse{Call: *e.Call, Result: results[e.Call.ToolCallID]}
			l.calls, step.Calls = append(l.calls, u), append(step.Calls, u)
		default:
			turn.Counts.ToolResultCount++
			if !called[e.Result.ToolCallID] {
				step.Results = append(step.Results, *e.Result)
			}
		}
	}
	l.steps = slices.DeleteFunc(l.steps, func(s graph.Step) bool { return s.Message == nil && len(s.Calls)+len(s.Results) == 0 })
	for i := range l.messages {
		for _, s := range l.steps {
			if s.Message != nil && s.Message.Seq == l.messages[i].Seq {
				l.messages[i].Calls = s.Calls
			}
		}
	}
	return l
}

// inOrder reverses a list if it is requested newest first.
func inOrder[T any](list []T, oldestFirst bool) []T {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	if !oldestFirst {
		slices.Reverse(list)
	}
	return list
}

// pagingLaw checks that pages of any size, in either direction and as of any sequence, add
// up to exactly the whole list.
func pagingLaw(w graphShop) namedCase {
	return namedCase{"law: pages of any size are the whole list, each row once", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			h := generated(tenants[:1]).Draw(r, "history")
			b := graphBench{w.bench(r)}
			b.apply(h.Messages)
			asOf := rapid.Uint64Range(1, h.Next).Draw(r, "as of")
			c, err := b.store.Conversation(b.ctx, id("c"), asOf)
			if err != nil {
				require.ErrorIs(r, err, graph.ErrNotFound)
				return
			}
			transcript := must(b.store.Transcript(b.ctx, id("c"), graph.TranscriptQuery{Before: asOf + 1, Limit: 1000, OldestFirst: true}))(r)
			want := listsOf(transcript, c.FirstSeq)
			q := graph.ListQuery{AsOf: asOf, Limit: rapid.IntRange(1, 5).Draw(r, "limit"), OldestFirst: rapid.Bool().Draw(r, "oldest first")}

			require.Equal(r, inOrder(want.turns, q.OldestFirst), pages(r, q, func(q graph.ListQuery) (graph.Page[graph.Turn], error) {
				page, err := graph.Turns(b.ctx, b.store, id("c"), q)
				for i := range page.Rows { // the transcript does not show other events of a turn
					c := &page.Rows[i].Counts
					c.LastSeq, c.SummaryCount, c.CondensedCount = 0, 0, 0
				}
				return page, err
			}), "turns")
			require.Equal(r, inOrder(want.steps, q.OldestFirst), pages(r, q, func(q graph.ListQuery) (graph.Page[graph.Step], error) {
				return graph.Steps(b.ctx, b.store, id("c"), graph.StepQuery{ListQuery: q})
			}), "steps")
			require.Equal(r, inOrder(want.calls, q.OldestFirst), pages(r, q, func(q graph.ListQuery) (graph.Page[graph.ToolUse], error) {
				return graph.ToolCalls(b.ctx, b.store, id("c"), graph.CallQuery{ListQuery: q})
			}), "tool calls")
			require.Equal(r, inOrder(want.messages, q.OldestFirst), pages(r, q, func(q graph.ListQuery) (graph.Page[graph.MessageWithCalls], error) {
				return graph.Messages(b.ctx, b.store, id("c"), graph.MessageListQuery{ListQuery: q, Calls: true})
			}), "messages")

			// The same with filters.
			turn := rapid.IntRange(0, c.TurnCount+1).Draw(r, "turn")
			tool := rapid.SampledFrom([]string{"", "Read", "Write"}).Draw(r, "tool")
			outcome := rapid.SampledFrom([]graph.Outcome{"", graph.Succeeded, graph.Failed, graph.Unknown, graph.Pending}).Draw(r, "outcome")
			role := rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(r, "role")
			steps := slices.DeleteFunc(slices.Clone(want.steps), func(s graph.Step) bool { return s.Turn != turn })
			require.Equal(r, inOrder(steps, q.OldestFirst), pages(r, q, func(q graph.ListQuery) (graph.Page[graph.Step], error) {
				return graph.Steps(b.ctx, b.store, id("c"), graph.StepQuery{ListQuery: q, Turn: &turn})
			}), "steps of turn %d", turn)
			calls := slices.DeleteFunc(slices.Clone(want.calls), func(u graph.ToolUse) bool {
				return u.Call.Turn != turn || tool != "" && u.Call.ToolName != tool || outcome != "" && u.Outcome() != outcome
			})
			require.Equal(r, inOrder(calls, q.OldestFirst), pages(r, q, func(q graph.ListQuery) (graph.Page[graph.ToolUse], error) {
				return graph.ToolCalls(b.ctx, b.store, id("c"), graph.CallQuery{ListQuery: q, Turn: &turn, Tool: tool, Outcome: outcome})
			}), "calls of turn %d, tool %q, outcome %q", turn, tool, outcome)
			messages := slices.DeleteFunc(slices.Clone(want.messages), func(m graph.MessageWithCalls) bool { return m.Role != role })
			require.Equal(r, inOrder(messages, q.OldestFirst), pages(r, q, func(q graph.ListQuery) (graph.Page[graph.MessageWithCalls], error) {
				return graph.Messages(b.ctx, b.store, id("c"), graph.MessageListQuery{ListQuery: q, Role: role, Calls: true})
			}), "messages of %s", role)
		})
	}}
}

// pagingCases test what a page may hold.
func pagingCases(w graphShop) []namedCase {
	const many = graph.MaxExamined + 600
	// giant is a conversation whose second turn has one step with many calls; their
	// results come after all of them.
	giant := func(t *testing.T) graphBench {
		t.Helper()
		b := graphBench{w.bench(t)}
		h := NewHistory()
		h.Add("c", message("u1", "user", "hello"))
		h.Add("c", message("a1", "assistant", "hello"))
		h.Add("c", message("u2", "user", "do it all"))
		h.Add("c", message("a2", "assistant", "I begin"))
		for i := range many {
			h.Add("c", read(fmt.Sprint("k", i), "/a"))
		}
		for i := range many {
			h.Add("c", result(fmt.Sprint("k", i), "x", i%2 == 0))
		}
		h.Add("c", message("a3", "assistant", "done"))
		b.apply(h.Messages)
		return b
	}
	bothOrders := func(t *testing.T, check func(t *testing.T, oldest bool)) {
		for _, oldest := range []bool{true, false} {
			t.Run(fmt.Sprintf("oldest first %t", oldest), func(t *testing.T) { check(t, oldest) })
		}
	}
	return []namedCase{
		pagingLaw(w),
		{"a turn of thousands of rows is listed in pages that are bounded", func(t *testing.T) {
			b := giant(t)
			t.Run("turns", func(t *testing.T) {
				page := must(graph.Turns(b.ctx, b.store, id("c"), graph.ListQuery{}))(t)
				require.Len(t, page.Rows, 2)
				require.Equal(t, graph.Counts{MessageCount: 3, TurnCount: 1, StepCount: 2, ToolCallCount: many, ToolResultCount: many, TotalChars: 20, LastSeq: 2*many + 5}, page.Rows[0].Counts)
				require.Equal(t, graph.Counts{MessageCount: 2, TurnCount: 1, StepCount: 1, TotalChars: 10, LastSeq: 2}, page.Rows[1].Counts)
			})
			t.Run("a step that does not fit continues on the next page", func(t *testing.T) {
				bothOrders(t, func(t *testing.T, oldest bool) { stepsInParts(t, b, many, oldest) })
			})
			t.Run("a message with more calls than fit says so", func(t *testing.T) {
				bothOrders(t, func(t *testing.T, oldest bool) {
					var got []string
					for _, m := range pages(t, graph.ListQuery{OldestFirst: oldest}, func(q graph.ListQuery) (graph.Page[graph.MessageWithCalls], error) {
						return graph.Messages(b.ctx, b.store, id("c"), graph.MessageListQuery{ListQuery: q, Calls: true})
					}) {
						got = append(got, fmt.Sprint(m.MessageID, " ", len(m.Calls), " ", m.MoreCalls))
					}
					require.Equal(t, inOrder([]string{"u1 0 false", "a1 0 false", "u2 0 false", fmt.Sprint("a2 ", graph.MaxExamined, " true"), "a3 0 false"}, oldest), got)
				})
			})
			t.Run("a filter with few matches ends a page early", func(t *testing.T) {
				read := func(q graph.CallQuery) graph.Page[graph.ToolUse] {
					return must(graph.ToolCalls(b.ctx, b.store, id("c"), q))(t)
				}
				first := read(graph.CallQuery{Tool: "Write"})
				require.Empty(t, first.Rows)
				require.NotZero(t, first.Next)
				require.Equal(t, graph.Page[graph.ToolUse]{}, read(graph.CallQuery{Tool: "Write", ListQuery: graph.ListQuery{Start: first.Next}}))
				require.Len(t, pages(t, graph.ListQuery{Limit: 1000}, func(q graph.ListQuery) (graph.Page[graph.ToolUse], error) {
					return graph.ToolCalls(b.ctx, b.store, id("c"), graph.CallQuery{ListQuery: q, Outcome: graph.Failed})
				}), many/2)
			})
		}},
		{"a page of long texts ends early and continues on the next page", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			long := strings.Repeat("x", graph.MaxBodyBytes)
			const n = 210 // more texts of this size than fit on a page
			for i := range n {
				h.Add("users", message(fmt.Sprint("u", i), "user", long))
				used := message(fmt.Sprint("a", i), "assistant", "short")
				used.Usage = []byte(`"` + long[2:] + `"`)
				h.Add("used", used)
				h.Add("calls", read(fmt.Sprint("k", i), "/a"))
				h.Add("calls", result(fmt.Sprint("k", i), long, true))
			}
			for i := range 2 * n {
				h.Add("at once", read(fmt.Sprint("k", i), "/a"))
			}
			for i := range 2 * n {
				h.Add("at once", result(fmt.Sprint("k", i), long, true))
			}
			h.Add("at once", message("m", "assistant", "next step"))
			b.apply(h.Messages)
			bothOrders(t, func(t *testing.T, oldest bool) {
				q := graph.ListQuery{Limit: 1000, OldestFirst: oldest}
				atOnce := 0
				for _, s := range pages(t, q, func(q graph.ListQuery) (graph.Page[graph.Step], error) {
					page, err := graph.Steps(b.ctx, b.store, id("at once"), graph.StepQuery{ListQuery: q})
					for _, s := range page.Rows {
						require.Less(t, len(s.Calls), 2*n)
					}
					return page, err
				}) {
					atOnce += len(s.Calls)
					for _, u := range s.Calls {
						require.NotNil(t, u.Result)
					}
				}
				require.Equal(t, 2*n, atOnce)
				turns := func(q graph.ListQuery) (graph.Page[graph.Turn], error) {
					return graph.Turns(b.ctx, b.store, id("users"), q)
				}
				messages := func(q graph.ListQuery) (graph.Page[graph.MessageWithCalls], error) {
					return graph.Messages(b.ctx, b.store, id("users"), graph.MessageListQuery{ListQuery: q})
				}
				steps := func(q graph.ListQuery) (graph.Page[graph.Step], error) {
					return graph.Steps(b.ctx, b.store, id("calls"), graph.StepQuery{ListQuery: q})
				}
				calls := func(q graph.ListQuery) (graph.Page[graph.ToolUse], error) {
					return graph.ToolCalls(b.ctx, b.store, id("calls"), graph.CallQuery{ListQuery: q})
				}
				require.Less(t, len(must(turns(q))(t).Rows), n)
				require.Less(t, len(must(messages(q))(t).Rows), n)
				require.Less(t, len(must(graph.Messages(b.ctx, b.store, id("used"), graph.MessageListQuery{ListQuery: q}))(t).Rows), n)
				require.Less(t, len(must(steps(q))(t).Rows[0].Calls), n)
				require.Less(t, len(must(calls(q))(t).Rows), n)
				all := pages(t, q, turns)
				require.Len(t, all, n)
				for _, turn := range all {
					require.Equal(t, 1, turn.Counts.MessageCount)
				}
				require.Len(t, pages(t, q, messages), n)
				require.Len(t, pages(t, q, calls), n)
				found := 0
				for _, s := range pages(t, q, steps) {
					found += len(s.Calls)
				}
				require.Equal(t, n, found)
			})
		}},
	}
}

// stepsInParts checks the parts of a step that does not fit on a page.
func stepsInParts(t *testing.T, b graphBench, calls int, oldest bool) {
	t.Helper()
	steps := pages(t, graph.ListQuery{OldestFirst: oldest}, func(q graph.ListQuery) (graph.Page[graph.Step], error) {
		return graph.Steps(b.ctx, b.store, id("c"), graph.StepQuery{ListQuery: q})
	})
	var parts []graph.Step
	seen := map[string]bool{}
	for i, s := range steps {
		require.LessOrEqual(t, len(s.Calls), graph.MaxExamined)
		if i+1 < len(steps) && steps[i+1].Number == s.Number {
			require.True(t, s.Continued, "step %d of %d", i, len(steps))
		}
		if s.Number == 2 {
			parts = append(parts, s)
		}
		for _, u := range s.Calls {
			require.NotNil(t, u.Result)
			require.False(t, seen[u.Call.ToolCallID])
			seen[u.Call.ToolCallID] = true
		}
		require.Empty(t, s.Results)
	}
	require.Len(t, seen, calls)
	require.Greater(t, len(parts), 1)
	if !oldest {
		slices.Reverse(parts)
	}
	require.Equal(t, "a2", parts[0].Message.MessageID)
	require.Nil(t, parts[1].Message)
}
