package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

// follower is a running `mneme tail`.
type follower struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
	ended chan error
}

func (s *server) tail(args ...string) *follower {
	s.t.Helper()
	path, err := mnemetest.Binary()
	require.NoError(s.t, err)
	f := &follower{t: s.t, lines: make(chan string, 1000), ended: make(chan error, 1)}
	f.cmd = exec.Command(path, append([]string{"tail", "--url", s.ready.HTTP, "--nats-url", s.ready.NATS}, args...)...)
	out, err := f.cmd.StdoutPipe()
	require.NoError(s.t, err)
	f.cmd.Stderr = os.Stderr
	require.NoError(s.t, f.cmd.Start())
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			f.lines <- scanner.Text()
		}
		f.ended <- f.cmd.Wait()
	}()
	s.t.Cleanup(func() { _ = f.cmd.Process.Kill() })
	return f
}

func (f *follower) next() string {
	f.t.Helper()
	select {
	case line := <-f.lines:
		return line
	case <-time.After(mnemetest.Patience):
		f.t.Fatal("no line came")
	}
	return ""
}

// interrupt sends Ctrl-C and returns the exit code.
func (f *follower) interrupt() int {
	f.t.Helper()
	require.NoError(f.t, f.cmd.Process.Signal(os.Interrupt))
	select {
	case <-f.ended:
	case <-time.After(mnemetest.Patience):
		f.t.Fatal("it did not end")
	}
	return f.cmd.ProcessState.ExitCode()
}

func TestTailFollowsTheLogAcrossARestart(t *testing.T) {
	t.Parallel()
	data, address := filepath.Join(t.TempDir(), "data"), "127.0.0.1:"+mnemetest.FreePort(t)
	s := upOn(t, data, address)
	s.publish("c", userMessage("m1", "first"), userMessage("m2", "second\nline"))
	s.publish("other", userMessage("m1", "not asked for"))

	f := s.tail("--conversation", "c", "--kind", "message_created", "--last", "1")
	require.Equal(t, "2026-01-02T03:04:05Z\t2\tdefault\tc\tmessage_created\tuser\tsecond", f.next())
	s.publish("other", userMessage("m2", "not asked for"))
	s.publish("c", userMessage("m3", "third"))
	require.Contains(t, f.next(), "\t5\tdefault\tc\tmessage_created\tuser\tthird")

	require.Zero(t, s.stop())
	again := upOn(t, data, address)
	again.publish("c", userMessage("m4", "after a restart"))
	require.Contains(t, f.next(), "after a restart")
	require.Zero(t, f.interrupt())
}

func TestTailPrintsEachEventAsOneCloudEvent(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	s.publish("c", userMessage("m1", "first"), map[string]any{"type": "dev.mneme.tool.called.v1", "id": "t1", "tool_call_id": "t1", "tool_name": "Read", "arguments": map[string]any{"a": 1}})
	out, stderr, code := s.mneme("tail", "--until-end", "--json", "--from", "1")
	require.Zero(t, code, stderr)
	var list []map[string]any
	for line := range strings.Lines(out) {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		list = append(list, e)
	}
	require.Len(t, list, 2)
	require.Equal(t, "dev.mneme.message.created.v1", list[0]["type"])
	require.EqualValues(t, 1, list[0]["seq"])
	require.Equal(t, "default", list[0]["tenant"])
	require.Equal(t, map[string]any{"a": 1.0}, list[1]["data"].(map[string]any)["arguments"])

	kinds, _, code := s.mneme("tail", "--until-end", "--json", "--kind", "tool_called", "--all-tenants", "--last", "5")
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(kinds, "\n"))
	none, _, code := s.mneme("tail", "--until-end", "--tenant", "nobody")
	require.Zero(t, code)
	require.Empty(t, none)
}

func TestTailShowsInvalidEventsAndContinues(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	conn, err := nats.Connect(s.ready.NATS, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	for _, body := range []string{"no event\x1b[2J", ""} {
		_, err = js.Publish(mnemetest.Context(t), "mneme.default.c.message_created", []byte(body))
		require.NoError(t, err)
	}
	s.publish("c", userMessage("m1", "fine"))
	out, stderr, code := s.mneme("tail", "--until-end")
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[0], "\t1\tdefault\tc\tmessage_created\tundecodable\t")
	require.Contains(t, lines[1], "undecodable")
	require.Contains(t, lines[2], "fine")
	out, _, code = s.mneme("tail", "--until-end", "--json")
	require.Zero(t, code)
	require.Contains(t, out, `{"seq":1,"tenant":"default","conversation":"c","log_subject":"ev.0.default.c.message_created","error":"`)
}

func TestTailReportsErrors(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	for says, args := range map[string][]string{
		`"message_created"`:       {"tail", "--kind", "message"},
		"beyond the end":          {"tail", "--from", "7"},
		"--from and --last can't": {"tail", "--from", "1", "--last", "2"},
	} {
		_, stderr, code := s.mneme(args...)
		require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, says)
	}
	_, stderr, code := mneme(t, "tail", "--nats-url", "nats://127.0.0.1:1")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "mneme up")
}

func TestTheLogIsReadOverHTTPWithATokenAlone(t *testing.T) {
	t.Parallel()
	s := withTokens(t)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	var lines strings.Builder
	for i, text := range []string{"first", "my key is ghp_" + strings.Repeat("a1B2", 9), strings.Repeat("long ", 20_000), "last"} {
		line, err := json.Marshal(map[string]any{
			"specversion": "1.0", "type": "dev.mneme.message.created.v1", "source": "test", "id": fmt.Sprint(i), "subject": "c", "time": "2026-01-02T03:04:05Z", "extra": "e",
			"data": map[string]any{"message_id": fmt.Sprint(i), "role": "user", "content": text},
		})
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))
	_, stderr, code := s.importWith(s.token("team-a", "write").Token, file, "--redact", "off", "--wait")
	require.Zero(t, code, stderr)
	_, stderr, code = s.importWith(s.token("team-b", "write").Token, file, "--redact", "off", "--wait")
	require.Zero(t, code, stderr)

	alone := []string{"--url", s.HTTP, "--token", s.token("team-a", "read").Token}
	direct := []string{"--nats-url", s.ready.NATS, "--tenant", "team-a"}
	for _, args := range [][]string{{"--from", "1"}, {"--last", "2"}, {"--last", "0"}, {"--json"}, {"--conversation", "none"}, {"--kind", "message_created"}} {
		args = append([]string{"tail", "--until-end"}, args...)
		want, stderr, code := mneme(t, append(args, direct...)...)
		require.Zero(t, code, stderr)
		got, stderr, code := mneme(t, append(args, alone...)...)
		require.Zero(t, code, stderr)
		require.Equal(t, want, got, args)
	}
	want, _, code := mneme(t, append([]string{"redact", "scan", "--json"}, direct...)...)
	require.Equal(t, exitDifference, code)
	got, stderr, code := mneme(t, append([]string{"redact", "scan", "--json"}, alone...)...)
	require.Equal(t, exitDifference, code, stderr)
	require.Equal(t, want, got)
	require.Contains(t, got, `"seq":2`)

	_, stderr, code = mneme(t, append([]string{"tail", "--last", "10001"}, alone...)...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "10000 over HTTP; NATS has no such limit: name its server with --nats-url")
	_, stderr, code = mneme(t, append([]string{"tail", "--from", "99"}, alone...)...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "beyond the end of the log")
	_, stderr, code = mneme(t, append([]string{"tail", "--over", "http", "--all-tenants"}, alone...)...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "one tenant")
	_, stderr, code = mneme(t, "tail", "--url", "http://127.0.0.1:1", "--token", "x")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no answer from http://127.0.0.1:1")
}

func TestATailOverHTTPContinuesAfterARestart(t *testing.T) {
	t.Parallel()
	flags := []string{"--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:" + mnemetest.FreePort(t)}
	start := func() *server {
		s := mnemetest.UpWith(t, flags...)
		return &server{s, t, ready{HTTP: s.HTTP, NATS: s.NATS, Data: s.Data}}
	}
	s := start()
	s.publish("c", userMessage("m1", "first"), userMessage("m2", "second"))
	f := s.tail("--over", "http", "--last", "1")
	require.Contains(t, f.next(), "second")
	require.Zero(t, s.stop())
	s = start()
	s.publish("c", userMessage("m3", "third"))
	require.Contains(t, f.next(), "third")
	require.Zero(t, f.interrupt())
}

func TestAScanOverHTTPSaysWhatItDoesNotRead(t *testing.T) {
	t.Parallel()
	s := up(t, t.TempDir())
	s.publish("c", userMessage("m1", "my key is ghp_"+strings.Repeat("a1B2", 9)))
	_, stderr, code := s.mneme("conversations", "delete", "c", "--yes")
	require.Zero(t, code, stderr)
	_, stderr, code = s.mneme("redact", "scan", "--over", "nats")
	require.Equal(t, exitDifference, code, "the log still holds it")
	require.NotContains(t, stderr, "deleted")
	out, stderr, code := s.mneme("redact", "scan", "--over", "http")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "no secrets found in 1 event")
	require.Contains(t, stderr, "deleted conversations were not read, although the log may still hold them")
}

func TestAnOlderServerThatKnowsNoEndIsNamed(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"title":"Unprocessable Entity","detail":"query.last: unknown query parameter; known are from, tenant","errors":[{"message":"unknown query parameter; known are from, tenant","location":"query.last"}]}`)
	}))
	t.Cleanup(s.Close)
	_, stderr, code := mneme(t, "tail", "--over", "http", "--url", s.URL)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "the server is of an older version than this program: update it (mneme version)")
}

func TestTailNamesAnImage(t *testing.T) {
	t.Parallel()
	image := "data:image/png;base64," + strings.Repeat("AZr3", 5_000)
	for want, payload := range map[string]events.Payload{
		"user: See [image/png, 15 kB].":          &events.MessageCreated{Role: "user", Content: "See " + image + "."},
		`→ send: {"url":"[image/png, 15 kB]"}`:   &events.ToolCalled{ToolName: "send", Arguments: []byte(`{"url":"` + image + `"}`)},
		`← result: {"url":"[image/png, 15 kB]"}`: &events.ToolReturned{Result: events.JSONResult([]byte(`{"url":"` + image + `"}`))},
	} {
		who, text, _ := gist(payload)
		require.Equal(t, want, who+": "+text)
	}
}

func TestTailSaysWhatEventsOfProjectsAndMemoriesAreAbout(t *testing.T) {
	t.Parallel()
	content := "use tabs"
	for want, payload := range map[string]events.Payload{
		"project: a → b":              &events.ProjectAliased{Project: "a", Into: "b"},
		"project: a on its own":       &events.ProjectAliased{Project: "a"},
		"noted: style.md: use tabs":   &events.MemoryChanged{Path: "style.md", Content: &content},
		"moved: a.md → b.md":          &events.MemoryChanged{Path: "a.md", MovedTo: "b.md"},
		"removed: a.md":               &events.MemoryChanged{Path: "a.md"},
		"indexed: main.go":            &events.CodeIndexed{Path: "main.go"},
		"removed: main.go":            &events.CodeIndexed{Path: "main.go", Removed: true},
		"shown: 9,000 characters why": &events.ContextServed{Chars: 9000, Query: "why"},
	} {
		who, text, _ := gist(payload)
		require.Equal(t, want, who+": "+text)
	}
}

func TestTheLogIsReadByAShortNameToo(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	for _, id := range []string{"claude_code:5a10-d91ec3b9", "codex:5a10-d91ec3ba", "gemini:5a10-d91ec3ba"} {
		_, stderr, code := s.mneme("conversations", "create", "--id", id)
		require.Zero(t, code, stderr)
	}
	require.Eventually(t, func() bool {
		return len(read[[]map[string]any](s, "conversations", "list")) == 3
	}, mnemetest.Patience, 50*time.Millisecond)
	for _, over := range []string{"nats", "http"} {
		out, stderr, code := s.mneme("tail", "--conversation", "d91ec3b9", "--until-end", "--over", over)
		require.Zero(t, code, stderr)
		require.Equal(t, 1, strings.Count(out, "claude_code:5a10-d91ec3b9"), "over %s: %s", over, out)
	}
	_, stderr, code := s.mneme("redact", "scan", "--conversation", "d91ec3ba")
	require.Equal(t, exitUsage, code)
	require.Equal(t, "mneme: several conversations are called d91ec3ba: gemini:5a10-d91ec3ba, codex:5a10-d91ec3ba; give the whole id\n", stderr)
}
