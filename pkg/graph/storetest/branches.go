package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme/events"
	"mneme/pkg/graph"
)

// branchShop makes stores of both projections.
type branchShop struct {
	graph graphShop
	files filesShop
}

// branchBench holds one history in both.
type branchBench struct {
	graphBench
	files *filesBench
}

func (w branchShop) bench(t tester) branchBench {
	t.Helper()
	return branchBench{graphBench{w.graph.bench(t)}, w.files.bench(t)}
}

// with is a bench that holds a history.
func (w branchShop) with(t tester, h *History) branchBench {
	t.Helper()
	b := w.bench(t)
	b.add(h)
	return b
}

// add applies what is new in a history.
func (b branchBench) add(h *History) {
	b.t.Helper()
	b.apply(h.Since(b.cp.Seq + 1))
	b.files.apply(h.Since(b.files.cp.Seq + 1))
}

func (b branchBench) lineage(c string, asOf uint64) *graph.Lineage {
	b.t.Helper()
	return must(graph.LineageOf(b.ctx, b.store, id(c), asOf))(b.t)
}

// shows writes down the transcript of a conversation with its lineage, oldest first:
// "m1 t1.0 n1", with the depth of what is inherited.
func (b branchBench) shows(c string, asOf uint64) (list []string) {
	b.t.Helper()
	reader := b.lineage(c, asOf).Graph(b.store)
	for _, e := range must(reader.Transcript(b.ctx, id(c), graph.TranscriptQuery{Before: asOf + 1, Limit: 1000, OldestFirst: true}))(b.t) {
		p := e.Position()
		row := fmt.Sprintf("%s t%d.%d n%d", nameOf(e), p.Turn, p.Step, p.N)
		if p.Depth > 0 {
			row += fmt.Sprintf(" from %s", b.lineage(c, asOf).From(p.Depth).ID)
		}
		list = append(list, row)
	}
	return list
}

func (b branchBench) accesses(c string, q graph.FileQuery) []graph.FileAccess {
	b.t.Helper()
	return must(b.lineage(c, graph.Latest).Files(b.files.store).Files(b.ctx, id(c), q))(b.t)
}

// from begins a branch.
func from(parent, messageID string) *events.ConversationStarted {
	return &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: parent, MessageID: messageID}}
}

// own makes the rows of a view those of a conversation without ancestors.
func (v *graphView) own() {
	v.Conversation = graph.Conversation{Counts: v.Conversation.Counts, FirstSeq: v.Conversation.FirstSeq}
	for i := range v.Messages {
		v.Messages[i].Depth = 0
	}
	for _, e := range v.Transcript {
		switch {
		case e.Message != nil:
			e.Message.Depth = 0
		case e.Call != nil:
			e.Call.Depth = 0
		default:
			e.Result.Depth = 0
		}
	}
	for ref, c := range v.Calls {
		c.Depth = 0
		v.Calls[ref] = c
	}
	for ref, r := range v.Results {
		r.Depth = 0
		v.Results[ref] = r
	}
}

func branchCases(w branchShop) []namedCase {
	return slices.Concat(branchLaws(w), branchPointCases(w), branchRowCases(w))
}

func branchLaws(w branchShop) []namedCase {
	return []namedCase{
		{"law: a branch shows what one conversation with the same events would", func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				f := families.Draw(r, "family")
				b := w.with(r, f.History)
				for _, member := range []string{"g", "p", "x"} {
					alone := w.with(r, f.alone(member))
					begun := f.members[member][slices.IndexFunc(f.members[member], func(e told) bool { return e.own })].seq
					for asOf := begun; asOf < f.Next; asOf++ {
						lineage := b.lineage(member, asOf)
						got := viewOf(b.ctx, b.t, lineage.Graph(b.store), id(member), asOf, f.calls)
						want := viewOf(b.ctx, b.t, alone.store, id("c"), asOf, f.calls)
						got.own()
						want.own()
						require.Equal(r, want, got, "%s as of sequence %d", member, asOf)
						require.Equal(r,
							must(alone.files.store.Files(b.ctx, id("c"), graph.FileQuery{AsOf: asOf}))(r),
							must(lineage.Files(b.files.store).Files(b.ctx, id(member), graph.FileQuery{AsOf: asOf}))(r), "%s as of sequence %d", member, asOf)
					}
				}
			})
		}},
		{"law: any range of a branch is that of one conversation with the same events", func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				f := families.Draw(r, "family")
				b, alone := w.with(r, f.History), w.with(r, f.alone("x"))
				reader := b.lineage("x", graph.Latest).Graph(b.store)
				for range 10 {
					seq := rapid.Uint64Range(0, f.Next)
					limit := rapid.IntRange(0, 8).Draw(r, "limit")
					oldest := rapid.Bool().Draw(r, "oldest first")
					m := graph.MessageQuery{From: seq.Draw(r, "from"), Before: seq.Draw(r, "before"), Limit: limit, OldestFirst: oldest}
					switch rapid.IntRange(0, 2).Draw(r, "filter") {
					case 0:
						m.Role = rapid.SampledFrom([]string{"user", "assistant"}).Draw(r, "role")
					case 1:
						m.Turn = rapid.IntRange(1, 6).Draw(r, "turn")
					}
					q := graph.TranscriptQuery{From: m.From, Before: m.Before, Limit: limit, OldestFirst: oldest, CallsOnly: rapid.Bool().Draw(r, "calls only")}
					got := graphView{Messages: must(reader.Messages(b.ctx, id("x"), m))(r), Transcript: must(reader.Transcript(b.ctx, id("x"), q))(r)}
					got.own()
					require.Equal(r, must(alone.store.Messages(b.ctx, id("c"), m))(r), got.Messages, "%+v", m)
					require.Equal(r, must(alone.store.Transcript(b.ctx, id("c"), q))(r), got.Transcript, "%+v", q)
					seqs := rapid.SliceOfN(seq, 1, 5).Draw(r, "seqs")
					require.Equal(r, must(alone.store.Counts(b.ctx, id("c"), seqs))(r), must(reader.Counts(b.ctx, id("x"), seqs))(r), "%d", seqs)
					files := graph.FileQuery{AsOf: f.members["x"][len(f.members["x"])-1].seq, Limit: limit}
					require.Equal(r, must(alone.files.store.Files(b.ctx, id("c"), files))(r), b.accesses("x", files))
				}
			})
		}},
		{"law: a branch as of a sequence is what was seen then, whatever came first", func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				names := []string{"a", "b", "c", "d"}
				h := NewHistory()
				b := w.bench(r)
				seen := map[string]map[uint64][]string{"a": {}, "b": {}, "c": {}, "d": {}}
				for n := range rapid.IntRange(1, 25).Draw(r, "events") {
					name := rapid.SampledFrom(names).Draw(r, "conversation")
					switch rapid.IntRange(0, 5).Draw(r, "what") {
					case 0, 1: // of itself, in a circle, of what comes later or never
						h.Add(name, from(rapid.SampledFrom(names).Draw(r, "parent"), fmt.Sprint("m", rapid.IntRange(0, 24).Draw(r, "message"))))
					default:
						h.Add(name, message(fmt.Sprint("m", n), "user", "x"))
					}
					b.add(h)
					for _, name := range names {
						if _, err := b.store.Conversation(b.ctx, id(name), graph.Latest); err == nil {
							seen[name][h.Next-1] = b.shows(name, graph.Latest)
						}
					}
				}
				for name, then := range seen {
					for seq, want := range then {
						require.Equal(r, want, b.shows(name, seq), "%s as of sequence %d", name, seq)
					}
				}
			})
		}},
	}
}
