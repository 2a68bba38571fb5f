package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

func TestTurnsAndStepsOfASession(t *testing.T) {
	b := setup(t)
	seq := b.session("c1")
	at := fmt.Sprintf("limit=1&at_least=%d", seq)
	var got []string
	for _, turn := range all[httpapi.Turn](b, "/v1/conversations/c1/turns?order=oldest&"+at, "turns") {
		user := ""
		if turn.UserMessage != nil {
			user = turn.UserMessage.Content
		}
		got = append(got, fmt.Sprintf("%d %q %d–%d: %d messages, %d steps, %d calls, %d results, %d chars", turn.Number, user, turn.FirstSeq, turn.LastSeq,
			turn.MessageCount, turn.StepCount, turn.ToolCallCount, turn.ToolResultCount, turn.TotalChars))
	}
	require.Equal(t, []string{
		`0 "" 1–1: 1 messages, 0 steps, 0 calls, 0 results, 7 chars`,
		`1 "fix it" 2–8: 3 messages, 2 steps, 2 calls, 2 results, 20 chars`,
		`2 "again" 9–14: 2 messages, 1 steps, 2 calls, 2 results, 9 chars`,
	}, got)

	steps := func(query string) (list []string) {
		for _, s := range all[httpapi.Step](b, "/v1/conversations/c1/steps?order=oldest&"+at+query, "steps") {
			text := fmt.Sprintf("%d.%d", s.Turn, s.Number)
			if s.Message != nil {
				text += " " + s.Message.MessageID
			}
			for _, c := range s.ToolCalls {
				text += fmt.Sprint(" ", c.ToolCallID, c.Result != nil)
			}
			for _, r := range s.Results {
				text += " result of " + r.ToolCallID
			}
			list = append(list, text)
		}
		return list
	}
	require.Equal(t, []string{"1.1 a1 k1true", "1.2 a2 k2true", "2.2 k3true result of k9", "2.3 a3 k4false"}, steps(""))
	require.Equal(t, []string{"1.1 a1 k1true", "1.2 a2 k2true"}, steps("&turn=1"))
	require.Empty(t, steps("&turn=0"))
	require.Empty(t, steps("&turn=3"))
	require.Equal(t, []string{"1.1 a1 k1false"}, steps("&as_of=4"))
}

func TestToolCallsAreFiltered(t *testing.T) {
	b := setup(t)
	seq := b.session("c1")
	calls := func(query string) (ids []string) {
		for _, c := range all[httpapi.ToolCall](b, fmt.Sprintf("/v1/conversations/c1/tool-calls?limit=1&at_least=%d&%s", seq, query), "tool_calls") {
			ids = append(ids, c.ToolCallID)
		}
		return ids
	}
	require.Equal(t, []string{"k4", "k3", "k2", "k1"}, calls(""))
	require.Equal(t, []string{"k1", "k3", "k4"}, calls("tool=Read&order=oldest"))
	require.Equal(t, []string{"k1"}, calls("success=true"))
	require.Equal(t, []string{"k2"}, calls("success=false"))
	require.Equal(t, []string{"k3"}, calls("success=unknown"))
	require.Equal(t, []string{"k4"}, calls("success=pending"))
	require.Equal(t, []string{"k2", "k1"}, calls("turn=1"))
	require.Equal(t, []string{"k1"}, calls("as_of=4&success=pending"))
	require.Empty(t, calls("turn=1&tool=Write&success=true"))
}

func TestFilesAreFilteredByKindAndGroupedByDirectory(t *testing.T) {
	b := setup(t)
	seq := b.batch("c1", message("u1", "user", "go"),
		call("k1", "Write", `{"file_path":"/a/old.go","content":"x"}`), call("k2", "Read", `{"file_path":"/b/one.go"}`),
		call("k3", "Read", `{"file_path":"/a/two.go"}`), call("k4", "Read", `{"file_path":"/b/three.go"}`), call("k5", "Read", `{"file_path":"/a/old.go"}`))
	read := func(query string) (list []string) {
		var answer struct{ Files []httpapi.File }
		b.get(fmt.Sprintf("/v1/conversations/c1/files?at_least=%d&%s", seq, query), &answer)
		for _, f := range answer.Files {
			list = append(list, f.Kind+" "+f.Path)
		}
		return list
	}
	require.Equal(t, []string{"write /a/old.go", "read /b/three.go", "read /a/two.go", "read /b/one.go"}, read(""))
	require.Equal(t, []string{"write /a/old.go"}, read("kind=write"))
	require.Equal(t, []string{"read /b/three.go", "read /a/two.go", "read /b/one.go"}, read("kind=read"))
	require.Len(t, read("kind=read&kind=write"), 4)
	require.Empty(t, read("kind=search"))
	require.Equal(t, []string{"write /a/old.go"}, read("as_of=2"))

	var grouped struct {
		Files       []httpapi.File
		Directories []httpapi.Directory
	}
	b.get("/v1/conversations/c1/files?group_by=directory", &grouped)
	require.Nil(t, grouped.Files)
	var got []string
	for _, d := range grouped.Directories {
		for _, f := range d.Files {
			got = append(got, d.Path+": "+f.Path)
		}
	}
	require.Equal(t, []string{"/a: /a/old.go", "/a: /a/two.go", "/b: /b/three.go", "/b: /b/one.go"}, got)

	seq = b.batch("windows", message("u1", "user", "go"), call("k1", "Read", `{"file_path":"C:\\w\\pkg\\x.go"}`), call("k2", "Read", `{"file_path":"C:\\w\\y.go"}`))
	b.get(fmt.Sprintf("/v1/conversations/windows/files?group_by=directory&at_least=%d", seq), &grouped)
	require.Len(t, grouped.Directories, 2)
	require.Equal(t, `C:\w\pkg`, grouped.Directories[1].Path)
}

func TestFilesOfACloneBelowATemporaryFolderAreListed(t *testing.T) {
	b := setup(t)
	seq := b.batch("c1", &events.ConversationStarted{Cwd: "/tmp/clone"}, message("u1", "user", "go"),
		call("k1", "Read", `{"file_path":"/tmp/clone/main.go"}`), call("k2", "Read", `{"file_path":"/tmp/scratch.txt"}`), call("k3", "Read", `{"file_path":"/tmp/clone/.git/HEAD"}`))
	paths := func(query string) (list []string) {
		var answer struct{ Files []httpapi.File }
		b.get(fmt.Sprintf("/v1/conversations/c1/files?at_least=%d&%s", seq, query), &answer)
		for _, f := range answer.Files {
			list = append(list, f.Path)
		}
		return list
	}
	require.Equal(t, []string{"/tmp/clone/main.go"}, paths(""))
	require.Len(t, paths("all=true"), 3)
}

func TestAFileIsFoundAfterManyOthers(t *testing.T) {
	b := setup(t)
	payloads := []events.Payload{call("w", "Write", `{"file_path":"/wanted.go","content":"x"}`)}
	for i := range 300 {
		payloads = append(payloads, call(fmt.Sprint("r", i), "Read", fmt.Sprintf(`{"file_path":"/src/%d.go"}`, i)))
	}
	seq := b.batch("c1", payloads...)
	var answer struct{ Files []httpapi.File }
	b.get(fmt.Sprintf("/v1/conversations/c1/files?kind=write&limit=1&at_least=%d", seq), &answer)
	require.Len(t, answer.Files, 1)
	require.Equal(t, "/wanted.go", answer.Files[0].Path)
}
