package storetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
)

// recallCases test the rows stored for searches in a conversation.
func recallCases(w graphShop) []namedCase {
	// spoken has a conversation whose third message has no text, and a second conversation.
	spoken := func() *History {
		h := NewHistory()
		h.Add("c", &events.MessageCreated{MessageID: "a", Role: "user", Speaker: "Ann", Session: "s1", Content: "The parser fails on paths."}) // 1
		h.Add("d", message("a", "user", "Something else."))
		h.Add("c", message("b", "assistant", strings.Repeat("A long answer about pkg/parser.go.\n", 100))) // 3
		h.Add("c", message("e", "assistant", " \n"))
		h.Add("c", read("k", "/a"))
		h.Add("c", result("k", "results are not messages", true))
		h.Add("c", message("f", "user", "Thanks.")) // 7
		return h
	}
	seqs := func(list []graph.Bag) (seqs []uint64) {
		for _, b := range list {
			seqs = append(seqs, b.Seq)
		}
		return seqs
	}
	return []namedCase{
		{"each message with text has its bag, with a vector for each passage", func(t *testing.T) {
			bothWays(t, w, spoken(), func(t *testing.T, b graphBench) {
				list := must(b.store.Bags(b.ctx, id("c"), graph.BagQuery{}))(t)
				require.Equal(t, []uint64{1, 3, 7}, seqs(list))
				require.Equal(t, []int{1, 2, 4}, []int{list[0].N, list[1].N, list[2].N})
				bag, vectors, table, err := list[0].Decode()
				require.NoError(t, err)
				want := recall.NewBag(recall.Message{Role: "user", Speaker: "Ann", Session: "s1", Content: "The parser fails on paths."})
				require.Equal(t, want, bag)
				require.Equal(t, []recall.Vector{recall.Quantize(static.Embed("The parser fails on paths."))}, vectors)
				require.EqualValues(t, static.Table, table)
				bag, vectors, _, err = list[1].Decode()
				require.NoError(t, err)
				require.Greater(t, len(bag.Passages), 3)
				require.Len(t, vectors, len(bag.Passages))
			})
		}},
		{"bags are read from a sequence on, as many as are asked for", func(t *testing.T) {
			bothWays(t, w, spoken(), func(t *testing.T, b graphBench) {
				for q, want := range map[graph.BagQuery][]uint64{
					{From: 1, Limit: 2}: {1, 3}, {From: 2, Limit: 2}: {3, 7}, {From: 3, Limit: 1}: {3}, {From: 7}: {7}, {From: 8}: nil,
					{Before: 7}: {1, 3}, {From: 2, Before: 4}: {3}, {From: graph.Latest}: nil,
				} {
					require.Equal(t, want, seqs(must(b.store.Bags(b.ctx, id("c"), q))(t)), "%+v", q)
				}
				_, err := b.store.Bags(b.ctx, id("nobody"), graph.BagQuery{})
				require.ErrorIs(t, err, graph.ErrNotFound)
			})
		}},
		{"messages are read by their sequences, in the order of the log", func(t *testing.T) {
			bothWays(t, w, spoken(), func(t *testing.T, b graphBench) {
				var ids []string
				for _, m := range must(b.store.MessagesAt(b.ctx, id("c"), []uint64{7, 1, 2, 5, 1, 99, 0, 4}))(t) {
					ids = append(ids, m.MessageID)
				}
				require.Equal(t, []string{"a", "e", "f"}, ids, "of the conversation alone, each once")
				require.Empty(t, must(b.store.MessagesAt(b.ctx, id("c"), nil))(t))
				all := must(b.store.Messages(b.ctx, id("c"), graph.MessageQuery{OldestFirst: true}))(t)
				require.Equal(t, all[:1], must(b.store.MessagesAt(b.ctx, id("c"), []uint64{1}))(t))
			})
		}},
		{"what is deleted has no bags", func(t *testing.T) {
			h := spoken()
			h.Add("c", &events.ConversationDeleted{})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				_, err := b.store.Bags(b.ctx, id("c"), graph.BagQuery{})
				require.ErrorIs(t, err, graph.ErrNotFound)
				_, err = b.store.MessagesAt(b.ctx, id("c"), []uint64{1})
				require.ErrorIs(t, err, graph.ErrNotFound)
				require.Equal(t, []uint64{2}, seqs(must(b.store.Bags(b.ctx, id("d"), graph.BagQuery{}))(t)))
			})
		}},
	}
}
