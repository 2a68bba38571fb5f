package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// branchShop makes stores of both projections.
type branchShop struct {
	graph graphShop
	files filesShop
}

// branchBench holds one history in stores of both projections.
type branchBench struct {
	graphBench
	files *filesBench
}

func (w branchShop) bench(t tester) branchBench {
	t.Helper()
	return branchBench{graphBench{w.graph.bench(t)}, w.files.bench(t)}
}

// with returns a bench that holds a history.
func (w branchShop) with(t tester, h *History) branchBench {
	t.Helper()
	b := w.bench(t)
	b.add(h)
	return b
}

// add applies the new events of a history.
func (b branchBench) add(h *History) {
	b.t.Helper()
	b.apply(h.Since(b.cp.Seq + 1))
	b.files.apply(h.Since(b.files.cp.Seq + 1))
}

func (b branchBench) lineage(c string, asOf uint64) *graph.Lineage {
	b.t.Helper()
	return must(graph.LineageOf(b.ctx, b.store, id(c), asOf))(b.t)
}

// shows returns the transcript of a conversation with its lineage as text, oldest first:
// "m1 t1.0 n1", with the depth of inherited rows.
func (b branchBench) shows(c string, asOf uint64) (list []string) {
	b.t.Helper()
	reader := b.lineage(c, asOf).Graph(b.store)
	for _, e := range must(reader.Transcript(b.ctx, id(c), graph.TranscriptQuery{Before: asOf + 1, Limit: 1000, OldestFirst: true}))(b.t) {
		p := e.Position()
		row := fmt.Sprintf("%s t%d.%d n%d", nameOf(e), p.Turn, p.Step, p.N)
		if o := originOf(e); o.InheritedFrom != "" {
			row += " from " + o.InheritedFrom
		}
		list = append(list, row)
	}
	return list
}

func (b branchBench) accesses(c string, q graph.FileQuery) []graph.FileAccess {
	b.t.Helper()
	return must(b.lineage(c, graph.Latest).Files(b.files.store).Files(b.ctx, id(c), q))(b.t)
}

// from starts a branch.
func from(parent, messageID string) *events.ConversationStarted {
	return &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: parent, MessageID: messageID}}
}

// asAlone compares a branch with a single conversation that has the same events: everything
// except their descriptions is equal.
var asAlone = cmp.Options{
	cmpopts.IgnoreFields(graph.Conversation{}, "ID", "Description", "CreatedAt", "UpdatedAt"),
	cmpopts.IgnoreFields(graph.Position{}, "Depth"),
	cmpopts.IgnoreFields(graph.Origin{}, "InheritedFrom"),
}

func originOf(e graph.Entry) *graph.Origin {
	switch {
	case e.Message != nil:
		return &e.Message.Origin
	case e.Call != nil:
		return &e.Call.Origin
	default:
		return &e.Result.Origin
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
				member := rapid.SampledFrom([]string{"g", "p", "x", "x"}).Draw(r, "member")
				b, alone := w.with(r, f.History), w.with(r, f.alone(member))
				begun := f.members[member][slices.IndexFunc(f.members[member], func(e told) bool { return e.own })].seq
				for range 5 {
					asOf := rapid.Uint64Range(begun, f.Next-1).Draw(r, "as of")
					lineage := b.lineage(member, asOf)
					want, got := viewOf(b.ctx, b.t, alone.store, id("c"), asOf, f.calls), viewOf(b.ctx, b.t, lineage.Graph(b.store), id(member), asOf, f.calls)
					require.Empty(r, cmp.Diff(want, got, asAlone), "%s as of sequence %d", member, asOf)
					files := graph.FileQuery{AsOf: asOf, Limit: rapid.IntRange(0, 3).Draw(r, "limit")}
					require.Equal(r,
						must(alone.files.store.Files(b.ctx, id("c"), files))(r),
						must(lineage.Files(b.files.store).Files(b.ctx, id(member), files))(r), "%s as of sequence %d", member, asOf)
				}
			})
		}},
		{"law: any range or list of a branch is that of one conversation with the same events", func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				f := families.Draw(r, "family")
				b, alone := w.with(r, f.History), w.with(r, f.alone("x"))
				reader := b.lineage("x", graph.Latest).Graph(b.store)
				same := func(want, got any, what ...any) {
					r.Helper()
					require.Empty(r, cmp.Diff(want, got, asAlone), what...)
				}
				for range 5 {
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
					seqs := rapid.SliceOfN(seq, 1, 5).Draw(r, "seqs")
					page := graph.ListQuery{Start: m.Before, Limit: limit, OldestFirst: oldest}
					for i, read := range []func(reader graph.Reader, id events.ConversationID) (any, error){
						func(reader graph.Reader, id events.ConversationID) (any, error) { return reader.Messages(b.ctx, id, m) },
						func(reader graph.Reader, id events.ConversationID) (any, error) {
							return reader.Transcript(b.ctx, id, q)
						},
						func(reader graph.Reader, id events.ConversationID) (any, error) {
							return reader.Counts(b.ctx, id, seqs)
						},
						func(reader graph.Reader, id events.ConversationID) (any, error) {
							return graph.Messages(b.ctx, reader, id, graph.MessageListQuery{ListQuery: page, Role: m.Role, Calls: true})
						},
						func(reader graph.Reader, id events.ConversationID) (any, error) {
							return graph.Turns(b.ctx, reader, id, page)
						},
						func(reader graph.Reader, id events.ConversationID) (any, error) {
							return graph.Steps(b.ctx, reader, id, graph.StepQuery{ListQuery: page})
						},
						func(reader graph.Reader, id events.ConversationID) (any, error) {
							return graph.ToolCalls(b.ctx, reader, id, graph.CallQuery{ListQuery: page})
						},
					} {
						same(must(read(alone.store, id("c")))(r), must(read(reader, id("x")))(r), "read %d, %+v", i, q)
					}
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
					case 0, 1: // a branch of itself, in a circle, or of something that comes later or never
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
