package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
)

// session publishes a conversation of two turns with one tool call, and waits for it.
func session(s *server, id string) {
	s.t.Helper()
	assistant := func(id, content string) map[string]any {
		return map[string]any{"type": "dev.mneme.message.created.v1", "id": id, "time": "2026-01-02T03:04:06Z", "message_id": id, "role": "assistant", "content": content, "reasoning": "hm"}
	}
	s.publish(id, started("A session"), userMessage("m1", "Where is the checkpoint written?"), assistant("m2", "I search all files for it."),
		map[string]any{"type": "dev.mneme.tool.called.v1", "id": "t1", "time": "2026-01-02T03:04:07Z", "tool_call_id": "t1", "message_id": "m2", "tool_name": "grep", "arguments": map[string]any{"pattern": "checkpoint"}},
		map[string]any{"type": "dev.mneme.tool.returned.v1", "id": "r1", "tool_call_id": "t1", "result": strings.Repeat("engine.go: checkpoint\n", 20), "success": true, "duration_ms": 18},
		assistant("m3", "In engine.go."), userMessage("m4", "Thanks."))
	_, stderr, code := s.mneme("context", id, "--at-least", "7")
	require.Zero(s.t, code, stderr)
}

const sessionTranscript = `── turn 1 ──────────────────────────────────────────────────

user  2026-01-02T03:04:05Z  seq 2  m1
  Where is the checkpoint written?

assistant  2026-01-02T03:04:06Z  seq 3  m2
  I search all files for it.
  → grep ok, 18ms  t1
    {"pattern":"checkpoint"}
    engine.go: checkpoint
    engine.go: checkpoint
    engine.go: checkpoint
    engine.go: checkpoint
    engine.go: checkpoint
    engine.go: checkpoint
    engine.go: checkpoint
    engine.go: checkpoint
    … 12 more lines

assistant  2026-01-02T03:04:06Z  seq 6  m3
  In engine.go.

── turn 2 ──────────────────────────────────────────────────

user  2026-01-02T03:04:05Z  seq 7  m4
  Thanks.
`

func TestContextInTheFormatOfAModelsAPI(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	session(s, "c")
	type chat struct {
		Messages []struct{ Role string }
		Manifest *struct{ Used int }
	}
	for format, roles := range map[string][]string{
		"openai":    {"user", "assistant", "tool", "assistant", "user"},
		"anthropic": {"user", "assistant", "user", "assistant", "user"},
	} {
		got := read[chat](s, "context", "c", "--format", format, "--explain")
		require.NotNil(t, got.Manifest)
		for i, role := range roles {
			require.Equal(t, role, got.Messages[len(got.Messages)-len(roles)+i].Role, format)
		}
	}
}

func TestAPersonSeesTheNameOfAnImageAndAProgramItsData(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	image := "data:image/png;base64," + strings.Repeat("AZr3", 5_000)
	s.publish("c", userMessage("m1", "Look: "+image),
		map[string]any{"type": "dev.mneme.tool.called.v1", "id": "k", "tool_call_id": "t1", "tool_name": "look", "arguments": map[string]any{"at": image}},
		map[string]any{"type": "dev.mneme.tool.returned.v1", "id": "r", "tool_call_id": "t1", "result": image, "error": "failed: " + image, "success": false})
	s.mneme("conversations", "show", "c", "--at-least", "3")
	for _, command := range [][]string{{"messages", "c"}, {"messages", "c", "m1"}, {"steps", "c", "--whole"}, {"tool-calls", "c"}, {"tool-calls", "c", "t1"}, {"context", "c"}} {
		out, stderr, code := s.mneme(command...)
		require.Zero(t, code, stderr)
		require.Contains(t, out, "[image/png, 15 kB]", command)
		require.NotContains(t, out, "AZr3AZr3", command)
	}
	require.Equal(t, "Look: "+image, read[httpapi.Message](s, "messages", "c", "m1").Content)
	require.Equal(t, image, read[httpapi.ToolCall](s, "tool-calls", "c", "t1").Result.Result)
}

func TestAConversationReadsAsATranscript(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	session(s, "c")
	out := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := s.mneme(args...)
		require.Zero(t, code, stderr)
		return stdout
	}
	require.Equal(t, sessionTranscript, out("messages", "c"))
	require.Equal(t, sessionTranscript, out("messages", "c", "--order", "oldest"), "it reads from older to newer whichever end is taken")
	shown := out("conversations", "show", "c")
	require.Contains(t, shown, "title\tA session\n")
	require.True(t, strings.HasSuffix(shown, sessionTranscript))

	require.Equal(t, []string{"m4", "m3"}, ids(read[[]httpapi.Message](s, "messages", "c", "--limit", "2")))
	require.Equal(t, []string{"m1", "m4"}, ids(read[[]httpapi.Message](s, "messages", "c", "--role", "user", "--order", "oldest", "--limit", "0")))
	require.Equal(t, []string{"m2", "m1"}, ids(read[[]httpapi.Message](s, "messages", "c", "--as-of", "5")))
	require.NotContains(t, out("messages", "c", "--no-tool-calls"), "grep")
	require.Contains(t, out("messages", "c", "--reasoning"), "~ hm")
	require.Equal(t, 20, strings.Count(out("messages", "c", "--whole"), "engine.go: checkpoint"))
	require.Contains(t, out("messages", "c", "m2"), "I search all files for it.")

	require.Equal(t, "TURN\tTIME\tSTEPS\tTOOL CALLS\tCHARS\tSEQS\tUSER MESSAGE\n2\t2026-01-02T03:04:05Z\t0\t0\t7\t7-7\tThanks.\n1\t2026-01-02T03:04:05Z\t2\t1\t71\t2-6\tWhere is the checkpoint written?\n", out("turns", "c"))
	require.Contains(t, out("steps", "c", "--turn", "1"), "→ grep ok, 18ms  t1")
	require.Empty(t, read[[]httpapi.Step](s, "steps", "c", "--turn", "2"))
	require.Empty(t, read[[]httpapi.Step](s, "steps", "c", "--turn", "0"), "a turn like any other, not all of them")
	require.Empty(t, read[[]httpapi.ToolCall](s, "tool-calls", "c", "--turn", "0"))
	require.Equal(t, "SEQ\tTURN\tTOOL\tENDED\tTOOK\tCALL\tARGUMENTS\n4\t1\tgrep\tok\t18ms\tt1\t{\"pattern\":\"checkpoint\"}\n", out("tool-calls", "c", "--tool", "grep"))
	require.Empty(t, read[[]httpapi.ToolCall](s, "tool-calls", "c", "--success", "false"))
	call := out("tool-calls", "c", "t1")
	require.Contains(t, call, "ended\tok\n")
	require.Equal(t, 20, strings.Count(call, "engine.go: checkpoint"))

	var event map[string]any
	require.NoError(t, json.Unmarshal([]byte(out("event", "2")), &event))
	require.Equal(t, "dev.mneme.message.created.v1", event["type"])
	require.Contains(t, s.person(80, nil, "event", "2"), "\n  \"specversion\": \"1.0\"", "indented for a person")

	for _, command := range [][]string{{"messages", "c"}, {"turns", "c"}, {"steps", "c"}, {"tool-calls", "c"}, {"conversations", "show", "c"}, {"files", "c", "--by-directory"}} {
		for line := range strings.Lines(uncolored(s.person(40, nil, command...))) {
			require.LessOrEqual(t, console.Width(strings.TrimRight(line, "\n")), 40, "%v: %q", command, line)
		}
	}
	out("context", "c", "--record", "--max-chars", "2000")
	out("context", "c", "--record", "--max-chars", "1000")
	for limit, n := range map[string]int{"0": 2, "1": 1, "300": 2} {
		require.Len(t, read[[]httpapi.ServedContext](s, "contexts", "c", "--limit", limit), n, limit)
	}
	for _, command := range [][]string{{"messages", "nobody"}, {"messages", "c", "nothing"}, {"tool-calls", "c", "nothing"}, {"event", "99"}} {
		_, stderr, code := s.mneme(command...)
		require.Equal(t, exitFailed, code)
		require.NotEmpty(t, stderr)
	}
}

func ids(list []httpapi.Message) (ids []string) {
	for _, m := range list {
		ids = append(ids, m.MessageID)
	}
	return ids
}

func TestCreateChangeBranchAndDeleteAConversation(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	made := read[httpapi.Written](s, "conversations", "create", "--title", "One", "--tag", "a,b", "--tag", "c", "--agent", "me")
	id := made.ConversationID
	show := func(id string) httpapi.Conversation {
		t.Helper()
		return read[httpapi.Conversation](s, "conversations", "show", id, "--at-least", "1")
	}
	require.Equal(t, []string{"a,b", "c"}, show(id).Tags, "a tag may hold a comma")
	listed := func(args ...string) (ids []string) {
		for _, c := range read[[]httpapi.Conversation](s, append([]string{"conversations", "list"}, args...)...) {
			ids = append(ids, c.ID)
		}
		return ids
	}
	step := func(args ...string) uint64 {
		t.Helper()
		return read[httpapi.Written](s, append([]string{"conversations"}, args...)...).Seq
	}
	step("update", id, "--title", "Two", "--no-tags")
	seq := step("archive", id)
	require.Equal(t, []string{id}, listed("--status", "archived", "--agent", "me", "--at-least", "3"))
	require.EqualValues(t, 3, seq)
	c := show(id)
	day := func(days int) string { return time.Now().AddDate(0, 0, days).Format(time.DateOnly) }
	require.Equal(t, []string{id}, listed("--updated-after", day(-1), "--updated-before", day(2)), "a date is when it began here")
	require.Empty(t, listed("--created-after", day(2)))
	require.Empty(t, listed("--created-before", "2026-01-31T15:04:05.5+01:00"))
	require.Equal(t, []any{"Two", "archived", 0}, []any{c.Title, c.Status, len(c.Tags)})
	step("unarchive", id)
	require.Empty(t, listed("--status", "archived", "--at-least", "4"))
	_, stderr, code := s.mneme("conversations", "update", id)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "nothing to change")
	_, stderr, code = s.mneme("conversations", "create", "--id", id)
	require.Equal(t, exitFailed, code, "it exists")
	require.NotEmpty(t, stderr)

	session(s, "parent")
	branch := read[httpapi.Written](s, "conversations", "branch", "parent", "m3", "--title", "Another way").ConversationID
	require.Equal(t, []string{branch}, listed("--branch-of", "parent", "--at-least", "12"))
	out, _, _ := s.mneme("conversations", "show", branch)
	require.Contains(t, out, "branch of\tparent at message m3\ninherited\t3 messages of 1 turn from there\n")
	require.Contains(t, out, "In engine.go.")

	out, stderr, code = s.mneme("conversations", "delete", id, "--yes", "--reason", "a test")
	require.Zero(t, code, stderr)
	require.True(t, strings.HasPrefix(out, id+"\t"), out)
	require.NotContains(t, stderr, "branch")
	_, stderr, code = s.mneme("conversations", "delete", id, "--yes")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "deleted")
	_, stderr, code = s.mneme("conversations", "delete", "parent", "--yes")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "Its branch loses what it shares with it.")
}

func TestAnExportIsImportedElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := up(t, filepath.Join(dir, "data"))
	session(s, "c")
	file := filepath.Join(dir, "c.ndjson")
	_, stderr, code := s.mneme("conversations", "export", "c", "-o", file)
	require.Zero(t, code, stderr)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 7, bytes.Count(raw, []byte("\n")))
	piped, _, _ := s.mneme("conversations", "export", "c")
	require.Equal(t, string(raw), piped)

	require.Equal(t, 7, read[importer.Report](s, "import", file, "--tenant", "other", "--wait").Published)
	there, here := read[httpapi.Conversation](s, "conversations", "show", "c", "--tenant", "other"), read[httpapi.Conversation](s, "conversations", "show", "c")
	for _, c := range []*httpapi.Conversation{&there, &here} {
		c.FirstSeq, c.LastSeq = 0, 0
	}
	require.Empty(t, cmp.Diff(here, there))

	_, _, code = s.mneme("conversations", "export", "nobody", "-o", filepath.Join(dir, "nobody.ndjson"))
	require.Equal(t, exitFailed, code)
	left, err := filepath.Glob(filepath.Join(dir, "nobody*"))
	require.NoError(t, err)
	require.Empty(t, left, "a file is written completely or not at all")
}

func TestSearchCoversAllConversationsUnlessOneIsNamed(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	session(s, "c")
	s.publish("d", userMessage("m1", "Lunch at noon, where is it written down?"))
	s.publish("e", userMessage("m1", "Where is the checkpoint read?"))
	_, stderr, code := s.mneme("context", "e", "--at-least", "9")
	require.Zero(t, code, stderr)
	out := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := s.mneme(args...)
		require.Zero(t, code, stderr)
		return stdout
	}
	all := out("search", "where is the checkpoint written?")
	require.Equal(t, all, out("search", "where", "is", "the", "checkpoint", "written?", "--limit", "10"), "without quotes")
	require.True(t, strings.HasPrefix(all, "── relevance 100% ─"), all)
	require.Contains(t, all, "\nc\nA session\n\nuser  2026-01-02T03:04:05Z  seq 2  relevance 100%\n  Where is the checkpoint written?\n")
	require.Contains(t, all, "\ne\n\nuser")
	for _, nothing := range []string{"zebra", "the of and", "🎉🎊", strings.Repeat("zyx ", 25_000)} {
		require.Equal(t, "nothing found\n", out("search", nothing))
		require.JSONEq(t, "[]", string(read[struct{ Conversations json.RawMessage }](s, "search", nothing).Conversations))
	}
	require.Equal(t, "nothing found\n", out("search", "checkpoint", "--tenant", "other"))
	require.Equal(t, "nothing found\n", out("messages", "c", "--role", "system"))
	require.Equal(t, "nothing found\n", out("steps", "c", "--turn", "99"))
	require.Equal(t, out("files", "c"), out("files", "c", "--limit", "0"))
	_, stderr, code = s.mneme("files", "e")
	require.Zero(t, code)
	require.Equal(t, "No files; --all also lists temporary and generated ones.\n", stderr)
	_, stderr, code = s.mneme("conversations", "list", "--tenant", "other")
	require.Zero(t, code)
	require.Equal(t, "No conversations yet: mneme connect records a coding agent, mneme import reads existing recordings.\n", stderr)
	_, stderr, code = s.mneme("conversations", "list", "--tenant", "other", "--status", "archived")
	require.Zero(t, code)
	require.Empty(t, stderr)
	stdout, stderr, code := s.mneme("search", "checkpoint", "--project", "nope")
	require.Zero(t, code)
	require.Equal(t, "nothing found\n", stdout)
	require.Equal(t, "Perhaps the name is wrong: no conversation belongs to the project nope: mneme projects list shows the projects\n", stderr)
	for _, args := range [][]string{{"conversations", "list"}, {"insights"}} {
		_, stderr, code = s.mneme(append(args, "--project", "nope")...)
		require.Zero(t, code)
		require.Equal(t, "Perhaps the name is wrong: no conversation belongs to the project nope: mneme projects list shows the projects\n", stderr)
	}
	for _, args := range [][]string{{"projects", "show", "nope"}, {"context", "--project", "nope"}} {
		_, stderr, code = s.mneme(args...)
		require.Equal(t, exitFailed, code)
		require.Equal(t, "mneme: no conversation belongs to the project nope: mneme projects list shows the projects\n", stderr)
	}
	type found struct {
		Conversations []httpapi.FoundConversation `json:"conversations"`
	}
	list := read[found](s, "search", "checkpoint", "--limit", "1").Conversations
	require.Len(t, list, 1)
	require.NotEmpty(t, list[0].Messages)
	one := out("search", "where is the checkpoint written?", "--conversation", "c", "--limit", "1")
	require.True(t, strings.HasPrefix(one, "user  2026-01-02T03:04:05Z  seq 2  relevance 100%\n"), one)
	require.Equal(t, "grep  seq 5  relevance 100%  t1\n  checkpoint\n  engine.go: checkpoint\n", strings.Join(slices.Collect(strings.Lines(out("search", "the checkpoint", "--conversation", "c", "--tool", "GREP")))[:3], ""))
	require.True(t, strings.HasPrefix(out("search", "--conversation", "c", "--kind", "tool"), "grep  seq 5  t1\n"))
	require.Equal(t, "nothing found\n", out("search", "checkpoint", "--conversation", "c", "--file", "engine.go"), "the call names no file")
	for _, m := range read[struct{ Messages []httpapi.Found }](s, "search", `"the checkpoint"`, "--conversation", "c").Messages {
		require.Equal(t, "m1", m.MessageID)
		require.Equal(t, []httpapi.Highlight{{Start: 13, End: 23}}, m.Highlights)
	}
	stdout, stderr, _ = s.mneme("search", "where -written", "--conversation", "c", "--role", "user")
	require.NotContains(t, stdout, "written")
	require.Contains(t, stderr, "--plain")
	require.Contains(t, out("search", "where -written", "--conversation", "c", "--plain"), "Where is the checkpoint written?")
	require.Contains(t, s.person(80, nil, "search", "checkpoint written", "--conversation", "c"), "Where is the \x1b[1mcheckpoint\x1b[22m \x1b[1mwritten\x1b[22m?")

	similar := read[found](s, "conversations", "similar", "c").Conversations
	require.Equal(t, "e", similar[0].ID)
	require.Contains(t, out("conversations", "similar", "c", "--limit", "1"), "\ne\n")
	for _, command := range [][]string{{"search", "checkpoint"}, {"conversations", "similar", "c"}} {
		for line := range strings.Lines(uncolored(s.person(40, nil, command...))) {
			require.LessOrEqual(t, console.Width(strings.TrimRight(line, "\n")), 40, "%v: %q", command, line)
		}
	}
	for _, wrong := range [][]string{{"search", " "}, {"search", "x", "--as-of", "1"}, {"search", "x", "--limit", "99"}, {"search", "x", "--limit", "0"}, {"search", ""}, {"search"},
		{"search", "x", "--tool", "Bash"}, {"search", "x", "--conversation", "c", "--kind", "call"}, {"search", "--conversation", "c"}} {
		_, stderr, code := s.mneme(wrong...)
		require.Equal(t, exitUsage, code, "%v: %s", wrong, stderr)
	}
	for _, fails := range [][]string{{"conversations", "similar", "nobody"}, {"search", "x", "--conversation", "nobody"}} {
		_, stderr, code := s.mneme(fails...)
		require.Equal(t, exitFailed, code, "%v: %s", fails, stderr)
	}
}

func TestAboutFindsByFileLineOrSymbol(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	refers := userMessage("m1", "Look at this")
	refers["references"] = []map[string]any{{"file": "/w/pkg/parser.go", "start_line": 3, "end_line": 9, "name": "Parse"}}
	s.publish("c", started("A session"), refers)
	s.publish("d", map[string]any{
		"type": "dev.mneme.tool.called.v1", "id": "k1", "time": "2026-01-02T03:04:07Z", "tool_call_id": "k1", "tool_name": "Write", "arguments": map[string]any{"file_path": "/w/pkg/parser.go", "content": "x"},
	})
	_, stderr, code := s.mneme("context", "d", "--at-least", "3")
	require.Zero(t, code, stderr)
	out := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := s.mneme(append([]string{"conversations", "about"}, args...)...)
		require.Zero(t, code, stderr)
		return stdout
	}
	heading := "CONVERSATION\tHOW\tTURN\tSEQ\tCOUNT\tFILE\tSYMBOL\tTITLE\n"
	wrote, referred := "d\twrite\t0\t3\t1\t/w/pkg/parser.go\t\t\n", "c\treference\t1\t2\t1\t/w/pkg/parser.go:3-9\tParse\tA session\n"
	require.Equal(t, heading+wrote+referred, out("pkg/parser.go"))
	require.Equal(t, heading+wrote+referred, out("parser.go:9:12"), "the column after the line is ignored")
	require.Equal(t, heading+wrote, out("parser.go:10"))
	require.Equal(t, heading+referred, out("--symbol", "Parse"))
	require.Equal(t, heading+referred, out("parser.go", "--symbol", "Parse"))
	require.Equal(t, heading+wrote, out("parser.go", "--limit", "1"))
	require.Equal(t, "nothing found\n", out("lexer.go"))
	require.Equal(t, "nothing found\n", out("parser.go", "--tenant", "other"))
	list := read[struct {
		Conversations []httpapi.CodeConversation `json:"conversations"`
	}](s, "conversations", "about", "parser.go").Conversations
	require.Equal(t, []string{"d", "c"}, []string{list[0].ID, list[1].ID})
	require.Len(t, list[1].References, 1)
	for line := range strings.Lines(uncolored(s.person(60, nil, "conversations", "about", "parser.go"))) {
		require.LessOrEqual(t, console.Width(strings.TrimRight(line, "\n")), 60, "%q", line)
	}
	for _, wrong := range [][]string{{}, {"parser.go:0"}, {"parser.go", "--limit", "0"}, {"/"}, {"a.go", "b.go"}, {"--symbol"}} {
		_, stderr, code := s.mneme(append([]string{"conversations", "about"}, wrong...)...)
		require.Equal(t, exitUsage, code, "%v: %s", wrong, stderr)
	}
}
