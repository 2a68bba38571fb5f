package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
)

type (
	codebaseShop  = workshop[*codebase.Unit, codebase.Store]
	codebaseBench = bench[*codebase.Unit, codebase.Store]
)

// codebaseData are payloads that change an index. A refused one is a scan of a project of this name.
var codebaseData = Data{
	Nth: func(n int) events.Payload {
		return codeFile(fmt.Sprintf("f%d.go", n%7), fmt.Sprintf("text number %d", n))
	},
	Refused: func(text string) events.Payload { return &events.CodeScanned{Project: text, Root: "/r"} },
	Again:   &events.CodeScanned{Project: "again", Root: "/r", Done: true},
}

// codeFile is a file with a function for each text.
func codeFile(path string, texts ...string) *events.CodeIndexed {
	p := &events.CodeIndexed{Project: "p", Path: path, Hash: strings.Repeat("a", 64), Language: "go", Lines: len(texts), Left: 1}
	for i, text := range texts {
		p.Scopes = append(p.Scopes, events.CodeScope{Name: fmt.Sprint("F", i), Kind: "function", StartLine: i + 1, EndLine: i + 1, Text: text})
	}
	return p
}

func removedFile(path string) *events.CodeIndexed {
	return &events.CodeIndexed{Project: "p", Path: path, Hash: strings.Repeat("a", 64), Removed: true}
}

// RunCodebase runs every case for the projection "code", except those about ids of payloads, because its payloads have
// none.
func RunCodebase(t *testing.T, b Backend[codebase.Store]) {
	w := codebaseShop{backend: b, projection: codebase.Projection()}
	cases := slices.DeleteFunc(engineCases(w, codebaseData), func(c namedCase) bool {
		return c.name == "a known payload under another event id is dropped and counted" || c.name == "holders of keys can be asked for"
	})
	w.run(t, append(cases, codebaseCases(w)...))
}

// foundCode searches an index and returns what was found as path:start text.
func foundCode(b *codebaseBench, x *codebase.Index, text string, asOf uint64) (list []string) {
	b.t.Helper()
	e, err := x.Epoch(b.ctx, b.store, id("code:p"), asOf)
	require.NoError(b.t, err)
	hits := e.Search(codebase.Query{Text: text, Vector: recall.Quantize(static.Embed(text)), AsOf: asOf, Limit: 5})
	require.NoError(b.t, codebase.Fill(b.ctx, b.store, id("code:p"), hits))
	for _, h := range hits {
		list = append(list, fmt.Sprintf("%s:%d %s", h.Path, h.Start, h.Text))
	}
	return list
}

func leftOut(b *codebaseBench, x *codebase.Index, asOf uint64) int {
	b.t.Helper()
	e, err := x.Epoch(b.ctx, b.store, id("code:p"), asOf)
	require.NoError(b.t, err)
	return e.Left(asOf)
}

func codebaseCases(w codebaseShop) []namedCase {
	return []namedCase{
		{"an index is read as of any sequence", func(t *testing.T) {
			h := NewHistory()
			h.Add("code:p", &events.CodeScanned{Project: "p", Root: "/r"})
			h.Add("code:p", codeFile("a.go", "alpha retries uploads", "beta parses headers"))
			h.Add("code:p", codeFile("b.go", "gamma retries downloads"))
			h.Add("code:p", &events.CodeScanned{Project: "p", Root: "/r", Done: true, Files: 2})
			h.Add("code:p", codeFile("a.go", "alpha gives up"))
			h.Add("code:p", removedFile("b.go")) // 6
			h.Add("code:q", &events.CodeScanned{Project: "q", Root: "/q", Done: true})
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *codebaseBench) {
				x := &codebase.Index{}
				require.Equal(t, "a.go:1 alpha retries uploads", foundCode(b, x, "retries uploads", 4)[0])
				require.Zero(t, leftOut(b, x, graph.Latest))
				files, scopes := x.Files(4)
				require.Equal(t, []int{2, 3}, []int{files, scopes})
				require.Equal(t, "b.go:1 gamma retries downloads", foundCode(b, x, "retries downloads", 5)[0])
				require.Equal(t, []string{"a.go:1 alpha gives up"}, foundCode(b, x, "alpha retries uploads", graph.Latest))
				require.Empty(t, foundCode(b, x, "alpha", 1))
				late := &codebase.Index{}
				require.Equal(t, foundCode(b, x, "retries", 5), foundCode(b, late, "retries", 5), "whenever it is asked")

				scan, err := b.store.Scanned(b.ctx, id("code:p"), 3)
				require.NoError(t, err)
				require.Equal(t, &codebase.Scan{Seq: 1, EventID: "e1", Project: "p", Root: "/r"}, scan)
				scan, err = b.store.Scanned(b.ctx, id("code:p"), graph.Latest)
				require.NoError(t, err)
				require.Equal(t, &codebase.Scan{Seq: 4, EventID: "e4", Project: "p", Root: "/r", Done: true, Files: 2}, scan)
				scan, err = b.store.Scanned(b.ctx, id("code:other"), graph.Latest)
				require.NoError(t, err)
				require.Nil(t, scan)

				indexes, err := b.store.Indexes(b.ctx, "t", graph.Latest)
				require.NoError(t, err)
				require.Len(t, indexes, 2)
				require.Equal(t, []string{"p", "q"}, []string{indexes[0].Project, indexes[1].Project})
				indexes, err = b.store.Indexes(b.ctx, "t", 6)
				require.NoError(t, err)
				require.Len(t, indexes, 1)
				indexes, err = b.store.Indexes(b.ctx, "other", graph.Latest)
				require.NoError(t, err)
				require.Empty(t, indexes)

				list, err := b.store.Versions(b.ctx, id("code:p"), codebase.VersionQuery{From: 3, AsOf: graph.Latest, Limit: 2})
				require.NoError(t, err)
				require.Len(t, list, 2)
				require.Equal(t, []string{"b.go", "a.go"}, []string{list[0].Path, list[1].Path})
				require.Equal(t, codebase.Version{Seq: 3, EventID: "e3", Path: "b.go", Hash: strings.Repeat("a", 64), Language: "go", Lines: 1, Left: 1,
					Scopes: []codebase.Scope{{Name: "F0", Kind: "function", Start: 1, End: 1}}, Bags: list[0].Bags}, list[0])
				require.Empty(t, list[0].Bags)
				bags, err := b.store.Bags(b.ctx, id("code:p"), []uint64{3, 5, 99})
				require.NoError(t, err)
				require.Len(t, bags, 2)
				require.NotEmpty(t, bags[3])
				around := x.At("a.go", 1, 1, 4)
				require.Len(t, around, 1)
				require.Empty(t, x.At("b.go", 0, 0, graph.Latest), "it was removed")
			})
		}},
		{"of more indexes than are listed, those with the newest scans are", func(t *testing.T) {
			h := NewHistory()
			for i := range codebase.MaxIndexes + 2 {
				h.Add(fmt.Sprintf("code:%04d", i), &events.CodeScanned{Project: fmt.Sprintf("%04d", i), Root: "/r", Done: true})
			}
			h.Add("code:0000", &events.CodeScanned{Project: "0000", Root: "/r", Done: true})
			b := w.bench(t)
			b.apply(h.Messages)
			indexes, err := b.store.Indexes(b.ctx, "t", graph.Latest)
			require.NoError(t, err)
			require.Len(t, indexes, codebase.MaxIndexes)
			require.Equal(t, []string{"0000", "0003"}, []string{indexes[0].Project, indexes[1].Project})
		}},
		{"a deleted index is empty, and is listed no more", func(t *testing.T) {
			h := NewHistory()
			h.Add("code:p", codeFile("a.go", "alpha"))
			h.Add("code:p", &events.CodeScanned{Project: "p", Root: "/r", Done: true})
			h.Add("code:p", &events.ConversationDeleted{})
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *codebaseBench) {
				require.Empty(t, foundCode(b, &codebase.Index{}, "alpha", graph.Latest))
				indexes, err := b.store.Indexes(b.ctx, "t", graph.Latest)
				require.NoError(t, err)
				require.Empty(t, indexes)
				scan, err := b.store.Scanned(b.ctx, id("code:p"), graph.Latest)
				require.NoError(t, err)
				require.Nil(t, scan)
			})
		}},
		{"an index that is full makes room for what counts, and finds the same whenever it is asked", func(t *testing.T) {
			b := w.bench(t)
			const files, most = 3, 8
			search := func(x *codebase.Index, asOf uint64) map[string]codebase.Hit {
				e, err := x.Epoch(b.ctx, b.store, id("code:p"), asOf)
				require.NoError(t, err)
				require.Zero(t, e.Left(asOf))
				found := map[string]codebase.Hit{}
				for _, h := range e.Search(codebase.Query{Text: "needle", WordsOnly: true, AsOf: asOf, Limit: 5}) {
					found[h.Path] = h
				}
				return found
			}
			grown := &codebase.Index{Max: most}
			live := map[uint64]map[string]codebase.Hit{}
			for n := range 50 {
				h := NewHistory()
				h.Next = b.cp.Seq + 1
				path := fmt.Sprintf("f%d.go", n%files)
				seq := h.Add("code:p", codeFile(path, fmt.Sprintf("needle %d among others", n)))
				b.apply(h.Messages)
				found := search(grown, seq)
				require.Len(t, found, min(n+1, files))
				require.Equal(t, seq, found[path].Seq)
				live[seq] = found
			}
			late := &codebase.Index{Max: most}
			for seq, found := range live {
				require.Equal(t, found, search(grown, seq), "as of %d", seq)
				require.Equal(t, found, search(late, seq), "as of %d, in an index that is read at once", seq)
			}
		}},
		{"of an index that is too large, the files that were indexed last are searched when there is room again", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			for n := range 6 {
				h.Add("code:p", codeFile(fmt.Sprintf("f%d.go", n), fmt.Sprintf("needle %d", n)))
			}
			b.apply(h.Messages)
			x := &codebase.Index{Max: 4}
			require.Equal(t, []string{"f0.go:1 needle 0", "f1.go:1 needle 1", "f2.go:1 needle 2", "f3.go:1 needle 3"}, slices.Sorted(slices.Values(foundCode(b, x, "needle", graph.Latest))))
			require.Equal(t, 2, leftOut(b, x, graph.Latest))
			require.Equal(t, 1, leftOut(b, x, 5))
			require.Zero(t, leftOut(b, x, 4))
			h = NewHistory()
			h.Next = b.cp.Seq + 1
			h.Add("code:p", codeFile("f0.go", "needle 6"))
			b.apply(h.Messages)
			require.Equal(t, []string{"f0.go:1 needle 6", "f3.go:1 needle 3", "f4.go:1 needle 4", "f5.go:1 needle 5"}, slices.Sorted(slices.Values(foundCode(b, x, "needle", graph.Latest))))
			require.Equal(t, 2, leftOut(b, x, graph.Latest))
		}},
		{"whatever changes, a search finds what counts then", func(t *testing.T) {
			b := w.bench(t)
			runs := 0
			rapid.Check(t, func(rt *rapid.T) {
				if runs++; runs > 5 { // each run takes a further store
					return
				}
				h := NewHistory()
				h.Next = b.cp.Seq + 1
				states := map[uint64]map[string]string{}
				now := map[string]string{}
				for _, path := range []string{"a.go", "b.go", "c.go"} {
					h.Add("code:p", removedFile(path))
				}
				for range rapid.IntRange(1, 12).Draw(rt, "events") {
					path := rapid.SampledFrom([]string{"a.go", "b.go", "c.go"}).Draw(rt, "path")
					var seq uint64
					if text := rapid.SampledFrom([]string{"", "needle one", "needle two", "needle three"}).Draw(rt, "text"); text == "" {
						delete(now, path)
						seq = h.Add("code:p", removedFile(path))
					} else {
						now[path] = text
						seq = h.Add("code:p", codeFile(path, text))
					}
					states[seq] = maps.Clone(now)
				}
				b.apply(h.Messages)
				x := &codebase.Index{}
				for seq, state := range states {
					got := map[string]string{}
					for _, hit := range foundCode(b, x, "needle", seq) {
						path, text, _ := strings.Cut(hit, ":1 ")
						got[path] = text
					}
					require.Equal(rt, state, got)
				}
			})
		}},
	}
}
