package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
)

type (
	filesShop  = workshop[*graph.FilesUnit, graph.FilesStore]
	filesBench = bench[*graph.FilesUnit, graph.FilesStore]
)

// shown formats accesses as "write /a (Write, turn 1, seq 3, 2x)".
func shown(b *filesBench, q graph.FileQuery) (list []string) {
	b.t.Helper()
	for _, a := range accesses(b, q) {
		list = append(list, fmt.Sprintf("%s %s (%s, turn %d, seq %d, %dx)", a.Kind, a.Path, a.Tool, a.Turn, a.Seq, a.Count))
	}
	return list
}

func filesCases(w filesShop) []namedCase {
	// told is a case with a history and the files shown at some of its sequences, read then
	// and read later as of them.
	told := func(name string, make func(h *History), want map[uint64][]string) namedCase {
		return namedCase{name, func(t *testing.T) {
			h := NewHistory()
			make(h)
			b := w.bench(t)
			for i, m := range h.Messages {
				b.apply(h.Messages[i : i+1])
				if list, ok := want[m.Seq]; ok {
					require.Equal(t, list, shown(b, graph.FileQuery{}), "at sequence %d", m.Seq)
				}
			}
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *filesBench) {
				for seq, list := range want {
					require.Equal(t, list, shown(b, graph.FileQuery{AsOf: seq}), "as of sequence %d", seq)
				}
				require.Equal(t, want[h.Next-1], shown(b, graph.FileQuery{}))
			})
		}}
	}
	return []namedCase{
		asOfFiles(w),
		readersOfFiles(w),
		readersOfRetries(w),
		told("the newest access of a path and kind counts them", func(h *History) {
			h.Add("c", message("m1", "user", "x"))
			h.Add("c", read("k1", "/a"))
			h.Add("c", write("k2", "/a"))
			h.Add("c", message("m2", "user", "x"))
			h.Add("c", read("k3", "/b"))
			h.Add("c", read("k4", "/a"))
		}, map[uint64][]string{
			1: nil,
			3: {"write /a (Write, turn 1, seq 3, 1x)", "read /a (Read, turn 1, seq 2, 1x)"},
			6: {"read /a (Read, turn 2, seq 6, 2x)", "read /b (Read, turn 2, seq 5, 1x)", "write /a (Write, turn 1, seq 3, 1x)"},
		}),
		told("a failed call is not an access, and the access that it had hidden comes back", func(h *History) {
			h.Add("c", read("k1", "/a"))
			h.Add("c", read("k2", "/a"))
			h.Add("c", result("k2", "no such file", false))
			h.Add("c", result("k1", "text", true))
		}, map[uint64][]string{
			2: {"read /a (Read, turn 0, seq 2, 2x)"},
			3: {"read /a (Read, turn 0, seq 1, 1x)"},
			4: {"read /a (Read, turn 0, seq 1, 1x)"},
		}),
		told("a call that was superseded before it failed brings nothing back", func(h *History) {
			h.Add("c", read("w", "/a"))
			h.Add("c", read("x", "/a"))
			h.Add("c", read("z", "/a"))
			h.Add("c", result("x", "no", false))
			h.Add("c", result("z", "no", false))
			h.Add("c", result("w", "no", false))
			h.Add("c", read("v", "/a"))
		}, map[uint64][]string{
			3: {"read /a (Read, turn 0, seq 3, 3x)"},
			4: {"read /a (Read, turn 0, seq 3, 2x)"},
			5: {"read /a (Read, turn 0, seq 1, 1x)"},
			6: nil,
			7: {"read /a (Read, turn 0, seq 7, 1x)"},
		}),
		told("failures in the order of the calls", func(h *History) {
			h.Add("c", read("w", "/a"))
			h.Add("c", read("x", "/a"))
			h.Add("c", read("z", "/a"))
			h.Add("c", result("w", "no", false))
			h.Add("c", result("x", "no", false))
			h.Add("c", result("z", "no", false))
		}, map[uint64][]string{
			4: {"read /a (Read, turn 0, seq 3, 2x)"},
			5: {"read /a (Read, turn 0, seq 3, 1x)"},
			6: nil,
		}),
		told("a failure that came before its call", func(h *History) {
			h.Add("c", read("k1", "/a"))
			h.Add("c", result("k2", "no such file", false))
			h.Add("c", read("k2", "/a"))
		}, map[uint64][]string{
			2: {"read /a (Read, turn 0, seq 1, 1x)"},
			3: {"read /a (Read, turn 0, seq 1, 1x)"},
		}),
		told("a call that is sent again still waits for its result", func(h *History) {
			h.Add("c", read("k1", "/a"))
			h.AddAs("c", "again", read("k1", "/a"))
			h.Add("c", result("k1", "no", false))
			h.AddAs("c", "once more", result("k1", "no", false))
			h.Add("c", result("k2", "no", false))
			h.AddAs("c", "early again", result("k2", "no", false))
			h.Add("c", read("k2", "/a"))
		}, map[uint64][]string{
			2: {"read /a (Read, turn 0, seq 1, 1x)"},
			3: nil,
			7: nil,
		}),
		told("an unknown outcome is an access", func(h *History) {
			h.Add("c", read("k1", "/a"))
			h.Add("c", &events.ToolReturned{ToolCallID: "k1", Result: events.JSONResult([]byte(`"?"`))})
		}, map[uint64][]string{2: {"read /a (Read, turn 0, seq 1, 1x)"}}),
		told("a result adds hits at its own sequence, the first of them the newest", func(h *History) {
			h.Add("c", grep("k1", "/src"))
			h.Add("c", message("m", "user", "x"))
			h.Add("c", result("k1", "/src/b.go:1: x\n/src/a.go:2: x\n", true))
		}, map[uint64][]string{
			1: {"search /src (Grep, turn 0, seq 1, 1x)"},
			3: {"search /src/b.go (Grep, turn 0, seq 3, 1x)", "search /src/a.go (Grep, turn 0, seq 3, 1x)", "search /src (Grep, turn 0, seq 1, 1x)"},
		}),
		told("an early result is applied with its call, and is newer than it", func(h *History) {
			h.Add("c", result("k1", "/src/b.go:1: x\n/src/a.go:2: x\n", true))
			h.Add("c", grep("k1", "/src"))
		}, map[uint64][]string{
			1: nil,
			2: {"search /src/b.go (Grep, turn 0, seq 2, 1x)", "search /src/a.go (Grep, turn 0, seq 2, 1x)", "search /src (Grep, turn 0, seq 2, 1x)"},
		}),
		told("paths start from the directory that the conversation had at the call", func(h *History) {
			h.Add("c", read("k0", "a"))
			h.Add("c", &events.ConversationStarted{Cwd: "/w"})
			h.Add("c", read("k1", "a"))
			h.Add("c", grep("k2", "/w"))
			h.Add("c", &events.ConversationStarted{Cwd: "/v"})
			h.Add("c", result("k2", "b.go:1: x\n", true))
		}, map[uint64][]string{
			1: {"read a (Read, turn 0, seq 1, 1x)"},
			6: {"search /w/b.go (Grep, turn 0, seq 6, 1x)", "search /w (Grep, turn 0, seq 4, 1x)", "read /w/a (Read, turn 0, seq 3, 1x)", "read a (Read, turn 0, seq 1, 1x)"},
		}),
		told("a tool that nobody knows touches what its runtime reports", func(h *History) {
			h.Add("c", call("k1", "magic", `{"file_path":"/no"}`))
			p := result("k1", "/no:1: x", true)
			p.Files = []events.FileOp{{Path: "/a", Op: "edit"}, {Path: "/b", Op: "read"}}
			h.Add("c", p)
		}, map[uint64][]string{2: {"write /a (magic, turn 0, seq 2, 1x)", "read /b (magic, turn 0, seq 2, 1x)"}}),
		told("conversations have accesses of their own", func(h *History) {
			h.Add("c", read("k1", "/a"))
			h.Add("d", read("k1", "/a"))
			h.Add("d", read("k2", "/a"))
			h.Add("d", result("k1", "no", false))
		}, map[uint64][]string{4: {"read /a (Read, turn 0, seq 1, 1x)"}}),
		told("nothing of a deleted conversation is left", func(h *History) {
			h.Add("c", read("k1", "/a"))
			h.Add("c", result("k2", "no", false))
			h.Add("c", &events.ConversationDeleted{})
		}, map[uint64][]string{3: nil}),
		{"at most so many files are listed", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			for i := range 300 {
				h.Add("c", read(fmt.Sprint(i), fmt.Sprintf("/%d", i%250)))
			}
			b.apply(h.Messages)
			require.Len(t, accesses(b, graph.FileQuery{}), 200)
			for _, asOf := range []uint64{0, 299} {
				two := accesses(b, graph.FileQuery{Limit: 2, AsOf: asOf})
				require.Len(t, two, 2)
				require.Equal(t, 2, two[0].Count)
			}
		}},
		{"a file that fails again and again", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.Add("c", read("ok", "/a"))
			for i := range 500 {
				h.Add("c", read(fmt.Sprint(i), "/a"))
				h.Add("c", result(fmt.Sprint(i), "no", false))
			}
			b.apply(h.Messages)
			require.Equal(t, []string{"read /a (Read, turn 0, seq 1, 1x)"}, shown(b, graph.FileQuery{}))
		}},
		{"a long result is looked at up to a whole line, early or not", func(t *testing.T) {
			line := "/src/" + strings.Repeat("x", 500) + "%06d.go:1: hit\n"
			var text strings.Builder
			for i := 0; text.Len() <= files.MaxResultBytes; i++ {
				fmt.Fprintf(&text, line, i%90)
			}
			for _, early := range []bool{false, true} {
				b := w.bench(t)
				h := NewHistory()
				if early {
					h.Add("c", result("k", text.String(), true))
					h.Add("c", grep("k", "/src"))
				} else {
					h.Add("c", grep("k", "/src"))
					h.Add("c", result("k", text.String(), true))
				}
				b.apply(h.Messages)
				list := accesses(b, graph.FileQuery{})
				require.Len(t, list, 91)
				for _, a := range list {
					require.True(t, a.Path == "/src" || strings.HasSuffix(a.Path, ".go"), a.Path)
				}
			}
		}},
		{"a conversation stands at its newest event that counts", func(t *testing.T) {
			h := NewHistory()
			var want []uint64
			for _, p := range []events.Payload{message("m1", "user", "x"), read("k1", "/a"), &events.ConversationUpdated{Title: new(string)}, &events.ConversationDeleted{}} {
				want = append(want, h.Add("c", p))
				h.Add("other", message(fmt.Sprint(h.Next), "user", "x"))
			}
			want[2] = want[1] // this projection ignores titles
			b := w.bench(t)
			at := func() uint64 {
				seq, _, err := b.store.LastSeq(b.ctx, id("c"))
				require.NoError(t, err)
				return seq
			}
			require.Zero(t, at())
			for i := range want {
				b.apply(h.Messages[2*i : 2*i+2])
				require.Equal(t, want[i], at())
			}
			b.drop(id("c"))
			b.rewind(0)
			b.apply(h.Messages)
			seq, repairs, err := b.store.LastSeq(b.ctx, id("c"))
			require.NoError(t, err)
			require.Equal(t, []uint64{want[len(want)-1], 1}, []uint64{seq, repairs}, "and was rebuilt once")
		}},
		{"odd paths come back as they are", func(t *testing.T) {
			odd := []string{"/a b", "/😀", "/é/\u2028", `/"q"`, "/'", "/%", "/*", "/A", "/a"}
			h := NewHistory()
			for i, p := range odd {
				h.Add("c", read(fmt.Sprint(i), p))
			}
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *filesBench) {
				list := accesses(b, graph.FileQuery{})
				require.Len(t, list, len(odd))
				for i, a := range list {
					require.Equal(t, odd[len(odd)-1-i], a.Path)
				}
			})
		}},
	}
}
