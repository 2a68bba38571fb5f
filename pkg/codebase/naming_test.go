package codebase

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// indexOf makes an index of versions, each with the sequence after the one before.
func indexOf(t *testing.T, list ...Version) *Index {
	t.Helper()
	x := &Index{}
	for i := range list {
		list[i].Seq = uint64(10 * (i + 1))
	}
	x.addAll(list)
	return x
}

func functions(path string, list ...Scope) Version {
	for i := range list {
		list[i].Kind = "function"
	}
	return Version{Path: path, Scopes: list}
}

func TestWhichTextsNameAScope(t *testing.T) {
	t.Parallel()
	x := indexOf(t,
		functions("pkg/store/store.go", Scope{Name: "Store.Close", Start: 10, End: 20}, Scope{Name: "Open", Start: 21, End: 30}, Scope{Name: "openFiles", Start: 31, End: 40}, Scope{Name: "Store.flushAll", Start: 41, End: 50}),
		functions("pkg/log/log.go", Scope{Name: "Log.Close", Start: 1, End: 9}, Scope{Name: "openFiles", Start: 10, End: 19}),
		functions("cmd/log.go", Scope{Name: "main", Start: 1, End: 9}),
	)
	for _, c := range []struct{ name, text, want string }{
		{"Store.Close", "look at pkg/store/store.go:15 again", "pkg/store/store.go:15"},
		{"Store.Close", "/home/me/cli/pkg/store/store.go:15:3: undefined", "/home/me/cli/pkg/store/store.go:15"},
		{"Store.Close", `pkg\store\store.go:20`, `pkg\store\store.go:20`},
		{"Store.Close", "store.go:15, of which there is one", "store.go:15"},
		{"Store.Close", "see store.go#L5-L11.", "store.go#L5-L11"},
		{"Store.Close", "store.go:5-9 is before, store.go:21 after", ""},
		{"Store.Close", "other/store.go:15", ""},
		{"Store.Close", "mystore.go:15 and store.go.orig:15 are other files", ""},
		{"Log.Close", "log.go:5 is one of two", ""},
		{"Log.Close", "log/log.go:5", "log/log.go:5"},
		{"Store.Close", "does Store.Close flush?", "Store.Close"},
		{"Store.Close", "RestStore.Close and Store.Closed are others", ""},
		{"Store.Close", "file.Close() may be anything", ""},
		{"Store.Close", "store.go: call Close()", ""},
		{"Store.flushAll", "s.flushAll() forgets the last one", "flushAll"},
		{"Open", "Open the window", ""},
		{"Open", "`Open` fails", "Open"},
		{"Open", "store.Open(dir) fails", "Open"},
		{"Open", "os.Open(dir) fails", ""},
		{"Open", "Open() fails", "Open"},
		{"openFiles", "openFiles leaks", ""},
		{"openFiles", "openFiles leaks, in pkg/store/store.go", "openFiles"},
		{"openFiles", "openFiles leaks, in pkg/log/log.go", ""},
	} {
		var scope Hit
		for _, h := range x.Named(c.name, graph.Latest) {
			if scope.Path == "" || h.Path == "pkg/store/store.go" {
				scope = h
			}
		}
		require.Equal(t, c.want, x.Naming(scope, graph.Latest).In(100, c.text), "%s in %q", c.name, c.text)
	}
}

func TestAHostileTextCostsLittle(t *testing.T) {
	t.Parallel()
	x := indexOf(t, functions("a.go", Scope{Name: "Retry", Start: 1, End: 9}))
	n := x.Naming(x.Named("Retry", graph.Latest)[0], graph.Latest)
	began := time.Now()
	require.Empty(t, n.In(20, strings.Repeat("a.go/", 200_000)))
	require.Empty(t, n.In(20, strings.Repeat("x.Retry.", 100_000)))
	require.Less(t, time.Since(began), 10*time.Second, "neither its length nor the square of it counts")

	var many []Version
	for i := range 20_000 {
		many = append(many, functions(fmt.Sprintf("pkg/p%d/a.go", i), Scope{Name: fmt.Sprint("F", i), Start: 1, End: 9}))
	}
	x = indexOf(t, many...)
	n = x.Naming(x.Named("F7", graph.Latest)[0], graph.Latest)
	var ways strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&ways, "q%d/../a.go:%d ", i, i)
	}
	began = time.Now()
	for range 20 {
		require.Empty(t, n.In(1_000_000, ways.String()))
	}
	require.Less(t, time.Since(began), 10*time.Second, "the ways to write a path do not count")
}

func TestLinesAreThoseOfTheTimeOfTheMessage(t *testing.T) {
	t.Parallel()
	x := indexOf(t,
		functions("a.go", Scope{Name: "Parse", Start: 1, End: 9}),
		functions("a.go", Scope{Name: "Added", Start: 1, End: 9}, Scope{Name: "Parse", Start: 10, End: 18}),
		Version{Path: "a.go", Removed: true},
		functions("a.go", Scope{Name: "Parse", Start: 101, End: 109}),
	)
	n := x.Naming(x.Named("Parse", graph.Latest)[0], graph.Latest)
	for _, c := range []struct {
		seq  uint64
		line int
		want bool
	}{
		{5, 5, true}, {5, 15, false}, // before it was first indexed
		{10, 5, true}, {20, 5, false}, {25, 15, true},
		{30, 5, false}, {30, 15, false}, {35, 105, false}, // while it was gone
		{40, 105, true}, {40, 15, false},
	} {
		require.Equal(t, c.want, n.Refers(c.seq, events.Reference{File: "/w/a.go", StartLine: c.line}), "line %d at %d", c.line, c.seq)
	}
	require.True(t, n.Refers(30, events.Reference{File: "a.go", Name: "Parse"}))
	require.False(t, n.Refers(40, events.Reference{File: "a.go"}), "the file alone is not the function")
	require.False(t, n.Refers(40, events.Reference{File: "b.go", StartLine: 105}))
}

func TestHeadingsAndUnnamedScopesAreNamedByTheirLinesOnly(t *testing.T) {
	t.Parallel()
	x := indexOf(t, Version{Path: "README.md", Scopes: []Scope{{Name: "How it works", Kind: "section", Start: 1, End: 9}, {Kind: "block", Start: 10, End: 12}}})
	n := x.Naming(x.Named("How it works", graph.Latest)[0], graph.Latest)
	require.Empty(t, n.In(10, "How it works is in the README.md"))
	require.Equal(t, "README.md:3", n.In(10, "README.md:3"))
	n = x.Naming(x.At("README.md", 11, 11, graph.Latest)[0], graph.Latest)
	require.Equal(t, "README.md:11", n.In(10, "README.md:11"))
}
