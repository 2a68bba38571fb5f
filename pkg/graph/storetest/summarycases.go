package storetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

func (b graphBench) summaries(q graph.SummaryQuery) []graph.Summary {
	b.t.Helper()
	return must(b.store.Summaries(b.ctx, id("c"), q))(b.t)
}

// summaryIDs returns the ids that a query finds.
func (b graphBench) summaryIDs(q graph.SummaryQuery) (ids []string) {
	b.t.Helper()
	for _, s := range b.summaries(q) {
		ids = append(ids, s.SummaryID)
	}
	return ids
}

// oldest returns the same query, oldest first.
func oldest(q graph.SummaryQuery) graph.SummaryQuery {
	q.OldestFirst = true
	return q
}

// story has a conversation "c" of eight messages with summaries of three levels.
func story() *History {
	h := NewHistory()
	for i := range 8 {
		h.Add("c", message(fmt.Sprint("m", i), "user", "x")) // 1 to 8
	}
	h.Add("c", written("s1", 1, 1, 2))             // 9
	h.Add("c", written("s2", 1, 3, 4))             // 10
	h.Add("c", written("p1", 2, 1, 4, "s1", "s2")) // 11
	h.Add("c", written("s3", 1, 5, 6))             // 12
	h.Add("c", written("s4", 1, 7, 8))             // 13
	h.Add("c", written("p2", 2, 5, 8, "s3", "s4")) // 14
	h.Add("c", written("t1", 3, 1, 8, "p1", "p2")) // 15
	h.Add("c", written("s5", 1, 9, 11))            // 16
	return h
}

// revision returns a summary that supersedes another.
func revision(id string, of *events.SummaryWritten) *events.SummaryWritten {
	p := written(id, of.Level, of.FirstSeq, of.LastSeq, of.Children...)
	p.Supersedes = of.SummaryID
	return p
}

// refusal is an event to be refused, with a part of the reason.
type refusal struct {
	payload events.Payload
	reason  string
}

// refuses applies a history and then events that must be refused, and checks that they
// change nothing.
func refuses(t *testing.T, w graphShop, history func() *History, list map[string]refusal) {
	for name, refused := range list {
		t.Run(name, func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := history()
			b.apply(h.Messages)
			before, hash := view(b.bench, id("c"), graph.Latest), b.hash(id("c"))
			seq := h.Add("c", refused.payload)
			b.apply(h.Messages)
			require.Equal(t, before, view(b.bench, id("c"), graph.Latest))
			require.Equal(t, hash, b.hash(id("c")))
			failed := b.failed()
			require.Len(t, failed, 1)
			require.Equal(t, seq, failed[0].Seq)
			require.Equal(t, projection.ClassInvalid, failed[0].Class)
			require.Contains(t, failed[0].Reason, refused.reason)
			h.Add("c", message("next", "user", "x"))
			b.apply(h.Messages)
			require.Len(t, b.failed(), 1)
		})
	}
}

func summaryCases(w graphShop) []namedCase {
	return slices.Concat([]namedCase{
		{"a summary comes back with all it has", func(t *testing.T) {
			h := NewHistory()
			h.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			h.Add("c", message("m1", "user", "x"))
			h.Add("c", message("m2", "assistant", "x"))
			p := &events.SummaryWritten{
				SummaryID: "s", Level: 1, FirstSeq: 1, LastSeq: 2, FirstTurn: 1, LastTurn: 1, Conversation: "said", Actions: "done",
				Findings: []string{"f1", "f2"}, Topics: []string{"t"}, Files: []string{"/a"}, Tools: []string{"Read"}, TurnCount: 1,
				Method: "extractive", FallbackReason: "no model", Model: "model", PromptHash: "hash", CharsIn: 7, CharsOut: 3,
			}
			h.AddAs("c", "event", p)
			h.Add("c", written("p", 2, 1, 2, "s"))
			q := revision("s'", p)
			h.Add("c", q)
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				want := graph.Summary{
					Position:  graph.Position{Seq: 3, N: 1, Turn: 1, Step: 1},
					Origin:    graph.Origin{EventID: "event", Source: "storetest", Time: "2026-03-01T12:00:02Z"},
					SummaryID: "s", Level: 1, FirstSeq: 1, LastSeq: 2, FirstTurn: 1, LastTurn: 1, Conversation: "said", Actions: "done",
					Findings: p.Findings, Topics: p.Topics, Files: p.Files, Tools: p.Tools, TurnCount: 1,
					Method: "extractive", FallbackReason: "no model", Model: "model", PromptHash: "hash", CharsIn: 7, CharsOut: 3,
					ConsolidatedSeq: 4, SupersededSeq: 5,
				}
				all := b.summaries(oldest(graph.SummaryQuery{Superseded: true}))
				require.Equal(t, want, all[0])
				require.Equal(t, []string{"s"}, all[1].Children)
				require.Equal(t, "s", all[2].Supersedes)
				require.EqualValues(t, 4, all[2].ConsolidatedSeq, "its range is consolidated")
				require.Zero(t, all[2].SupersededSeq)
				require.Equal(t, map[string]graph.Summary{"s": want, "p": all[1]}, must(b.store.SummariesByID(b.ctx, id("c"), []string{"s", "p", "p", "nobody", ""}, graph.Latest))(t))
				want.SupersededSeq = 0
				require.Equal(t, map[string]graph.Summary{"s": want}, must(b.store.SummariesByID(b.ctx, id("c"), []string{"s", "s'"}, 4))(t))
				c := b.conversation("c")
				require.Equal(t, graph.Counts{MessageCount: 2, TurnCount: 1, StepCount: 1, TotalChars: 2, SummaryCount: 3, LastSeq: 5}, c.Counts)
				require.Equal(t, "2026-03-01T12:00:04Z", c.UpdatedAt)
				require.Equal(t, 1, b.conversationAsOf("c", 3).SummaryCount)
			})
		}},
		{"what is consolidated leaves the frontier", func(t *testing.T) {
			bothWays(t, w, story(), func(t *testing.T, b graphBench) {
				for asOf, want := range map[uint64]string{
					8: "", 9: "s1", 10: "s1 s2", 11: "p1", 12: "p1 s3", 13: "p1 s3 s4", 14: "p1 p2", 15: "t1", 16: "t1 s5", graph.Latest: "t1 s5",
				} {
					q := graph.SummaryQuery{AsOf: asOf, Frontier: true}
					require.Equal(t, want, strings.Join(b.summaryIDs(oldest(q)), " "), "as of sequence %d", asOf)
					q.Level = 1
					level1 := strings.Join(slices.DeleteFunc(strings.Fields(want), func(id string) bool { return id[0] != 's' }), " ")
					require.Equal(t, level1, strings.Join(b.summaryIDs(oldest(q)), " "), "level 1 as of sequence %d", asOf)
				}
				require.Empty(t, b.failed())
			})
		}},
		{"the newest revision stands for its range, whenever it comes", func(t *testing.T) {
			h := story()
			h.Add("c", revision("s5'", written("s5", 1, 9, 11)))            // 17
			h.Add("c", revision("s5''", written("s5'", 1, 9, 11)))          // 18
			h.Add("c", revision("s1'", written("s1", 1, 1, 2)))             // 19, of a consolidated summary
			h.Add("c", revision("s5'''", written("s5", 1, 9, 11)))          // 20, of the first revision again
			h.Add("c", written("p3", 2, 9, 11, "s5'"))                      // 21, naming any revision
			h.Add("c", revision("s5''''", written("s5'''", 1, 9, 11)))      // 22
			h.Add("c", revision("t1'", written("t1", 3, 1, 8, "p1", "p2"))) // 23
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Empty(t, b.failed())
				for asOf, want := range map[uint64]string{16: "t1 s5", 17: "t1 s5'", 18: "t1 s5''", 19: "t1 s5''", 20: "t1 s5'''", 21: "t1 p3", 22: "t1 p3", 23: "p3 t1'"} {
					require.Equal(t, want, strings.Join(b.summaryIDs(oldest(graph.SummaryQuery{AsOf: asOf, Frontier: true})), " "), "as of sequence %d", asOf)
				}
				require.Equal(t, []string{"s1", "s2", "s3", "s4", "s5"}, b.summaryIDs(oldest(graph.SummaryQuery{AsOf: 16, Level: 1})))
				require.Equal(t, []string{"s2", "s3", "s4", "s1'", "s5''''"}, b.summaryIDs(oldest(graph.SummaryQuery{Level: 1})))
				require.Equal(t, []string{"s1", "s2", "s3", "s4", "s5", "s5'", "s5''", "s1'", "s5'''", "s5''''"}, b.summaryIDs(oldest(graph.SummaryQuery{Level: 1, Superseded: true})))
				require.Equal(t, []string{"t1", "p3", "t1'"}, b.summaryIDs(oldest(graph.SummaryQuery{Frontier: true, Superseded: true})))
			})
		}},
		{"summaries are read newest first, by level and by their own sequences", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := story()
			b.apply(h.Messages)
			require.Equal(t, []string{"s5", "t1", "p2"}, b.summaryIDs(graph.SummaryQuery{Limit: 3}))
			require.Equal(t, []string{"s4", "s3"}, b.summaryIDs(graph.SummaryQuery{Level: 1, Limit: 2, Before: 16}))
			require.Equal(t, []string{"s2", "p1"}, b.summaryIDs(graph.SummaryQuery{From: 10, Limit: 2, OldestFirst: true}))
			require.Equal(t, []string{"p1", "p2"}, b.summaryIDs(graph.SummaryQuery{Level: 2, From: 10, OldestFirst: true}))
			require.Equal(t, []string{"s5"}, b.summaryIDs(graph.SummaryQuery{Frontier: true, Limit: 1}))
			require.Equal(t, []string{"t1"}, b.summaryIDs(graph.SummaryQuery{Frontier: true, Before: 16}))
			require.Equal(t, []string{"s5"}, b.summaryIDs(graph.SummaryQuery{Frontier: true, From: 16}))
			require.Empty(t, b.summaryIDs(graph.SummaryQuery{Level: 4}))
			require.Empty(t, b.summaryIDs(graph.SummaryQuery{Level: 4, Frontier: true}))
			require.Empty(t, b.summaryIDs(graph.SummaryQuery{Level: math.MaxInt32, Frontier: true}))
			require.Empty(t, b.summaryIDs(graph.SummaryQuery{Before: 9}))
			require.Empty(t, b.summaryIDs(graph.SummaryQuery{From: graph.Latest}))
			require.Len(t, b.summaryIDs(graph.SummaryQuery{}), 8)
		}},
		{"a summary that does not fit is refused and listed", func(t *testing.T) {
			again := func() *History { h := story(); h.Add("d", message("m", "user", "x")); return h }
			refuses(t, w, again, map[string]refusal{
				"overlap":                    {written("x", 1, 11, 13), "begins at sequence 11, but level 1 is covered up to 11"},
				"gap":                        {written("x", 1, 13, 14), "leaves a gap: the next range of level 1 begins at 12"},
				"beyond the end":             {written("x", 1, 12, 17), "ends at sequence 17, but the conversation ends at 16"},
				"unknown level":              {written("x", 5, 1, 8, "t1"), "has level 5, but there is no summary of level 4"},
				"unknown child":              {written("x", 2, 9, 11, "nobody"), `has the child "nobody", which the conversation does not have`},
				"child of another level":     {written("x", 2, 9, 11, "p2"), `has the child "p2" of level 2`},
				"child that is consolidated": {written("x", 2, 9, 11, "s4"), `has the child "s4", which begins at sequence 7`},
				"children that are not all":  {written("x", 2, 9, 12, "s5"), "ends at sequence 12, but its children at 11"},
				"no children":                {written("x", 2, 9, 11), "has no children"},
				"children of level 1":        {written("x", 1, 12, 13, "s5"), "has children"},
				"revision of nobody":         {revision("x", written("nobody", 1, 9, 11)), `supersedes "nobody", which the conversation does not have`},
				"revision of another range":  {revision("x", written("s5", 1, 9, 10)), `supersedes "s5" of level 1 and sequences 9 to 11`},
				"revision of another level":  {revision("x", written("s5", 2, 9, 11)), `supersedes "s5" of level 1`},
				"an id that is taken":        {written("s1", 1, 12, 13), "the event at sequence 9 has the same identity and other content"},
			})
		}},
		{"a batch is reduced twice, however many of its events are invalid", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := story()
			for i := range 50 {
				h.Add("c", written(fmt.Sprint("x", i), 1, 1, 1))
				h.Add("c", message(fmt.Sprint("after", i), "user", "x"))
			}
			h.Add("c", written("x0", 1, 12, 18)) // takes the id, which the refused event does not hold
			h.Add("c", written("p3", 2, 9, 18, "s5", "x0"))
			reduced := 0
			p := graph.Projection()
			for kind, reduce := range p.Reducers {
				p.Reducers[kind] = func(u *graph.Unit, e *events.Recorded) error {
					reduced++
					return reduce(u, e)
				}
			}
			cp, err := p.Apply(b.ctx, b.store, b.cp, h.Messages)
			require.NoError(t, err)
			require.EqualValues(t, 16+50+2, cp.Applied)
			require.LessOrEqual(t, reduced, 3*len(h.Messages), "once more where an id is taken again, and on Neo4j for the look at the keys")
			require.Len(t, b.failed(), 50)
			require.Equal(t, []string{"t1", "p3"}, b.summaryIDs(oldest(graph.SummaryQuery{Frontier: true})))
		}},
		{"a conversation does not begin with a summary", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", written("s", 1, 1, 1))
			h.Add("c", message("m", "user", "x"))
			h.Add("c", written("s", 1, 1, 1)) // covers events that the conversation does not have
			h.Add("c", written("s", 1, 2, 2))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"s"}, b.summaryIDs(graph.SummaryQuery{}))
				failed := b.failed()
				require.Len(t, failed, 2)
				require.Contains(t, failed[0].Reason, "a conversation without events")
				require.Contains(t, failed[1].Reason, "level 1 is covered up to 1")
				require.EqualValues(t, 2, b.conversation("c").FirstSeq)
			})
		}},
		{"a deleted conversation has no summaries and takes none", func(t *testing.T) {
			h := story()
			h.Add("c", message("m", "user", "x"))
			h.Add("c", read("k", "/a"))
			h.Add("c", result("k", "x", true))
			h.Add("c", condensed("k", "x"))
			h.Add("c", &events.ConversationDeleted{})
			h.Add("c", written("s6", 1, 12, 13))
			h.Add("c", condensed("k", "x"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				failed := b.failed()
				require.Len(t, failed, 2)
				require.Contains(t, failed[0].Reason, "was deleted at sequence 21")
				for _, unknown := range []events.ConversationID{id("c"), id("nobody"), {Tenant: "u", ID: "c"}} {
					_, err := b.store.Summaries(b.ctx, unknown, graph.SummaryQuery{})
					require.ErrorIs(t, err, graph.ErrNotFound)
					_, err = b.store.SummariesByID(b.ctx, unknown, []string{"s1"}, graph.Latest)
					require.ErrorIs(t, err, graph.ErrNotFound)
					_, err = b.store.Condensations(b.ctx, unknown, refs("k"), graph.Latest)
					require.ErrorIs(t, err, graph.ErrNotFound)
				}
			})
		}},
		{"ids and texts of summaries may hold anything, up to a size", func(t *testing.T) {
			odd := "nul\x00 %41 \U0001F600 '; DROP \u2028 \\ \""
			long := strings.Repeat("é", graph.MaxBodyBytes)
			h := NewHistory()
			h.Add("c", message("m", "user", "x"))
			s := written(odd, 1, 1, 1)
			s.Conversation, s.Findings, s.Files = odd, []string{odd, ""}, []string{odd}
			h.Add("c", s)
			p := written(odd+"2", 2, 1, 1, odd)
			p.Conversation, p.Actions, p.FallbackReason, p.Model, p.PromptHash = long, long, long, long, long
			for range 10 {
				p.Findings, p.Topics = append(p.Findings, long[:10_000]), append(p.Topics, long[:10_000])
			}
			h.Add("c", p)
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				found := must(b.store.SummariesByID(b.ctx, id("c"), []string{odd, odd + "2"}, graph.Latest))(t)
				got := found[odd]
				require.Equal(t, odd, got.Conversation)
				require.Equal(t, []string{odd, ""}, got.Findings)
				require.Equal(t, []string{odd}, got.Files)
				require.Nil(t, got.Tools)
				got = found[odd+"2"]
				require.Equal(t, []string{odd}, got.Children)
				require.Equal(t, long[:graph.MaxBodyBytes], got.Conversation)
				require.Equal(t, long[:graph.MaxBodyBytes], got.Actions)
				require.Equal(t, p.Findings[:6], got.Findings)
				require.Equal(t, p.Topics[:6], got.Topics)
				for _, name := range []string{got.FallbackReason, got.Model, got.PromptHash} {
					require.Len(t, name, 4<<10)
				}
			})
		}},
		{"what has another summary or condensation has another hash", func(t *testing.T) {
			variant := func(change func(p *events.SummaryWritten)) events.Payload {
				p := written("s", 1, 1, 4)
				change(p)
				return p
			}
			variants := []events.Payload{
				message("m2", "user", "x"), condensed("k", "x"), condensed("k", "y"),
				&events.ToolCondensed{ToolCallID: "k", Content: "x", Model: "other"}, &events.ToolCondensed{ToolCallID: "k", Content: "x", Model: "model", PromptHash: "x"},
				&events.ToolCondensed{ToolCallID: "k", Content: "x", Model: "model", CharsIn: 1}, &events.ToolCondensed{ToolCallID: "k", Content: "x", Model: "model", CharsOut: 1},
				variant(func(*events.SummaryWritten) {}), written("s2", 1, 1, 4), written("s", 1, 1, 3),
			}
			for _, change := range []func(p *events.SummaryWritten){
				func(p *events.SummaryWritten) { p.FirstTurn = -1 }, func(p *events.SummaryWritten) { p.LastTurn = 1 },
				func(p *events.SummaryWritten) { p.Conversation = "x" }, func(p *events.SummaryWritten) { p.Actions = "x" },
				func(p *events.SummaryWritten) { p.Findings = []string{"x"} }, func(p *events.SummaryWritten) { p.Topics = []string{"x"} },
				func(p *events.SummaryWritten) { p.Files = []string{"x"} }, func(p *events.SummaryWritten) { p.Tools = []string{"x"} },
				func(p *events.SummaryWritten) { p.TurnCount = 1 }, func(p *events.SummaryWritten) { p.Method = "llm" },
				func(p *events.SummaryWritten) { p.FallbackReason = "x" }, func(p *events.SummaryWritten) { p.Model = "x" },
				func(p *events.SummaryWritten) { p.PromptHash = "x" }, func(p *events.SummaryWritten) { p.CharsIn = 1 },
				func(p *events.SummaryWritten) { p.CharsOut = 1 },
			} {
				variants = append(variants, variant(change))
			}
			seen := map[events.Digest]int{}
			for i, p := range variants {
				b := graphBench{w.bench(t)}
				h := NewHistory()
				h.Add("c", message("m", "user", "x"))
				h.Add("c", read("k", "/a"))
				h.Add("c", result("k", "x", true))
				h.Add("c", message("m1", "user", "x"))
				h.AddAs("c", "last", p)
				b.apply(h.Messages)
				require.Empty(t, b.failed())
				hash := b.hash(id("c")).Hash
				require.NotContains(t, seen, hash, "%d and %d", seen[hash], i)
				seen[hash] = i
			}
		}},
		{"every backend makes the same hash of the same events", func(t *testing.T) {
			h := story()
			h.Add("c", revision("s5'", written("s5", 1, 9, 11)))
			h.Add("c", read("k", "/a"))
			h.Add("c", result("k", "x", true))
			h.Add("c", condensed("k", "short"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, "35fd4a9f4cb9174b1a318d811ab8b20c", b.hash(id("c")).Hash.String())
			})
		}},
	}, summaryLaws(w))
}

func summaryLaws(w graphShop) []namedCase {
	return []namedCase{
		{"law: the summaries that fit are taken, and a read as of a sequence sees what was there then", func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				h := summarised.Draw(r, "history")
				b := graphBench{w.bench(r)}
				then := map[uint64]graphView{}
				for i, m := range h.Messages {
					b.apply(h.Messages[i : i+1])
					then[m.Seq] = view(b.bench, id("c"), graph.Latest)
				}
				var taken []string
				last := then[h.Next-1]
				for _, s := range last.Summaries {
					taken = append(taken, s.SummaryID)
				}
				slices.Reverse(taken)
				require.Equal(r, h.taken, taken)
				require.Equal(r, h.condensed, last.Conversation.CondensedCount)
				for seq, want := range then {
					require.Equal(r, want, view(b.bench, id("c"), seq), "as of sequence %d of %d", seq, h.Next-1)
				}
			})
		}},
		{"law: any query finds what it asks for among all summaries", func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				h := summarised.Draw(r, "history")
				b := graphBench{w.bench(r)}
				b.apply(h.Messages)
				if h.first == 0 {
					return
				}
				all := b.summaries(graph.SummaryQuery{Superseded: true, Limit: 1000})
				for range 10 {
					seq := rapid.Uint64Range(0, h.Next)
					q := graph.SummaryQuery{
						AsOf: seq.Draw(r, "as of"), Level: rapid.IntRange(0, 3).Draw(r, "level"), From: seq.Draw(r, "from"), Before: seq.Draw(r, "before"),
						Frontier: rapid.Bool().Draw(r, "frontier"), Superseded: rapid.Bool().Draw(r, "superseded"),
						Limit: rapid.IntRange(0, 4).Draw(r, "limit"), OldestFirst: rapid.Bool().Draw(r, "oldest first"),
					}
					require.Equal(r, chosen(all, q), b.summaryIDs(q), "%+v", q)
				}
			})
		}},
		{"law: repaired, a summarised conversation has the rows that it had", func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				h := summarised.Draw(r, "history")
				b := graphBench{w.bench(r)}
				b.apply(h.Messages)
				before, failed := view(b.bench, id("c"), graph.Latest), b.failed()
				_, _, err := b.projection.Reapply(b.ctx, b.store, b.cp, id("c"), h.Messages)
				require.NoError(r, err)
				after := view(b.bench, id("c"), graph.Latest)
				before.Conversation.Repairs = after.Conversation.Repairs
				require.Equal(r, before, after)
				require.Equal(r, failed, b.failed())
			})
		}},
	}
}

// chosen returns the ids that a query selects from all summaries, newest first. It is the
// specification of a query.
func chosen(all []graph.Summary, q graph.SummaryQuery) (ids []string) {
	asOf := cmp.Or(q.AsOf, graph.Latest)
	then := slices.DeleteFunc(slices.Clone(all), func(s graph.Summary) bool { return s.Seq > asOf })
	consolidated := func(s graph.Summary) bool {
		return slices.ContainsFunc(then, func(p graph.Summary) bool {
			return p.Level == s.Level+1 && p.FirstSeq <= s.FirstSeq && s.LastSeq <= p.LastSeq
		})
	}
	superseded := func(s graph.Summary) bool {
		return slices.ContainsFunc(then, func(n graph.Summary) bool {
			return n.Level == s.Level && n.FirstSeq == s.FirstSeq && n.Seq > s.Seq
		})
	}
	if q.OldestFirst {
		slices.Reverse(then)
	}
	for _, s := range then {
		switch {
		case q.Level != 0 && s.Level != q.Level, s.Seq < q.From, q.Before != 0 && s.Seq >= q.Before:
		case q.Frontier && consolidated(s), !q.Superseded && superseded(s):
		case q.Limit > 0 && len(ids) == q.Limit:
			return ids
		default:
			ids = append(ids, s.SummaryID)
		}
	}
	return ids
}
