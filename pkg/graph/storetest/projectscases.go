package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/summary"
)

type (
	projectsShop  = workshop[*project.Unit, project.Store]
	projectsBench = bench[*project.Unit, project.Store]
)

// projectsData are payloads that change a digest. A refused one is a message with this id and content.
var projectsData = Data{
	Nth: func(n int) events.Payload {
		return message(fmt.Sprintf("m%d", n), "user", fmt.Sprintf("request %d", n))
	},
	Refused: func(text string) events.Payload { return message(text, "user", text) },
	Again:   &events.ConversationStarted{Cwd: "/again"},
}

// RunProjects runs every case for the projection "projects".
func RunProjects(t *testing.T, b Backend[project.Store]) {
	w := projectsShop{backend: b, projection: project.Projection(files.DefaultTable())}
	w.run(t, append(engineCases(w, projectsData), projectsCases(w)...))
}

// of lists the conversations of a project, newest first, as of a sequence.
func projectOf(b *projectsBench, name string, asOf uint64) (list []string) {
	b.t.Helper()
	p, err := project.Find(b.ctx, b.store, "t", name, asOf)
	require.NoError(b.t, err)
	sessions, err := project.Sessions(b.ctx, b.store, p, nil, "")
	require.NoError(b.t, err)
	for _, s := range sessions {
		list = append(list, s.ID.ID)
	}
	return list
}

// names lists the projects.
func projectNames(b *projectsBench, asOf uint64) (names []string) {
	b.t.Helper()
	list, _, err := project.List(b.ctx, b.store, "t", "", 100, asOf)
	require.NoError(b.t, err)
	newest, err := project.Newest(b.ctx, b.store, list)
	require.NoError(b.t, err)
	for i, p := range list {
		if newest[i] != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

func begin(cwd string) *events.ConversationStarted { return &events.ConversationStarted{Cwd: cwd} }

func projectsCases(w projectsShop) []namedCase {
	digest := func(b *projectsBench, conversation string, asOf uint64) *project.Digest {
		b.t.Helper()
		list, err := b.store.Digests(b.ctx, []events.ConversationID{id(conversation)}, asOf)
		require.NoError(b.t, err)
		return list[0]
	}
	return []namedCase{
		{"a conversation belongs to the project it names, else to its repository, else to where it works", func(t *testing.T) {
			h := NewHistory()
			h.Add("named", &events.ConversationStarted{Project: "p", Repository: "git@github.com:o/r.git", Cwd: "/w/r"})
			h.Add("remote", &events.ConversationStarted{Repository: "https://github.com/o/r.git", Cwd: "/w/r"})
			h.Add("tree", begin("/w/r/.worktrees/4"))
			h.Add("sub", begin("/w/r/cmd"))
			h.Add("folder", begin("/w/other"))
			h.Add("nowhere", message("m", "user", "hello"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, []string{"/w/other", "/w/r", "github.com/o/r", "p"}, projectNames(b, graph.Latest))
				require.Equal(t, []string{"named"}, projectOf(b, "p", graph.Latest))
				require.Equal(t, []string{"remote"}, projectOf(b, "github.com/o/r", graph.Latest))
				require.Equal(t, []string{"sub", "tree"}, projectOf(b, "/w/r", graph.Latest))
				require.Equal(t, []string{"sub", "tree"}, projectOf(b, "/w/r/cmd/deep", graph.Latest), "a folder of the repository")
				require.Empty(t, projectOf(b, "/w", graph.Latest))
				require.Equal(t, []string{"tree"}, projectOf(b, "/w/r", 3), "as of then")
			})
		}},
		{"a conversation that goes to another project leaves the first, and was in it then", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{Project: "one"})
			h.Add("c", message("m1", "user", "begin"))
			h.Add("c", &events.ConversationStarted{Project: "two"})
			h.Add("c", message("m2", "user", "go on"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, []string{"two"}, projectNames(b, graph.Latest))
				require.Empty(t, projectOf(b, "one", graph.Latest))
				require.Equal(t, []string{"c"}, projectOf(b, "two", graph.Latest))
				require.Equal(t, []string{"c"}, projectOf(b, "one", 2))
				require.Empty(t, projectOf(b, "two", 2))
			})
		}},
		{"two projects are one, and two again", func(t *testing.T) {
			h := NewHistory()
			h.Add("a", begin("/a/cli"))
			h.Add("b", begin("/b/cli"))
			h.Add(events.ProjectsConversation, &events.ProjectAliased{Project: "/b/cli", Into: "/a/cli"})
			h.Add(events.ProjectsConversation, &events.ProjectAliased{Project: "/b/cli"})
			h.Add(events.ProjectsConversation, &events.ProjectAliased{Project: "/a/cli", Into: "/b/cli"})
			h.Add(events.ProjectsConversation, &events.ProjectAliased{Project: "/b/cli", Into: "/a/cli"}) // a circle
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, []string{"/a/cli"}, projectNames(b, 3))
				require.Equal(t, []string{"b", "a"}, projectOf(b, "/a/cli", 3))
				require.Equal(t, []string{"b", "a"}, projectOf(b, "/b/cli", 3))
				require.Equal(t, []string{"/a/cli", "/b/cli"}, projectNames(b, 4))
				require.Equal(t, []string{"a"}, projectOf(b, "/a/cli", 4))
				require.Equal(t, []string{"b", "a"}, projectOf(b, "/a/cli", 5))
				projectOf(b, "/a/cli", graph.Latest) // ends
			})
		}},
		{"files of a memory are written, moved and deleted", func(t *testing.T) {
			h := NewHistory()
			const id = events.MemoryPrefix + "p"
			wrote := func(path, text string) *events.MemoryChanged {
				return &events.MemoryChanged{Path: path, Content: &text}
			}
			h.Add(id, &events.ConversationStarted{Project: "p"})
			h.Add(id, wrote("notes/a", "one"))
			h.Add(id, wrote("notes/b", "two"))
			h.Add(id, wrote("notes/a", "three"))
			h.Add(id, &events.MemoryChanged{Path: "notes", MovedTo: "old/notes"})
			h.Add(id, &events.MemoryChanged{Path: "old/notes/b"})
			for range 20 { // the digest is stored whole in between
				h.Add(id, wrote("c", ""))
			}
			h.Add("elsewhere", wrote("d", "not in a memory"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, []project.MemoryFile{{Path: "notes/a", Bytes: 5, Seq: 4}, {Path: "notes/b", Bytes: 3, Seq: 3}}, digest(b, id, 4).Memory)
				require.Equal(t, []project.MemoryFile{{Path: "old/notes/a", Bytes: 5, Seq: 4}, {Path: "old/notes/b", Bytes: 3, Seq: 3}}, digest(b, id, 5).Memory)
				require.Equal(t, []project.MemoryFile{{Path: "c", Seq: 26}, {Path: "old/notes/a", Bytes: 5, Seq: 4}}, digest(b, id, graph.Latest).Memory)
				require.Equal(t, []string{id}, projectOf(b, "p", graph.Latest))
				if d := digest(b, "elsewhere", graph.Latest); d != nil {
					require.Empty(t, d.Memory)
				}
			})
		}},
		{"a story stands while what it covers does", func(t *testing.T) {
			h := NewHistory()
			chapter := func(name string, level int, children []string, told ...string) {
				p := &events.StoryWritten{Project: "p", Names: []string{"p"}, Level: level, Children: children, Conversation: name, Method: "llm"}
				for _, c := range told {
					p.Told = append(p.Told, events.Told{ID: c, Chars: 3_000})
				}
				h.Add(events.StoryPrefix+name, p)
			}
			for _, c := range []string{"a", "b", "c", "d"} {
				h.Add(c, &events.ConversationStarted{Project: "p"})
				h.Add(c, &events.InsightWritten{Task: summary.TaskSession, Answer: map[string]json.RawMessage{
					"main_topic": json.RawMessage(`"about ` + c + `"`), "key_findings": json.RawMessage(`["one",2]`), "action_items": json.RawMessage(`["do\n## it",""]`),
				}, Turns: 2, Chars: 3_000, Model: "m"})
			}
			h.Add("a", &events.InsightWritten{Task: "other", Answer: map[string]json.RawMessage{"main_topic": json.RawMessage(`"no"`)}, Model: "m"})
			chapter("1", 1, nil, "a", "b")                                 // sequence 10
			chapter("2", 1, nil, "c")                                      // 11
			chapter("3", 2, []string{"story:1", "story:2"}, "a", "b", "c") // 12
			chapter("3", 1, nil, "d")                                      // nobody adds to a chapter
			chapter("4", 1, nil, "d")                                      // 14
			h.Add("elsewhere", &events.StoryWritten{Project: "p", Names: []string{"p"}, Level: 1, Told: []events.Told{{ID: "d"}}, Conversation: "no", Method: "llm"})
			frontier := func(b *projectsBench, asOf uint64) (list []string) {
				p, err := project.Find(b.ctx, b.store, "t", "p", asOf)
				require.NoError(b.t, err)
				chapters, err := project.Frontier(b.ctx, b.store, p)
				require.NoError(b.t, err)
				for _, c := range chapters {
					list = append(list, fmt.Sprint(c.Level, " ", c.Text))
				}
				return list
			}
			telling := func(b *projectsBench, conversation string) []string {
				list, err := project.Telling(b.ctx, b.store, id(conversation), graph.Latest)
				require.NoError(b.t, err)
				return list
			}
			lastDeletion := func(b *projectsBench, tenant string) uint64 {
				seq, err := b.store.LastDeletion(b.ctx, tenant)
				require.NoError(b.t, err)
				return seq
			}
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, []string{"1 2", "1 1"}, frontier(b, 11))
				require.Equal(t, []string{"2 3"}, frontier(b, 12))
				require.Equal(t, []string{"2 3", "1 4"}, frontier(b, graph.Latest))
				require.Equal(t, []string{"story:1", "story:3"}, telling(b, "b"))
				require.Equal(t, []string{"d", "c", "b", "a"}, projectOf(b, "p", graph.Latest), "a chapter is not a session")
				require.Equal(t, []string{"p"}, projectNames(b, graph.Latest))
				require.Equal(t, &project.Insight{Topic: "about a", Items: []string{"do ## it"}, Turns: 2, Chars: 3_000, Seq: 2}, digest(b, "a", graph.Latest).Insight)
				deleted, err := b.store.Deleted(b.ctx, "t", []string{"a", "b", "unknown"})
				require.NoError(t, err)
				require.Empty(t, deleted)
				require.Zero(t, lastDeletion(b, "t"))
			})
			deletion := h.Add("b", &events.ConversationDeleted{})
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, []string{"1 4"}, frontier(b, graph.Latest))
				require.Equal(t, []string{"1 2"}, frontier(b, 11), "also as of then")
				deleted, err := b.store.Deleted(b.ctx, "t", []string{"a", "b", "unknown"})
				require.NoError(t, err)
				require.Equal(t, map[string]bool{"b": true}, deleted)
				require.Equal(t, deletion, lastDeletion(b, "t"))
				require.Zero(t, lastDeletion(b, "u"))
				p, err := project.Find(b.ctx, b.store, "t", "p", graph.Latest)
				require.NoError(t, err)
				plan, err := project.Due(b.ctx, b.store, p, 1)
				require.NoError(t, err)
				require.Equal(t, []string{"story:1", "story:3"}, plan.Withdrawn)
			})
			for _, withdrawn := range []string{"story:1", "story:3"} {
				h.Add(withdrawn, &events.StoryWithdrawn{})
			}
			h.Add("d", &events.StoryWithdrawn{}) // no chapter
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, []string{"1 4", "1 2"}, frontier(b, graph.Latest))
				require.Empty(t, telling(b, "b"))
				p, err := project.Find(b.ctx, b.store, "t", "p", graph.Latest)
				require.NoError(t, err)
				plan, err := project.Due(b.ctx, b.store, p, 1)
				require.NoError(t, err)
				require.Equal(t, []events.Told{{ID: "a", Chars: 3_000}}, plan.Told, "told again, without what was deleted")
				require.Equal(t, 1, plan.Level)
			})
		}},
		{"what an event taught is withdrawn", func(t *testing.T) {
			h := NewHistory()
			withdraw := func(seq uint64) uint64 {
				return h.Add("c", &events.LessonWithdrawn{EventSource: "storetest", EventID: fmt.Sprintf("e%d", seq)})
			}
			h.Add("c", begin("/w/r"))
			h.Add("c", message("m1", "user", "Fix the upload test."))
			early := withdraw(h.Next + 1) // a producer may publish in another order
			h.Add("c", message("m2", "user", "Always run the linter before you commit."))
			taught := h.Add("c", message("m3", "user", "Always use tabs in this project. Never push to the main branch."))
			h.Add("c", call("k1", "Bash", `{"command":"go test ./..."}`))
			h.Add("c", result("k1", "Error: unknown flag: --retries", false))
			h.Add("c", write("k2", "/w/r/upload.go"))
			h.Add("c", call("k3", "Bash", `{"command":"go test ./..."}`))
			solved := h.Add("c", result("k3", "ok", true))
			found := h.Add("c", &events.SummaryWritten{SummaryID: "s", Level: 1, FirstSeq: 1, LastSeq: 2, Conversation: "They asked.", Findings: []string{"Retries wait for a clock that stops."}, Method: "llm"})
			read := h.Add("c", &events.InsightWritten{Task: summary.TaskSession, Model: "m", Answer: map[string]json.RawMessage{"key_findings": json.RawMessage(`["The clock of the test stops."]`)}})
			kept := h.Add("c", message("m4", "user", "Never sleep in tests."))
			for range 20 { // the digest is stored whole in between
				h.Add("c", message(fmt.Sprint("m", h.Next), "assistant", "done"))
			}
			last := h.Next - 1
			var withdrawals []uint64
			for _, seq := range []uint64{taught, solved, found, read} {
				withdrawals = append(withdrawals, withdraw(seq))
				withdraw(seq) // again
			}
			withdraw(1)
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				lessons := func(asOf uint64) (list []uint64) {
					for _, l := range digest(b, "c", asOf).Lessons() {
						list = append(list, l.Seq)
					}
					return list
				}
				require.Equal(t, []uint64{kept, taught, taught, solved, read, found}, lessons(last))
				require.Equal(t, []uint64{kept, solved, read, found}, lessons(withdrawals[0]))
				require.Equal(t, []uint64{kept, read, found}, lessons(withdrawals[1]))
				require.Equal(t, []uint64{kept, read}, lessons(withdrawals[2]))
				require.Equal(t, []uint64{kept}, lessons(graph.Latest))
				d := digest(b, "c", graph.Latest)
				require.Equal(t, last, d.LastSeq, "nobody worked in it")
				require.True(t, d.IsWithdrawn(taught))
				require.True(t, d.IsWithdrawn(early+1))
				require.False(t, d.IsWithdrawn(kept))
				require.NotEmpty(t, d.Summary.Text, "what the summary says is no lesson")
			})
			h.Add("c", &events.ConversationDeleted{})
			withdraw(kept)
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) { require.Nil(t, digest(b, "c", graph.Latest)) })
		}},
		{"a line that was withdrawn hides what was taught before and says the same", func(t *testing.T) {
			h := NewHistory()
			const line, kept, single = "Always use tabs in this project.", "Never push to the main branch.", "Never skip the slow tests here."
			for _, c := range []string{"twice", "c", "other"} {
				h.Add(c, &events.ConversationStarted{Project: map[string]string{"other": "q"}[c], Repository: "/w/p"})
				h.Add(c, message("m1", "user", "Fix the upload test."))
				h.Add(c, message("m2", "user", line+" "+kept))
			}
			note := h.Add("notes:/w/p", &events.MessageCreated{MessageID: "n", Role: "user", Content: "always use\n tabs in this project.", Origin: events.OriginNote})
			h.Add("notes:/w/p", begin("/w/p"))
			alone := h.Add("c", message("m3", "user", single))
			repeated := h.Add("twice", message("m4", "user", single))
			before := h.Next - 1
			h.Add("c", &events.LessonWithdrawn{EventSource: "storetest", EventID: fmt.Sprint("e", alone)})
			at := h.Add("c", &events.LessonWithdrawn{EventSource: "storetest", EventID: "e6"})
			again := h.Add("twice", message("m3", "user", line))
			hidden := func(b *projectsBench, of string, asOf, seq uint64, line string) bool {
				p, err := project.Find(b.ctx, b.store, "t", of, asOf)
				require.NoError(b.t, err)
				gone, err := project.ForgottenIn(b.ctx, b.store, p)
				require.NoError(b.t, err)
				if gone.Newest() > 0 {
					require.Equal(b.t, at, gone.Newest())
				}
				return gone.Hides(line, seq)
			}
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, note, digest(b, "notes:/w/p", graph.Latest).Taught[0].Seq)
				for _, asOf := range []uint64{at, graph.Latest} {
					require.True(t, hidden(b, "/w/p", asOf, 3, line))
					require.True(t, hidden(b, "/w/p", asOf, 3, kept), "the same event taught it")
					require.False(t, hidden(b, "/w/p", asOf, note, digest(b, "notes:/w/p", asOf).Taught[0].Text), "it was taught after the event, whose other line was meant")
					require.True(t, hidden(b, "/w/p", asOf, repeated, strings.ToUpper(single)), "the event taught no other line")
					require.False(t, hidden(b, "/w/p", asOf, again, line), "it was taught again")
					require.False(t, hidden(b, "/w/p", asOf, 3, "Fix the upload test."))
					require.False(t, hidden(b, "q", asOf, 9, line), "in another project")
				}
				require.False(t, hidden(b, "/w/p", before, 3, line), "as of then")
				gone, err := project.ForgottenIn(b.ctx, b.store, project.Project{Tenant: "u", Names: []string{"/w/p"}}.AsOf(graph.Latest))
				require.NoError(t, err)
				require.Empty(t, gone)
			})
			h.Add("c", &events.ConversationDeleted{})
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.False(t, hidden(b, "/w/p", graph.Latest, 3, line), "nothing of a deleted conversation stays")
			})
		}},
		{"nothing of a deleted conversation stays", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", begin("/w/r/.worktrees/4"))
			h.Add("c", message("m1", "user", "begin"))
			h.Add("d", begin("/w/d"))
			h.Add("c", &events.ConversationDeleted{})
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				for _, asOf := range []uint64{2, 4, graph.Latest} {
					require.Nil(t, digest(b, "c", asOf))
					require.Empty(t, projectOf(b, "/w/r", asOf))
				}
				require.Equal(t, []string{"/w/d"}, projectNames(b, graph.Latest))
				roots, err := b.store.Names(b.ctx, "t", project.NameQuery{Kind: project.KindRoot, AsOf: graph.Latest, Limit: 10})
				require.NoError(t, err)
				require.Empty(t, roots)
			})
		}},
		{"another tenant's project is unknown", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{Project: "p"})
			h.Tenant = "u"
			h.Add("c", &events.ConversationStarted{Project: "q"})
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				require.Equal(t, []string{"p"}, projectNames(b, graph.Latest))
				require.Empty(t, projectOf(b, "q", graph.Latest))
			})
		}},
		{"names of any bytes, in pages", func(t *testing.T) {
			h := NewHistory()
			want := []string{"%", "*", "a b", "a/b", "a/b/", "c\\d", "p\u0000q", "é", "日本", "\uFF5E", "\U0001F389"}
			for i, name := range want {
				h.Add(fmt.Sprintf("c%d", i), &events.ConversationStarted{Project: name})
			}
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *projectsBench) {
				var got []string
				for after, more := "", true; more; more = after != "" {
					var list []project.Project
					var err error
					list, after, err = project.List(b.ctx, b.store, "t", after, 3, graph.Latest)
					require.NoError(t, err)
					for _, p := range list {
						got = append(got, p.Name)
						require.Len(t, projectOf(b, p.Name, graph.Latest), 1, "%q", p.Name)
					}
				}
				require.Equal(t, want, got)
			})
		}},
		{"what is read as of a sequence is what was read then", func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				h := NewHistory()
				for n := range rapid.IntRange(1, 60).Draw(r, "events") {
					c := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "conversation")
					k := fmt.Sprintf("k%d", rapid.IntRange(0, 5).Draw(r, "call"))
					h.Add(c, rapid.SampledFrom([]events.Payload{
						begin("/w/r"), &events.ConversationStarted{Project: "p", Title: "t"}, &events.ConversationUpdated{Title: new("new")},
						message(fmt.Sprintf("m%d", n), "user", "always use tabs in this project"), message(fmt.Sprintf("m%d", n), "assistant", "done"),
						read(k, "/w/r/a.go"), write(k, "/w/r/b.go"), call(k, "Bash", `{"command":"go test ./..."}`), call(k, "Task", `{}`), call(k, "finish", `{}`),
						result(k, "ok", true), result(k, "x.go:1: error: undefined: y", false), written(fmt.Sprintf("s%d", n), 1, 1, 1),
						&events.InsightWritten{Task: summary.TaskSession, Answer: map[string]json.RawMessage{"main_topic": json.RawMessage(`"x"`), "key_findings": json.RawMessage(`["y"]`)}, Chars: n, Model: "m"},
						&events.LessonWithdrawn{EventSource: "storetest", EventID: fmt.Sprintf("e%d", rapid.IntRange(1, 60).Draw(r, "withdrawn"))},
						call(k, "TodoWrite", `{"todos":[{"content":"do","status":"pending"}]}`),
					}).Draw(r, "event"))
				}
				then := map[uint64]string{}
				b := w.bench(r)
				show := func(b *projectsBench, asOf uint64) string {
					list, err := b.store.Digests(b.ctx, []events.ConversationID{id("a"), id("b")}, asOf)
					require.NoError(r, err)
					return project.Encode(list)
				}
				for i, m := range h.Messages {
					b.apply(h.Messages[i : i+1])
					then[m.Seq] = show(b, graph.Latest)
				}
				together := w.bench(r)
				together.apply(h.Messages)
				for seq, want := range then {
					require.Equal(r, want, show(together, seq), "as of %d", seq)
					require.Equal(r, want, show(b, seq), "as of %d", seq)
				}
				require.Equal(r, b.hash(id("a")), together.hash(id("a")))
			})
		}},
	}
}
