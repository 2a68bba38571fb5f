package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// branchPointCases test where a branch leaves its parent, and whether it does.
func branchPointCases(w branchShop) []namedCase {
	// parent is a conversation of two turns.
	parent := func(h *History) {
		h.Add("p", message("m1", "user", "one"))
		h.Add("p", message("m2", "assistant", "two"))
		h.Add("p", message("m3", "user", "three"))
	}
	alone := []string{"x1 t1.0 n1"}
	branched := []string{"m1 t1.0 n1 from p", "m2 t1.1 n2 from p", "x1 t2.1 n3"}
	return []namedCase{
		{"a branch sees its parent up to and including the message, and continues from there", func(t *testing.T) {
			h := NewHistory()
			parent(h)
			h.Add("x", from("p", "m2"))
			h.Add("x", message("x1", "user", "four"))
			h.Add("p", message("m4", "assistant", "unseen"))
			b := w.with(t, h)
			require.Equal(t, branched, b.shows("x", graph.Latest))
			lineage := b.lineage("x", graph.Latest)
			require.Equal(t, &graph.Inherited{
				BranchedAt: events.BranchedAt{ConversationID: "p", MessageID: "m2"},
				Counts:     graph.Counts{MessageCount: 2, TurnCount: 1, StepCount: 1, TotalChars: 6, LastSeq: 2},
			}, lineage.Inherited())
			require.Equal(t, 1, lineage.Own().MessageCount)
			require.Equal(t, graph.Counts{MessageCount: 3, TurnCount: 2, StepCount: 1, TotalChars: 10, LastSeq: 5}, lineage.Conversation().Counts)
			require.Equal(t, []events.ConversationID{id("p")}, lineage.Ancestors())
		}},
		{"a conversation without a parent is read as it is", func(t *testing.T) {
			h := NewHistory()
			parent(h)
			b := w.with(t, h)
			lineage := b.lineage("p", graph.Latest)
			require.Nil(t, lineage.Inherited())
			require.Empty(t, lineage.Ancestors())
			require.Same(t, b.store, lineage.Graph(b.store))
			require.Same(t, b.files.store, lineage.Files(b.files.store))
			_, err := graph.LineageOf(b.ctx, b.store, id("nobody"), graph.Latest)
			require.ErrorIs(t, err, graph.ErrNotFound)
		}},
		{"through a branch other conversations are read as they are", func(t *testing.T) {
			h := NewHistory()
			parent(h)
			h.Add("x", from("p", "m2"))
			h.Add("y", from("p", "m2"))
			h.Add("y", message("y1", "user", "four"))
			b := w.with(t, h)
			reader := b.lineage("x", graph.Latest).Graph(b.store)
			want := view(b.bench, id("y"), graph.Latest)
			require.Equal(t, want, viewOf(b.ctx, t, reader, id("y"), graph.Latest, callIDs))
		}},
		{"an unknown parent or message leaves a branch its own rows", func(t *testing.T) {
			for _, at := range []*events.ConversationStarted{from("nobody", "m1"), from("p", "m9"), from("x", "x1"), from("x", "m1")} {
				h := NewHistory()
				parent(h)
				h.Add("x", at)
				h.Add("x", message("x1", "user", "four"))
				b := w.with(t, h)
				require.Equal(t, alone, b.shows("x", graph.Latest))
				require.Nil(t, b.lineage("x", graph.Latest).Inherited())
				require.NotEmpty(t, b.lineage("x", graph.Latest).Ancestors(), "it is worth waiting for")
			}
		}},
		{"trouble with reading a parent does not make it unknown", func(t *testing.T) {
			h := NewHistory()
			h.Add("g", message("g1", "user", "zero"))
			h.Add("p", from("g", "g1"))
			parent(h)
			h.Add("x", from("p", "m2"))
			h.Add("inherited", from("p", "g1"))
			b := w.with(t, h)
			for _, c := range []string{"x", "inherited"} {
				sound := &troubled{Reader: b.store}
				require.Len(t, must(graph.LineageOf(b.ctx, sound, id(c), graph.Latest))(t).Ancestors(), 2)
				for n := range sound.reads {
					_, err := graph.LineageOf(b.ctx, &troubled{Reader: b.store, fails: n + 1}, id(c), graph.Latest)
					require.ErrorIs(t, err, errTrouble, "%s, read %d", c, n+1)
				}
			}
		}},
		{"a parent of another tenant is unknown", func(t *testing.T) {
			h := NewHistory()
			h.Tenant = "u"
			parent(h)
			h.Tenant = "t"
			h.Add("x", from("p", "m2"))
			h.Add("x", message("x1", "user", "four"))
			require.Equal(t, alone, w.with(t, h).shows("x", graph.Latest))
		}},
		{"a branch may come before its parent's events", func(t *testing.T) {
			h := NewHistory()
			h.Add("x", from("p", "m2"))
			b := w.with(t, h)
			require.Empty(t, b.shows("x", graph.Latest))
			parent(h)
			b.add(h)
			require.Equal(t, branched[:2], b.shows("x", graph.Latest))
			require.EqualValues(t, 3, b.lineage("x", graph.Latest).Conversation().LastSeq)
			h.Add("x", message("x1", "user", "four"))
			b.add(h)
			require.Equal(t, branched, b.shows("x", graph.Latest))
			require.Empty(t, b.shows("x", 1))
		}},
		{"what comes after the first row of a branch is not inherited", func(t *testing.T) {
			for _, row := range []events.Payload{message("x1", "user", "four"), read("k", "/a"), result("k", "early", true)} {
				h := NewHistory()
				h.Add("x", from("p", "m2"))
				h.Add("x", row)
				parent(h)
				b := w.with(t, h)
				require.Len(t, b.shows("x", graph.Latest), 1)
			}
		}},
		{"a branch that says late where it comes from", func(t *testing.T) {
			h := NewHistory()
			parent(h)
			h.Add("x", message("x1", "user", "four"))
			h.Add("x", from("p", "m2"))
			b := w.with(t, h)
			require.Equal(t, branched, b.shows("x", graph.Latest))
			require.Equal(t, alone, b.shows("x", 4))
		}},
		{"a branch of a branch, at an own and at an inherited message", func(t *testing.T) {
			h := NewHistory()
			parent(h)
			h.Add("x", from("p", "m2"))
			h.Add("x", message("x1", "user", "four"))
			h.Add("own", from("x", "x1"))
			h.Add("own", message("o1", "assistant", "five"))
			h.Add("inherited", from("x", "m1"))
			h.Add("inherited", message("i1", "assistant", "five"))
			h.Add("too late", from("x", "m3"))
			h.Add("too late", message("l1", "assistant", "five"))
			b := w.with(t, h)
			require.Equal(t, []string{"m1 t1.0 n1 from p", "m2 t1.1 n2 from p", "x1 t2.1 n3 from x", "o1 t2.2 n4"}, b.shows("own", graph.Latest))
			require.Equal(t, []string{"m1 t1.0 n1 from p", "i1 t1.1 n2"}, b.shows("inherited", graph.Latest))
			require.Equal(t, []string{"l1 t0.1 n1"}, b.shows("too late", graph.Latest), "x does not show m3")
			require.Equal(t, graph.Inherited{
				BranchedAt: events.BranchedAt{ConversationID: "x", MessageID: "m1"},
				Counts:     graph.Counts{MessageCount: 1, TurnCount: 1, TotalChars: 3, LastSeq: 1},
			}, *b.lineage("inherited", graph.Latest).Inherited())
		}},
		{"a branch sees of its parent what that showed at the message", func(t *testing.T) {
			h := NewHistory()
			h.Add("g", message("g1", "user", "one"))
			h.Add("p", message("p1", "user", "two"))
			h.Add("x", from("p", "p1"))
			h.Add("p", from("g", "g1")) // published only now
			h.Add("p", message("p2", "user", "three"))
			h.Add("y", from("p", "p2"))
			b := w.with(t, h)
			require.Equal(t, []string{"p1 t1.0 n1 from p"}, b.shows("x", graph.Latest))
			require.Equal(t, []string{"g1 t1.0 n1 from g", "p1 t2.0 n2 from p", "p2 t3.0 n3 from p"}, b.shows("y", graph.Latest))
		}},
		{"through a lineage as of a sequence nothing later is seen", func(t *testing.T) {
			h := NewHistory()
			parent(h)
			h.Add("x", from("p", "m2"))
			h.Add("x", message("x1", "user", "four"))
			h.Add("x", message("x2", "user", "five"))
			h.Add("x", read("k", "/a"))
			b := w.with(t, h)
			lineage := b.lineage("x", 5)
			reader := lineage.Graph(b.store)
			require.Equal(t, 3, must(reader.Conversation(b.ctx, id("x"), graph.Latest))(t).MessageCount)
			require.Equal(t, 2, must(reader.Conversation(b.ctx, id("x"), 4))(t).MessageCount)
			require.Len(t, must(reader.Messages(b.ctx, id("x"), graph.MessageQuery{}))(t), 3)
			require.Len(t, must(reader.Transcript(b.ctx, id("x"), graph.TranscriptQuery{}))(t), 3)
			require.Empty(t, must(reader.Calls(b.ctx, id("x"), refs("k"), graph.Latest))(t))
			require.Equal(t, 3, must(reader.Counts(b.ctx, id("x"), []uint64{7}))(t)[0].MessageCount)
			require.Empty(t, must(lineage.Files(b.files.store).Files(b.ctx, id("x"), graph.FileQuery{}))(t))
		}},
		{"of a deleted ancestor nothing is left, nor of what it inherited", func(t *testing.T) {
			h := NewHistory()
			parent(h)
			h.Add("x", from("p", "m2"))
			h.Add("x", message("x1", "user", "four"))
			h.Add("y", from("x", "x1"))
			h.Add("y", message("y1", "assistant", "five"))
			b := w.with(t, h)
			stale := b.lineage("y", graph.Latest)
			h.Add("x", &events.ConversationDeleted{})
			b.add(h)
			for _, asOf := range []uint64{graph.Latest, 7} {
				require.Equal(t, []string{"y1 t0.1 n1"}, b.shows("y", asOf))
			}
			rows := must(stale.Graph(b.store).Transcript(b.ctx, id("y"), graph.TranscriptQuery{}))(t)
			require.Len(t, rows, 3, "what was found before shows nothing of x any more")
			require.Empty(t, must(stale.Graph(b.store).MessagesByID(b.ctx, id("y"), refs("x1"), graph.Latest))(t))
			h.Add("p", &events.ConversationDeleted{})
			b.add(h)
			require.Len(t, must(stale.Graph(b.store).Transcript(b.ctx, id("y"), graph.TranscriptQuery{}))(t), 1)
			require.Len(t, must(stale.Graph(b.store).Counts(b.ctx, id("y"), []uint64{1, 7}))(t), 2)
		}},
		{"circles end", func(t *testing.T) {
			h := NewHistory()
			for i, name := range []string{"a", "b", "c"} {
				h.Add(name, from([]string{"b", "c", "a"}[i], "m"))
			}
			h.Add("a", message("own", "user", "x"))
			b := w.with(t, h)
			require.Equal(t, []string{"own t1.0 n1"}, b.shows("a", graph.Latest))
			require.Len(t, b.lineage("a", graph.Latest).Ancestors(), graph.MaxAncestors)
		}},
		{"a chain that is too long shows the nearest ancestors", func(t *testing.T) {
			h := NewHistory()
			h.Add("c0", message("m0", "user", "x"))
			const last = 40
			for i := 1; i <= last; i++ {
				h.Add(fmt.Sprint("c", i), from(fmt.Sprint("c", i-1), fmt.Sprint("m", i-1)))
				h.Add(fmt.Sprint("c", i), message(fmt.Sprint("m", i), "user", "x"))
			}
			b := w.with(t, h)
			shown := b.shows(fmt.Sprint("c", last), graph.Latest)
			require.Len(t, shown, graph.MaxAncestors+1)
			require.Equal(t, "m24 t1.0 n1 from c24", shown[0])
			require.Equal(t, "m40 t17.0 n17", shown[graph.MaxAncestors])
		}},
		{"a rebuild shows the same", func(t *testing.T) {
			h := NewHistory()
			parent(h)
			h.Add("x", from("p", "m2"))
			h.Add("x", message("x1", "user", "four"))
			live := w.bench(t)
			for i := range h.Messages {
				live.add(&History{Messages: h.Messages[:i+1]})
			}
			rebuilt := w.with(t, h)
			live.reopen()
			require.Equal(t, rebuilt.shows("x", graph.Latest), live.shows("x", graph.Latest))
			require.Equal(t, rebuilt.contents(), live.contents())
		}},
	}
}

// troubled reads a store that has trouble with one read.
type troubled struct {
	graph.Reader
	reads int // so far
	fails int // the number of the read that fails, from 1; 0 for none
}

var errTrouble = errors.New("the store has trouble")

func (r *troubled) read() error {
	if r.reads++; r.reads == r.fails {
		return errTrouble
	}
	return nil
}

func (r *troubled) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error) {
	if err := r.read(); err != nil {
		return graph.Conversation{}, err
	}
	return r.Reader.Conversation(ctx, id, asOf)
}

func (r *troubled) MessagesByID(ctx context.Context, id events.ConversationID, refs []graph.Ref, asOf uint64) (map[graph.Ref]graph.Message, error) {
	if err := r.read(); err != nil {
		return nil, err
	}
	return r.Reader.MessagesByID(ctx, id, refs, asOf)
}

func (r *troubled) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error) {
	if err := r.read(); err != nil {
		return nil, err
	}
	return r.Reader.Transcript(ctx, id, q)
}
