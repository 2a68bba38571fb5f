package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// branchRowCases test ids and files of a branch.
func branchRowCases(w branchShop) []namedCase {
	return []namedCase{
		{"a branch has the bags and messages of its ancestors before its own", func(t *testing.T) {
			h := NewHistory()
			h.Add("p", message("m1", "user", "Said in the parent."))
			h.Add("p", message("m2", "user", "Branch here."))
			h.Add("x", from("p", "m2"))
			h.Add("p", message("m3", "user", "The branch does not see this."))
			h.Add("x", message("m1", "assistant", "Said in the branch."))
			b := w.with(t, h)
			lineage := b.lineage("x", graph.Latest)
			reader := lineage.Graph(b.store)
			require.NotEqual(t, lineage.Descent(), b.lineage("p", graph.Latest).Descent())
			var seqs []uint64
			for _, bag := range must(reader.Bags(b.ctx, id("x"), graph.BagQuery{}))(t) {
				seqs = append(seqs, bag.Seq)
				require.Equal(t, len(seqs), bag.N, "numbers continue after the ancestors' numbers")
			}
			require.Equal(t, []uint64{1, 2, 5}, seqs)
			list := must(reader.MessagesAt(b.ctx, id("x"), []uint64{1, 4, 5}))(t)
			require.Len(t, list, 2)
			require.Equal(t, 1, list[0].Depth)
			require.Equal(t, "Said in the branch.", list[1].Content.Text)
			require.Equal(t, 3, list[1].N)
		}},
		{"an id that a branch uses again means its own row, and to the parent's rows the parent's", func(t *testing.T) {
			h := NewHistory()
			h.Add("p", message("m1", "assistant", "parent"))
			h.Add("p", read("k1", "/parent"))
			h.Add("p", result("k1", "parent", true))
			h.Add("p", read("k2", "/parent"))
			h.Add("p", message("m2", "user", "branch here"))
			h.Add("x", from("p", "m2"))
			h.Add("x", message("m1", "assistant", "branch"))
			h.Add("x", write("k1", "/branch"))
			h.Add("x", write("k2", "/branch"))
			h.Add("x", result("k2", "branch", true))
			b := w.with(t, h)
			reader := b.lineage("x", graph.Latest).Graph(b.store)
			both := []graph.Ref{{ID: "k1"}, {Depth: 1, ID: "k1"}, {ID: "k2"}, {Depth: 1, ID: "k2"}}

			messages := must(reader.MessagesByID(b.ctx, id("x"), []graph.Ref{{ID: "m1"}, {Depth: 1, ID: "m1"}, {ID: "m2"}}, graph.Latest))(t)
			require.Equal(t, "branch", messages[graph.Ref{ID: "m1"}].Content.Text)
			require.Equal(t, "parent", messages[graph.Ref{Depth: 1, ID: "m1"}].Content.Text)
			require.Equal(t, 1, messages[graph.Ref{ID: "m2"}].Depth)
			calls := must(reader.Calls(b.ctx, id("x"), both, graph.Latest))(t)
			for _, ref := range both {
				require.Equal(t, ref.Depth, calls[ref].Depth)
			}
			results := must(reader.Results(b.ctx, id("x"), both, graph.Latest))(t)
			require.Len(t, results, 2, "neither the branch's k1 nor the parent's k2 has one")
			require.Equal(t, "parent", results[both[1]].Result.Text)
			require.Equal(t, "branch", results[both[2]].Result.Text)
		}},
		{"a result may come in a branch of the one that called", func(t *testing.T) {
			h := NewHistory()
			h.Add("p", read("k1", "/a"))
			h.Add("p", message("m1", "user", "branch here"))
			h.Add("x", from("p", "m1"))
			h.Add("y", from("x", "m1"))
			h.Add("x", result("k1", "in x", true))
			h.Add("p", result("k1", "in p", true))
			h.Add("y", result("k1", "in y", false))
			b := w.with(t, h)
			for name, want := range map[string]string{"p": "in p", "x": "in x", "y": "in y"} {
				reader := b.lineage(name, graph.Latest).Graph(b.store)
				call := must(reader.Calls(b.ctx, id(name), refs("k1"), graph.Latest))(t)[graph.Ref{ID: "k1"}]
				results := must(reader.Results(b.ctx, id(name), []graph.Ref{call.Ref()}, graph.Latest))(t)
				require.Equal(t, want, results[call.Ref()].Result.Text)
			}
			// The branch's result of the call revokes no access of the parent.
			require.Len(t, b.accesses("y", graph.FileQuery{}), 1)
		}},
		{"a result may come in the parent before the branch calls", func(t *testing.T) {
			h := NewHistory()
			h.Add("p", result("k1", "early", true))
			h.Add("p", message("m1", "user", "branch here"))
			h.Add("x", from("p", "m1"))
			h.Add("x", read("k1", "/a"))
			b := w.with(t, h)
			steps := must(graph.Steps(b.ctx, b.lineage("x", graph.Latest).Graph(b.store), id("x"), graph.StepQuery{}))(t)
			require.Len(t, steps.Rows, 1, "the result is not listed as one without a call")
			require.Equal(t, "early", steps.Rows[0].Calls[0].Result.Result.Text)
		}},
		{"a branch has the summaries that its parent had at the message, and its own", func(t *testing.T) {
			h := NewHistory()
			h.Add("p", message("m1", "user", "one"))
			h.Add("p", message("m2", "user", "two"))
			h.Add("p", written("s1", 1, 1, 2)) // 3
			h.Add("p", message("m3", "user", "branch here"))
			h.Add("x", from("p", "m3")) // 5
			h.Add("p", written("s2", 1, 3, 4))
			h.Add("p", written("q", 2, 1, 4, "s1", "s2"))
			h.Add("x", message("x1", "user", "four")) // 8
			own := written("s2", 1, 5, 8)
			own.FirstTurn, own.LastTurn = 1, 1
			h.Add("x", own)                                     // 9
			h.Add("x", revision("s1'", written("s1", 1, 1, 2))) // of an inherited summary: refused
			b := w.with(t, h)
			require.Len(t, b.failed(), 1)
			reader := b.lineage("x", graph.Latest).Graph(b.store)
			for name, q := range map[string]graph.SummaryQuery{"all": {OldestFirst: true}, "frontier": {Frontier: true, OldestFirst: true}, "level 1": {Level: 1, OldestFirst: true}} {
				list := must(reader.Summaries(b.ctx, id("x"), q))(t)
				require.Len(t, list, 2, name)
				require.Equal(t, "s1", list[0].SummaryID)
				require.Equal(t, "p", list[0].InheritedFrom)
				require.Zero(t, list[0].ConsolidatedSeq, "the parent consolidated it later")
				require.Equal(t, graph.Position{Seq: 9, N: 2, Turn: 4}, list[1].Position)
				require.Equal(t, 4, list[1].FirstTurn)
				found := must(reader.SummariesByID(b.ctx, id("x"), []string{"s1", "s2", "q"}, graph.Latest))(t)
				require.Equal(t, map[string]graph.Summary{"s1": list[0], "s2": list[1]}, found)
			}
			require.Equal(t, 2, must(reader.Conversation(b.ctx, id("x"), graph.Latest))(t).SummaryCount)
			require.Empty(t, must(reader.Summaries(b.ctx, id("x"), graph.SummaryQuery{AsOf: 2}))(t))
			require.Len(t, must(reader.Summaries(b.ctx, id("x"), graph.SummaryQuery{AsOf: 5}))(t), 1)
			require.Len(t, must(reader.Summaries(b.ctx, id("p"), graph.SummaryQuery{}))(t), 3, "another conversation is read as it is")
		}},
		{"a branch lists its parent's files as they were, with its own in front", func(t *testing.T) {
			h := NewHistory()
			h.Add("p", message("m1", "user", "one"))
			h.Add("p", read("k1", "/a"))
			h.Add("p", read("k2", "/b"))
			h.Add("p", message("m2", "user", "two"))
			h.Add("x", from("p", "m2"))
			h.Add("p", read("k3", "/unseen"))
			h.Add("p", result("k2", "no such file", false))
			h.Add("x", message("x1", "user", "three"))
			h.Add("x", read("k4", "/a"))
			h.Add("x", write("k5", "/c"))
			b := w.with(t, h)
			require.Equal(t, []graph.FileAccess{
				{Path: "/c", Kind: "write", Tool: "Write", Turn: 3, Seq: 10, Count: 1},
				{Path: "/a", Kind: "read", Tool: "Read", Turn: 3, Seq: 9, Count: 2},
				{Path: "/b", Kind: "read", Tool: "Read", Turn: 1, Seq: 3, Count: 1},
			}, b.accesses("x", graph.FileQuery{}))
			require.Equal(t, []string{"/c", "/a"}, pathsOf(b.accesses("x", graph.FileQuery{Limit: 2})))
			require.Equal(t, []string{"/a", "/b"}, pathsOf(b.accesses("x", graph.FileQuery{AsOf: 9})))
			h.Add("p", &events.ConversationDeleted{})
			b.add(h)
			require.Equal(t, []string{"/c", "/a"}, pathsOf(b.accesses("x", graph.FileQuery{})))
		}},
	}
}

func pathsOf(list []graph.FileAccess) (paths []string) {
	for _, a := range list {
		paths = append(paths, a.Path)
	}
	return paths
}
