package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// conversationCases test the list of conversations.
func conversationCases(w graphShop) []namedCase {
	titles := func(b graphBench, tenant string, q graph.ConversationQuery) (ids []string) {
		for _, c := range must(b.store.Conversations(b.ctx, tenant, q))(b.t).Rows {
			ids = append(ids, c.ID.ID)
		}
		return ids
	}
	return []namedCase{
		{"conversations are listed by their newest event", func(t *testing.T) {
			h := NewHistory()
			for _, c := range []string{"a", "b", "c", "a"} {
				h.Add(c, message(fmt.Sprint(h.Next), "user", "x"))
			}
			h.Tenant = "u"
			h.Add("other tenant", message("m", "user", "x"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"a", "c", "b"}, titles(b, "t", graph.ConversationQuery{}))
				require.Equal(t, []string{"other tenant"}, titles(b, "u", graph.ConversationQuery{}))
				require.Empty(t, titles(b, "nobody", graph.ConversationQuery{}))
			})
		}},
		{"a list of conversations continues after its last row", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			for c := range 120 {
				h.Add(fmt.Sprint(c), message("m", "user", "x"))
			}
			b.apply(h.Messages)
			require.Len(t, titles(b, "t", graph.ConversationQuery{}), 50)
			var all []string
			for q := (graph.ConversationQuery{Limit: 7}); ; {
				page := must(b.store.Conversations(b.ctx, "t", q))(t)
				for _, c := range page.Rows {
					all = append(all, c.ID.ID)
				}
				if q.Before = page.Next; q.Before == 0 {
					break
				}
			}
			require.Len(t, all, 120)
			for i, c := range all {
				require.Equal(t, fmt.Sprint(119-i), c)
			}
		}},
		{"conversations are filtered by status", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			h.Add("a", message("m", "user", "x"))
			h.Add("b", &events.ConversationUpdated{Status: "archived"})
			h.Add("c", &events.ConversationUpdated{Status: "archived"})
			h.Add("c", &events.ConversationUpdated{Status: "active"})
			h.Add("d", &events.ConversationDeleted{})
			b.apply(h.Messages)
			require.Equal(t, []string{"c", "a"}, titles(b, "t", graph.ConversationQuery{Status: "active"}))
			require.Equal(t, []string{"b"}, titles(b, "t", graph.ConversationQuery{Status: "archived"}))
		}},
		{"conversations are listed by their creation, whatever moves on", func(t *testing.T) {
			h := NewHistory()
			for _, c := range []string{"a", "b", "c", "a", "b"} {
				h.Add(c, message(fmt.Sprint(h.Next), "user", "x"))
			}
			h.Add("d", &events.ConversationDeleted{})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"c", "b", "a"}, titles(b, "t", graph.ConversationQuery{Created: true}))
			})
		}},
		{"conversations that move on between two pages", func(t *testing.T) {
			for _, created := range []bool{true, false} {
				b := graphBench{w.bench(t)}
				h := NewHistory()
				for c := range 40 {
					h.Add(fmt.Sprint(c), message("m", "user", "x"))
				}
				b.apply(h.Messages)
				seen := map[string]int{}
				for q := (graph.ConversationQuery{Limit: 7, Created: created}); ; {
					page := must(b.store.Conversations(b.ctx, "t", q))(t)
					for _, c := range page.Rows {
						seen[c.ID.ID]++
					}
					if q.Before = page.Next; q.Before == 0 {
						break
					}
					// One that the previous page had already listed, and one that it had not, if any.
					h.Add(page.Rows[0].ID.ID, message(fmt.Sprint(h.Next), "user", "more"))
					h.Add("5", message(fmt.Sprint(h.Next), "user", "more"))
					b.apply(h.Messages)
				}
				if !created {
					require.Zero(t, seen["5"], "it moved to the top, which the next pass over the list shows")
					seen["5"]++
				}
				require.Len(t, seen, 40)
				for c, times := range seen {
					require.Equal(t, 1, times, c)
				}
			}
		}},
		{"conversations are filtered by what they say of themselves", func(t *testing.T) {
			h := NewHistory()
			h.Add("a", &events.ConversationStarted{Tags: []string{"x", "y"}, Agent: "one", Project: "p"})
			h.Add("b", &events.ConversationStarted{Tags: []string{"y"}, Agent: "two", Project: "p"})
			h.Add("c", &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "a", MessageID: "m"}})
			h.Add("d", &events.ConversationStarted{Tags: []string{"x", "y"}, Agent: "one", Project: "q"})
			h.Add("d", &events.ConversationUpdated{Tags: &[]string{"z"}})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				for _, c := range []struct {
					query graph.ConversationQuery
					want  []string
				}{
					{graph.ConversationQuery{Tags: []string{"y"}}, []string{"b", "a"}},
					{graph.ConversationQuery{Tags: []string{"y", "x"}}, []string{"a"}},
					{graph.ConversationQuery{Tags: []string{"Y"}}, nil},
					{graph.ConversationQuery{Agent: "one"}, []string{"d", "a"}},
					{graph.ConversationQuery{Agent: "O_n-E"}, []string{"d", "a"}},
					{graph.ConversationQuery{Tags: []string{"y"}, Agent: "one"}, []string{"a"}},
					{graph.ConversationQuery{BranchOf: "a"}, []string{"c"}},
					{graph.ConversationQuery{BranchOf: "b"}, nil},
				} {
					require.Equal(t, c.want, titles(b, "t", c.query), "%+v", c.query)
				}
			})
		}},
		{"conversations are filtered by time, not by its text", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			for c, at := range map[string]time.Time{
				"before": noon.Add(-time.Nanosecond), "noon": noon, "tenth": noon.Add(100 * time.Millisecond), "hundredth": noon.Add(20 * time.Millisecond), "none": {},
			} {
				h.Time = at
				h.Add(c, message("m", "user", "x"))
			}
			h.Time = noon.Add(time.Hour)
			h.Add("noon", message("later", "user", "x"))
			b.apply(h.Messages)
			sorted := func(q graph.ConversationQuery) []string {
				list := titles(b, "t", q)
				slices.Sort(list)
				return list
			}
			cest := time.FixedZone("", 7200)
			require.Equal(t, []string{"hundredth", "noon", "tenth"}, sorted(graph.ConversationQuery{CreatedAt: graph.TimeRange{After: noon.In(cest)}}))
			require.Equal(t, []string{"before"}, sorted(graph.ConversationQuery{CreatedAt: graph.TimeRange{Before: noon}}))
			require.Equal(t, []string{"hundredth", "noon"}, sorted(graph.ConversationQuery{CreatedAt: graph.TimeRange{After: noon, Before: noon.Add(100 * time.Millisecond)}}))
			require.Equal(t, []string{"noon"}, sorted(graph.ConversationQuery{UpdatedAt: graph.TimeRange{After: noon.Add(time.Minute)}}))
			require.Equal(t, []string{"before", "hundredth", "none", "noon", "tenth"}, sorted(graph.ConversationQuery{}))
		}},
		{"a page of conversations with long descriptions ends early and continues on the next page", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			title := strings.Repeat("x", graph.MaxBodyBytes+1)
			const n = 150 // more titles of this size than fit on a page
			for c := range n {
				h.Add(fmt.Sprint(c), &events.ConversationStarted{Title: title})
			}
			b.apply(h.Messages)
			first := must(b.store.Conversations(b.ctx, "t", graph.ConversationQuery{Limit: 1000}))(t)
			require.Less(t, len(first.Rows), n)
			rest := must(b.store.Conversations(b.ctx, "t", graph.ConversationQuery{Limit: 1000, Before: first.Next}))(t)
			require.Zero(t, rest.Next)
			require.Len(t, append(first.Rows, rest.Rows...), n)
		}},
		{"a filter that few conversations pass ends a page early and continues on the next page", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			h.Add("wanted", &events.ConversationStarted{Agent: "rare"})
			for c := range graph.MaxExamined + 10 {
				h.Add(fmt.Sprint(c), message("m", "user", "x"))
			}
			b.apply(h.Messages)
			q := graph.ConversationQuery{Agent: "rare"}
			first := must(b.store.Conversations(b.ctx, "t", q))(t)
			require.Empty(t, first.Rows)
			require.NotZero(t, first.Next)
			q.Before = first.Next
			second := must(b.store.Conversations(b.ctx, "t", q))(t)
			require.Len(t, second.Rows, 1)
			require.Zero(t, second.Next)
		}},
	}
}
