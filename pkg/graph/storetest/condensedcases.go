package storetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

func (b graphBench) condensed(asOf uint64, calls ...string) map[string]graph.Condensed {
	b.t.Helper()
	return byID(must(b.store.Condensations(b.ctx, id("c"), refs(calls...), asOf))(b.t))
}

// condensedCases test shorter texts for the results of calls.
func condensedCases(w graphShop) []namedCase {
	// called is a conversation with two results, one of them before its call.
	called := func() *History {
		h := NewHistory()
		h.Add("c", message("m", "user", "x"))
		h.Add("c", read("k1", "/a"))
		h.Add("c", result("k1", "long", true)) // 3
		h.Add("c", result("k2", "long", true))
		h.Add("c", read("k2", "/b"))
		h.Add("c", read("pending", "/c"))
		h.Add("d", result("k3", "of another conversation", true))
		return h
	}
	return []namedCase{
		{"the newest condensation of a result is read as of a sequence", func(t *testing.T) {
			h := called()
			h.Add("c", &events.ToolCondensed{ToolCallID: "k1", Content: "one", Model: "m", PromptHash: "p", CharsIn: 4, CharsOut: 3}) // 8
			h.Add("c", condensed("k2", "two"))                                                                                        // 9
			h.Add("c", condensed("k1", "three"))                                                                                      // 10
			h.Add("c", condensed("k1", "three"))                                                                                      // 11, the same again
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Empty(t, b.failed())
				all := []string{"k1", "k2", "k2", "k3", "pending", "nobody", ""}
				for asOf, want := range map[uint64]map[string]string{
					0: {}, 7: {}, 8: {"k1": "one"}, 9: {"k1": "one", "k2": "two"}, 10: {"k1": "three", "k2": "two"}, graph.Latest: {"k1": "three", "k2": "two"},
				} {
					got := map[string]string{}
					for call, c := range b.condensed(asOf, all...) {
						got[call] = c.Content.Text
					}
					require.Equal(t, want, got, "as of sequence %d", asOf)
				}
				require.Equal(t, graph.Condensed{
					Position: graph.Position{Seq: 8, N: 1, Turn: 1}, Origin: graph.Origin{EventID: "e8", Source: "storetest"},
					ToolCallID: "k1", Content: graph.NewBody("one"), Model: "m", PromptHash: "p", CharsIn: 4, CharsOut: 3,
				}, b.condensed(8, "k1")["k1"])
				require.EqualValues(t, 11, b.condensed(graph.Latest, "k1")["k1"].Seq)
				require.Equal(t, graph.Counts{MessageCount: 1, TurnCount: 1, ToolCallCount: 3, ToolResultCount: 2, CondensedCount: 4, TotalChars: 1, LastSeq: 11}, b.conversation("c").Counts)
				require.Equal(t, "long", b.results("c", "k1")["k1"].Result.Text, "the result stays as it is")
			})
		}},
		{"a condensation of no result is refused and listed", func(t *testing.T) {
			refuses(t, w, called, map[string]refusal{
				"an unknown call":                  {condensed("nobody", "x"), `no result of call "nobody"`},
				"a call without a result":          {condensed("pending", "x"), `no result of call "pending"`},
				"a result of another conversation": {condensed("k3", "x"), `no result of call "k3"`},
			})
			b := graphBench{w.bench(t)}
			h := NewHistory()
			h.Add("c", condensed("k", "x"))
			b.apply(h.Messages)
			require.Len(t, b.failed(), 1)
			_, err := b.store.Conversation(b.ctx, id("c"), graph.Latest)
			require.ErrorIs(t, err, graph.ErrNotFound, "it begins no conversation")
		}},
		{"a condensation may hold anything, up to a size", func(t *testing.T) {
			odd, long := "nul\x00 '; DROP \u2028", "x"+strings.Repeat("é", graph.MaxBodyBytes)
			h := NewHistory()
			h.Add("c", result(odd, "x", true))
			h.Add("c", result("k", "x", true))
			h.Add("c", condensed(odd, odd))
			h.Add("c", &events.ToolCondensed{ToolCallID: "k", Content: long, Model: long, PromptHash: long})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				found := b.condensed(graph.Latest, odd, "k")
				require.Equal(t, graph.NewBody(odd), found[odd].Content)
				require.Equal(t, graph.NewBody(long), found["k"].Content)
				require.Len(t, found["k"].Content.Text, graph.MaxBodyBytes-1)
				require.Len(t, found["k"].Model, 4<<10-1)
				require.Len(t, found["k"].PromptHash, 4<<10-1)
			})
		}},
	}
}
