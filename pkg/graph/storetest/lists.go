package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// listCases test reads of many rows: order, filter, cursor.
func listCases(w graphShop) []namedCase {
	return []namedCase{
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
			require.Equal(t, []string{"m7", "m6"}, ids(graph.MessageQuery{From: 13, Before: 17}))
			require.Equal(t, []string{"m6", "m7"}, ids(graph.MessageQuery{From: 13, Before: 40, Limit: 2, OldestFirst: true}))
			require.Equal(t, []string{"m9", "m12"}, ids(graph.MessageQuery{From: 14, Role: "user", Limit: 2, OldestFirst: true}))
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
			part := func(q graph.TranscriptQuery) []graph.Entry {
				return must(b.store.Transcript(b.ctx, id("c"), q))(t)
			}
			require.Equal(t, all[3:10], part(graph.TranscriptQuery{From: all[9].Position().Seq, Before: all[2].Position().Seq}))
			oldest := slices.Clone(all)
			slices.Reverse(oldest)
			require.Equal(t, oldest[:7], part(graph.TranscriptQuery{Limit: 7, OldestFirst: true}))
			require.Equal(t, oldest[5:9], part(graph.TranscriptQuery{From: oldest[5].Position().Seq, Limit: 4, OldestFirst: true}))
			require.Empty(t, part(graph.TranscriptQuery{From: 5, Before: 5}))
			require.Empty(t, part(graph.TranscriptQuery{From: graph.Latest}))
		}},
		{"calls alone are read without the rows between them", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			realistic(h, "c", 5)
			b.apply(h.Messages)
			all := b.transcript("c", 0, 1000)
			calls := slices.DeleteFunc(all, func(e graph.Entry) bool { return e.Call == nil })
			require.Equal(t, calls[:6], must(b.store.Transcript(b.ctx, id("c"), graph.TranscriptQuery{Limit: 6, CallsOnly: true}))(t))
			slices.Reverse(calls)
			require.Equal(t, calls[2:9], must(b.store.Transcript(b.ctx, id("c"), graph.TranscriptQuery{From: calls[2].Call.Seq, Limit: 7, OldestFirst: true, CallsOnly: true}))(t))
		}},
		{"counts are read at any number of sequences", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			h.Next = 5
			h.Add("d", message("m", "user", "other"))
			realistic(h, "c", 3)
			h.Add("c", &events.ConversationUpdated{Status: "archived"})
			b.apply(h.Messages)
			seqs := []uint64{graph.Latest, 0, h.Next, 5}
			want := []graph.Counts{b.conversation("c").Counts, {}, b.conversation("c").Counts, {}}
			for seq := h.Next; seq > 5; seq-- {
				seqs = append(seqs, seq)
				want = append(want, b.conversationAsOf("c", seq).Counts)
			}
			require.Equal(t, want, must(b.store.Counts(b.ctx, id("c"), seqs))(t))
			require.Empty(t, must(b.store.Counts(b.ctx, id("c"), nil))(t))
		}},
		{"the user message of a turn is found by its number", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			for i := range 5 {
				h.Add("c", message(fmt.Sprint("a", i), "assistant", "x"))
				h.Add("c", message(fmt.Sprint("u", i), "user", "x"))
			}
			b.apply(h.Messages)
			list := b.messages("c", graph.MessageQuery{Turn: 3})
			require.Len(t, list, 1)
			require.Equal(t, "u2", list[0].MessageID)
			require.Empty(t, b.messages("c", graph.MessageQuery{Turn: 3, Before: list[0].Seq}), "as of before it")
			require.Empty(t, b.messages("c", graph.MessageQuery{Turn: 6}))
		}},
		{"messages are read by their ids as of a sequence", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			h.Add("c", message("m1", "user", "one"))
			h.Add("c", message("m2", "user", "two"))
			h.Add("d", message("m3", "user", "other"))
			b.apply(h.Messages)
			for asOf, want := range []int{0, 1, 2, 2} {
				require.Len(t, must(b.store.MessagesByID(b.ctx, id("c"), refs("m1", "m2", "m2", "m3", ""), uint64(asOf)))(t), want)
			}
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
				require.Equal(t, refs, must(b.store.MessagesByID(b.ctx, id("c"), []graph.Ref{{ID: "m"}}, graph.Latest))(t)[graph.Ref{ID: "m"}].References)
			})
		}},
	}
}
