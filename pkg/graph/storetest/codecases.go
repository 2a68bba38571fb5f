package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// about returns a message that refers to code.
func about(id string, list ...events.Reference) *events.MessageCreated {
	m := message(id, "user", "x")
	m.References = list
	return m
}

// at returns a reference to lines of a file.
func at(file string, lines ...int) events.Reference {
	r := events.Reference{File: file}
	if len(lines) > 0 {
		r.StartLine, r.EndLine = lines[0], lines[len(lines)-1]
	}
	return r
}

// referring formats references to code as "c: 3 /a.go 1-9 main, 2 /a.go".
func (b graphBench) referring(tenant string, q graph.CodeQuery) []string {
	b.t.Helper()
	found, err := b.store.Referring(b.ctx, tenant, q)
	require.NoError(b.t, err)
	require.False(b.t, found.More)
	list, err := b.store.References(b.ctx, tenant, found.Conversations, q)
	require.NoError(b.t, err)
	require.Len(b.t, list, len(found.Conversations))
	shown := []string{}
	for i, c := range list {
		require.Equal(b.t, events.ConversationID{Tenant: tenant, ID: found.Conversations[i].ID}, c.ID)
		require.NotEmpty(b.t, c.References)
		require.Equal(b.t, found.Conversations[i].Seq, c.References[0].Seq, "what it is found by is shown")
		var parts []string
		for _, r := range c.References {
			part := fmt.Sprint(r.Seq, " ", r.File)
			if r.StartLine+r.EndLine > 0 {
				part += fmt.Sprintf(" %d-%d", r.StartLine, r.EndLine)
			}
			parts = append(parts, strings.TrimRight(part+" "+r.Name, " "))
		}
		shown = append(shown, c.ID.ID+": "+strings.Join(parts, ", "))
	}
	return shown
}

func codeOfGraph(w graphShop) []namedCase {
	return []namedCase{
		{"conversations are found by the end of a path that they refer to", func(t *testing.T) {
			h := NewHistory()
			h.Add("one", about("m", at("/home/x/pkg/parser.go", 3, 9)))
			h.Add("two", about("m", at("./pkg//parser.go")))
			h.Add("other", about("m", at("/home/x/pkg/myparser.go"), at("/home/x/parser.go/a"), at("parser_go"), at("PARSER.GO")))
			h.Add("windows", about("m", at(`C:\x\pkg\parser.go`)))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				windows, two, one := `windows: 4 C:\x\pkg\parser.go`, "two: 2 ./pkg//parser.go", "one: 1 /home/x/pkg/parser.go 3-9"
				for file, want := range map[string][]string{
					"parser.go": {windows, two, one}, "pkg/parser.go": {windows, two, one}, "./pkg/parser.go": {windows, two, one}, "../pkg/parser.go": {windows, two, one}, `pkg\parser.go`: {windows, two, one},
					"x/pkg/parser.go": {windows, one}, "/home/x/pkg/parser.go": {one}, "C:/x/pkg/parser.go": {windows},
					"/pkg/parser.go": {}, "kg/parser.go": {}, "/parser.go": {}, "go": {}, "parser.go/": {windows, two, one}, "nobody.go": {}, "/": {}, ".": {}, "..": {}, "": {}, "*": {}, "%": {},
				} {
					require.Equal(t, want, b.referring("t", graph.CodeQuery{File: file}), "%q", file)
				}
			})
		}},
		{"a reference is of its lines, and without lines of all", func(t *testing.T) {
			h := NewHistory()
			h.Add("whole", about("m", at("/a.go")))
			h.Add("lines", about("m", at("/a.go", 3, 9)))
			h.Add("line", about("m", at("/a.go", 5, 0)))
			h.Add("upTo", about("m", at("/a.go", 0, 4)))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				for line, want := range map[int][]string{0: {"upTo", "line", "lines", "whole"}, 2: {"upTo", "whole"}, 3: {"upTo", "lines", "whole"}, 5: {"line", "lines", "whole"}, 9: {"lines", "whole"}, 10: {"whole"}} {
					ids := []string{}
					for _, one := range b.referring("t", graph.CodeQuery{File: "a.go", Line: line}) {
						id, _, _ := strings.Cut(one, ":")
						ids = append(ids, id)
					}
					require.Equal(t, want, ids, "line %d", line)
				}
			})
		}},
		{"a query can decide by the message which references match", func(t *testing.T) {
			h := NewHistory()
			h.Add("old", about("m", at("/a.go", 3, 9)))
			h.Add("old", about("m2", at("a.go", 5)))
			h.Add("new", about("m", at("/x/a.go", 50)))
			h.Add("new", about("m2", at("/a.go", 5)))
			h.Add("other", about("m", at("/b.go", 5)))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				moved := func(seq uint64, r events.Reference) bool {
					return seq < 3 && r.StartLine == 5 || seq >= 3 && r.StartLine == 50
				}
				require.Equal(t, []string{"new: 3 /x/a.go 50-50", "old: 2 a.go 5-5"}, b.referring("t", graph.CodeQuery{File: "a.go", Matches: moved}))
				require.Equal(t, []string{}, b.referring("t", graph.CodeQuery{File: "b.go", Matches: moved}))
			})
		}},
		{"a symbol is found by its whole name, anywhere or in a file", func(t *testing.T) {
			named := func(file, name string) events.Reference { return events.Reference{File: file, Name: name} }
			h := NewHistory()
			h.Add("a", about("m", named("/a.go", "Parse")))
			h.Add("b", about("m", named("/b.go", "Parse"), named("/b.go", "parse"), at("/a.go")))
			h.Add("c", about("m", named("/a.go", "Parser"), named("/a.go", "a/Parse")))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"b: 2 /b.go Parse", "a: 1 /a.go Parse"}, b.referring("t", graph.CodeQuery{Name: "Parse"}))
				require.Equal(t, []string{"a: 1 /a.go Parse"}, b.referring("t", graph.CodeQuery{Name: "Parse", File: "a.go"}))
				require.Equal(t, []string{"c: 3 /a.go a/Parse"}, b.referring("t", graph.CodeQuery{Name: "a/Parse"}))
				require.Empty(t, b.referring("t", graph.CodeQuery{Name: "Pars"}))
				require.Empty(t, b.referring("t", graph.CodeQuery{Name: "Parse", File: "c.go"}))
			})
		}},
		{"neither another tenant nor a deleted conversation is found by its code", func(t *testing.T) {
			h := NewHistory()
			named := events.Reference{File: "/a.go", Name: "Parse"}
			h.Add("mine", about("m", named))
			h.Add("gone", about("m", named))
			h.Add("gone", &events.ConversationDeleted{})
			h.Tenant = "u"
			h.Add("theirs", about("m", named))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				for tenant, want := range map[string][]string{"t": {"mine: 1 /a.go Parse"}, "u": {"theirs: 4 /a.go Parse"}, "t/a.go": {}, "": {}} {
					require.Equal(t, want, b.referring(tenant, graph.CodeQuery{File: "a.go"}))
					require.Equal(t, want, b.referring(tenant, graph.CodeQuery{Name: "Parse"}))
				}
				list, err := b.store.References(b.ctx, "t", []graph.Mentioned{{ID: "gone", Seq: graph.Latest}, {ID: "theirs", Seq: graph.Latest}, {ID: "mine", Seq: graph.Latest}}, graph.CodeQuery{File: "a.go"})
				require.NoError(t, err)
				require.Len(t, list, 1)
				require.Equal(t, id("mine"), list[0].ID)
			})
		}},
		{"the newest references of a conversation are shown, each once", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{Title: "title"})
			h.Add("c", about("m2", at("/a.go", 1, 2), at("/a.go", 1, 2), at("/a.go"), at("/b.go")))
			h.Add("c", about("m3", at("/a.go", 1, 2)))
			for i := range 4 {
				h.Add("c", about(fmt.Sprint("n", i), at("/a.go", i+1, i+1)))
			}
			h.Add("d", about("m", at("/b.go")))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"c: 7 /a.go 4-4, 6 /a.go 3-3, 5 /a.go 2-2, 4 /a.go 1-1, 3 /a.go 1-2"}, b.referring("t", graph.CodeQuery{File: "/a.go"}))
				require.Equal(t, []string{"c: 4 /a.go 1-1, 3 /a.go 1-2, 2 /a.go, 2 /a.go 1-2"}, b.referring("t", graph.CodeQuery{File: "/a.go", Line: 1}))
				list, err := b.store.References(b.ctx, "t", []graph.Mentioned{{ID: "d", Seq: graph.Latest}, {ID: "c", Seq: 3}}, graph.CodeQuery{File: "/a.go"})
				require.NoError(t, err)
				require.Len(t, list, 2, "in the order asked for, with or without references")
				require.Empty(t, list[0].References)
				require.Equal(t, "title", list[1].Title)
				require.Equal(t, 6, list[1].MessageCount)
				require.Equal(t, graph.CodeReference{Seq: 3, Turn: 2, MessageID: "m3", Reference: at("/a.go", 1, 2)}, list[1].References[0])
				require.Len(t, list[1].References, 3)
			})
		}},
		{"as many conversations are found by their code as are asked for", func(t *testing.T) {
			h := NewHistory()
			for i := range 30 {
				h.Add(fmt.Sprint("c", i), about("m", events.Reference{File: "/a.go", Name: "Parse"}))
			}
			h.Add("c3", about("n", at("/a.go")))
			b := graphBench{w.bench(t)}
			b.apply(h.Messages)
			for limit, want := range map[int][]graph.Mentioned{0: nil, 2: {{ID: "c3", Seq: 31}, {ID: "c29", Seq: 30}}, 30: nil, 100: nil} {
				found, err := b.store.Referring(b.ctx, "t", graph.CodeQuery{File: "a.go", Limit: limit})
				require.NoError(t, err)
				require.Equal(t, limit < 30, found.More, limit)
				require.Len(t, found.Conversations, min(max(limit, 20-10*limit), 30))
				if want != nil {
					require.Equal(t, want, found.Conversations)
				}
			}
			only := graph.CodeQuery{File: "a.go", Limit: 2, Only: []string{"c1", "c0", "nobody"}}
			found, err := b.store.Referring(b.ctx, "t", only)
			require.NoError(t, err)
			require.Equal(t, graph.Mentions{Conversations: []graph.Mentioned{{ID: "c1", Seq: 2}, {ID: "c0", Seq: 1}}}, found, "others do not count against the limit")
			only.Only = []string{}
			found, err = b.store.Referring(b.ctx, "t", only)
			require.NoError(t, err)
			require.Empty(t, found.Conversations)
		}},
		{"a file that one conversation refers to again and again", func(t *testing.T) {
			h := NewHistory()
			h.Add("old", about("m", at("/a.go")))
			for i := range 300 { // more than the first attempt reads
				h.Add("c", about(fmt.Sprint(i), at("/a.go", i+1)))
			}
			b := graphBench{w.bench(t)}
			b.apply(h.Messages)
			require.Equal(t, []string{"c: 6 /a.go 5-5", "old: 1 /a.go"}, b.referring("t", graph.CodeQuery{File: "a.go", Line: 5}))
		}},
		{"what is too long to be found by is kept all the same", func(t *testing.T) {
			long := strings.Repeat("x", 5<<10)
			h := NewHistory()
			h.Add("c", about("m", at("/"+long), events.Reference{File: "/a.go", Name: long}, events.Reference{File: "/" + long, Name: "Parse"}))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"c: 1 /a.go " + long}, b.referring("t", graph.CodeQuery{File: "a.go"}))
				for _, q := range []graph.CodeQuery{{File: "/" + long}, {Name: long}, {Name: "Parse"}} {
					require.Empty(t, b.referring("t", q))
				}
				require.Len(t, b.messages("c", graph.MessageQuery{})[0].References, 3)
			})
		}},
	}
}

// accessing formats accesses of a file as "c: write /a.go (seq 3, 1x)".
func accessing(b *filesBench, tenant string, q graph.CodeQuery) []string {
	b.t.Helper()
	found, err := b.store.Accessing(b.ctx, tenant, q)
	require.NoError(b.t, err)
	require.False(b.t, found.More)
	var ids []string
	for _, c := range found.Conversations {
		ids = append(ids, c.ID)
	}
	accesses, err := b.store.Accesses(b.ctx, tenant, ids, q)
	require.NoError(b.t, err)
	require.Len(b.t, accesses, len(found.Conversations))
	list := []string{}
	for _, c := range found.Conversations {
		require.Equal(b.t, c.Seq, accesses[c.ID][0].Seq)
		var parts []string
		for _, a := range accesses[c.ID] {
			parts = append(parts, fmt.Sprintf("%s %s (seq %d, %dx)", a.Kind, a.Path, a.Seq, a.Count))
		}
		list = append(list, c.ID+": "+strings.Join(parts, ", "))
	}
	return list
}

func codeOfFiles(w filesShop) []namedCase {
	return []namedCase{
		{"conversations are found by the end of a path that they accessed", func(t *testing.T) {
			h := NewHistory()
			h.Add("one", read("k1", "/home/x/pkg/parser.go"))
			h.Add("one", write("k2", "/home/x/pkg/parser.go"))
			h.Add("one", read("k3", "/home/x/pkg/parser.go"))
			h.Add("two", read("k1", "/y/parser.go"))
			h.Add("two", read("k2", "/y/myparser.go"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *filesBench) {
				one, two := "one: read /home/x/pkg/parser.go (seq 3, 2x), write /home/x/pkg/parser.go (seq 2, 1x)", "two: read /y/parser.go (seq 4, 1x)"
				for file, want := range map[string][]string{
					"parser.go": {two, one}, "pkg/parser.go": {one}, "/home/x/pkg/parser.go": {one}, "y/parser.go": {two}, "/y": {}, "y": {}, "": {}, "/": {},
				} {
					require.Equal(t, want, accessing(b, "t", graph.CodeQuery{File: file}), "%q", file)
					require.Equal(t, want, accessing(b, "t", graph.CodeQuery{File: file, Line: 7}), "%q: an access is of all lines", file)
					require.Empty(t, accessing(b, "t", graph.CodeQuery{File: file, Name: "Parse"}), "%q: an access names no symbol", file)
				}
			})
		}},
		{"a failed access finds nothing, and what it had hidden does again", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", read("k1", "/a.go"))
			h.Add("d", read("k1", "/a.go"))
			h.Add("c", read("k2", "/a.go"))
			h.Add("e", read("k1", "/a.go"))
			h.Add("c", result("k2", "no", false))
			h.Add("e", result("k1", "no", false))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *filesBench) {
				require.Equal(t, []string{"d: read /a.go (seq 2, 1x)", "c: read /a.go (seq 1, 1x)"}, accessing(b, "t", graph.CodeQuery{File: "a.go"}))
			})
		}},
		{"neither another tenant nor a deleted conversation is found by its files", func(t *testing.T) {
			h := NewHistory()
			h.Add("mine", read("k", "/a.go"))
			h.Add("gone", read("k", "/a.go"))
			h.Add("gone", &events.ConversationDeleted{})
			h.Tenant = "u"
			h.Add("theirs", read("k", "/a.go"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *filesBench) {
				require.Equal(t, []string{"mine: read /a.go (seq 1, 1x)"}, accessing(b, "t", graph.CodeQuery{File: "a.go"}))
				require.Equal(t, []string{"theirs: read /a.go (seq 4, 1x)"}, accessing(b, "u", graph.CodeQuery{File: "a.go"}))
				found, err := b.store.Accesses(b.ctx, "t", []string{"gone", "theirs", "mine"}, graph.CodeQuery{File: "a.go"})
				require.NoError(t, err)
				require.Len(t, found, 1)
				require.Len(t, found["mine"], 1)
			})
		}},
		{"a file that is accessed again and again, and as many conversations as are asked for", func(t *testing.T) {
			h := NewHistory()
			for i := range 300 { // of one path and kind only the newest counts
				h.Add("c", read(fmt.Sprint(i), "/a.go"))
			}
			for i := range 300 { // more than the first attempt reads
				h.Add("d", read(fmt.Sprint(i), fmt.Sprintf("/%d/a.go", i)))
			}
			b := w.bench(t)
			b.apply(h.Messages)
			found, err := b.store.Accessing(b.ctx, "t", graph.CodeQuery{File: "a.go"})
			require.NoError(t, err)
			require.Equal(t, graph.Mentions{Conversations: []graph.Mentioned{{ID: "d", Seq: 600}, {ID: "c", Seq: 300}}}, found)
			found, err = b.store.Accessing(b.ctx, "t", graph.CodeQuery{File: "a.go", Limit: 1})
			require.NoError(t, err)
			require.Equal(t, graph.Mentions{Conversations: []graph.Mentioned{{ID: "d", Seq: 600}}, More: true}, found)
			require.Equal(t, []string{"d: read /9/a.go (seq 310, 1x)"}, accessing(b, "t", graph.CodeQuery{File: "9/a.go"}), "which is not among the newest 200")
			accesses, err := b.store.Accesses(b.ctx, "t", []string{"d"}, graph.CodeQuery{File: "a.go"})
			require.NoError(t, err)
			require.Len(t, accesses["d"], graph.MaxMentionsEach)
			require.True(t, slices.IsSortedFunc(accesses["d"], func(a, b graph.FileAccess) int { return int(b.Seq) - int(a.Seq) }))
		}},
	}
}
