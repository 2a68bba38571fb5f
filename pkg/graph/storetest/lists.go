package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme/events"
	"mneme/pkg/graph"
)

// listCases are about reads of many rows: order, filter, cursor.
func listCases(w graphShop) []namedCase {
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
		{"a list of conversations goes on from its last row", func(t *testing.T) {
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
		{"messages are read newest first, by role and from a sequence on", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			for i := range 30 {
				h.Add("c", message(fmt.Sprintf("m%d", i), []string{"user", "assistant", "system"}[i%3], "x"))
				h.Add("d", message("m"+fmt.Sprint(i), "user", "x"))
			}
			b.apply(h.Messages)
			ids := func(q graph.MessageQuery) (ids []string) {
				for _, m := range b.messages("c", q) {
					ids = append(ids, m.MessageID)
				}
				return ids
			}
			require.Equal(t, []string{"m29", "m28", "m27"}, ids(graph.MessageQuery{Limit: 3}))
			require.Equal(t, []string{"m9", "m8"}, ids(graph.MessageQuery{Limit: 2, Before: 21}))
			require.Equal(t, []string{"m28", "m25"}, ids(graph.MessageQuery{Limit: 2, Role: "assistant"}))
			require.Equal(t, []string{"m3", "m0"}, ids(graph.MessageQuery{Role: "user", Before: 13}))
			require.Len(t, ids(graph.MessageQuery{}), 30)
			require.Empty(t, ids(graph.MessageQuery{Before: 1}))
		}},
		{"a transcript merges messages, calls and results, newest first", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			realistic(h, "c", 5)
			b.apply(h.Messages)
			all := b.transcript("c", 0, 1000)
			require.Len(t, all, len(h.Messages))
			for i, e := range all {
				require.EqualValues(t, len(h.Messages)-i, e.Position().Seq)
			}
			require.Equal(t, all[:7], b.transcript("c", 0, 7))
			require.Equal(t, all[10:14], b.transcript("c", all[9].Position().Seq, 4))
		}},
		{"references come back in their order", func(t *testing.T) {
			h := NewHistory()
			var refs []events.Reference
			for i := range 40 {
				refs = append(refs, events.Reference{File: fmt.Sprintf("f%d.go", 40-i), StartLine: i, EndLine: i + 1, Name: "f"})
			}
			m := message("m", "user", "x")
			m.References = refs
			h.Add("c", m)
			h.Add("c", message("m2", "user", "x"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				list := b.messages("c", graph.MessageQuery{})
				require.Nil(t, list[0].References)
				require.Equal(t, refs, list[1].References)
			})
		}},
	}
}
