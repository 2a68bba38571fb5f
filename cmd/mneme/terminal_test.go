package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"

	"mneme.dev/mneme/internal/mnemetest"
)

// person runs a command on a terminal and returns what a person sees there, including
// colors.
func (s *server) person(columns int, env []string, args ...string) string {
	s.t.Helper()
	path, err := mnemetest.Binary()
	require.NoError(s.t, err)
	ctx, cancel := context.WithTimeout(s.t.Context(), mnemetest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, "--url", s.ready.HTTP, "--nats-url", s.ready.NATS)...)
	cmd.Env = append(os.Environ(), append([]string{"TERM=xterm", "TZ=UTC"}, env...)...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(columns), Rows: 24})
	require.NoError(s.t, err)
	var out bytes.Buffer
	_, _ = io.Copy(&out, terminal) // ends with an error when the program ends
	_ = cmd.Wait()
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

// publish publishes events of one conversation.
func (s *server) publish(conversation string, data ...map[string]any) {
	s.t.Helper()
	var lines bytes.Buffer
	for _, d := range data {
		kind := d["type"]
		delete(d, "type")
		raw, err := json.Marshal(map[string]any{
			"specversion": "1.0", "type": kind, "source": "test", "id": conversation + d["id"].(string), "subject": conversation, "data": d, "time": d["time"],
		})
		require.NoError(s.t, err)
		delete(d, "id")
		lines.Write(append(raw, '\n'))
	}
	file := filepath.Join(s.t.TempDir(), "events.json")
	require.NoError(s.t, os.WriteFile(file, lines.Bytes(), 0o644))
	_, stderr, code := s.mneme("publish", file)
	require.Zero(s.t, code, stderr)
}

func userMessage(id, content string) map[string]any {
	return map[string]any{"type": "dev.mneme.message.created.v1", "id": id, "time": "2026-01-02T03:04:05Z", "message_id": id, "role": "user", "content": content}
}

const evil = "\x1b]0;owned\x07 \x1b[2J\u009b31m \u202eflipped"

func started(title string) map[string]any {
	return map[string]any{"type": "dev.mneme.conversation.started.v1", "id": "start", "time": "2026-01-02T03:04:05Z", "title": title}
}

// uncolored removes our own colors.
func uncolored(s string) string {
	for _, code := range []style{"0", bold, dim, red, green, yellow, cyan} {
		s = strings.ReplaceAll(s, "\x1b["+string(code)+"m", "")
	}
	return s
}

func TestATableFitsTheTerminalAndIsPlainInAPipe(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	s.publish("会話-one", started("日本語のタイトルはとても長いです、本当に"), userMessage("m1", strings.Repeat("long ", 300)))
	s.publish("two", started("A title of some length that goes on"), userMessage("m1", "x"))
	s.mneme("conversations", "show", "two", "--at-least", "4", "--messages", "0")

	out, _, code := s.mneme("conversations", "list", "--order", "activity")
	require.Zero(t, code)
	require.Equal(t, "CONVERSATION\tSTATUS\tTURNS\tMESSAGES\tTOOL CALLS\tCHARS\tUPDATED\tTITLE\n"+
		"two\tactive\t1\t1\t0\t1\t2026-01-02T03:04:05Z\tA title of some length that goes on\n"+
		"会話-one\tactive\t1\t1\t0\t1500\t2026-01-02T03:04:05Z\t日本語のタイトルはとても長いです、本当に\n", out)

	require.Equal(t, ""+
		"CONVERSATION  STATUS  TURNS  MESSAGES  TOOL CALLS  CHARS  UPDATED           TITLE\n"+
		"two           active      1         1           0      1  2026-01-02 03:04  A title of some length that goes on\n"+
		"会話-one      active      1         1           0  1,500  2026-01-02 03:04  日本語のタイトルはとても長いです、…\n",
		uncolored(s.person(112, nil, "conversations", "list")))
	require.Equal(t, ""+
		"CONVERSATION  TURNS  TITLE\n"+
		"two               1  A title of some le…\n"+
		"会話-one          1  日本語のタイトルは…\n",
		uncolored(s.person(40, nil, "conversations", "list")))

	for _, command := range [][]string{{"conversations", "list"}, {"conversations", "show", "two", "--messages", "0"}, {"status"}, {"tail", "--until-end"}, {"failed", "list"}, {"doctor"}, {"config"}} {
		for line := range strings.Lines(uncolored(s.person(40, nil, command...))) {
			for shown := range strings.SplitSeq(strings.TrimRight(line, "\n"), "\r\x1b[K") { // each in the place of the one before
				require.LessOrEqual(t, console.Width(shown), 40, "%v: %q", command, line)
			}
		}
	}
}

// The ids of an agent begin alike, and commands accept the end of an id as its name.
func TestAnIDThatIsCutKeepsItsEnd(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	s.publish("claude_code:8ef64fdd-df8c-41f2-ac32-d9471671f062", started("A title of some length that goes on"))
	s.mneme("conversations", "show", "1671f062", "--at-least", "1")
	require.Contains(t, uncolored(s.person(50, nil, "conversations", "list")), "-d9471671f062  ")
}

func TestColorsAreForTerminalsUnlessRequested(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	const heading = "\x1b[1mPROJECTION"
	require.Contains(t, s.person(80, nil, "status"), heading)
	require.NotContains(t, s.person(80, []string{"NO_COLOR=1"}, "status"), "\x1b[")
	require.NotContains(t, s.person(80, []string{"TERM=dumb"}, "status"), "\x1b[")
	require.NotContains(t, s.person(80, nil, "status", "--color", "never"), "\x1b[")
	require.Contains(t, s.person(80, []string{"NO_COLOR=1"}, "status", "--color", "always"), heading)
	piped, _, _ := s.mneme("status")
	require.NotContains(t, piped, "\x1b[")
	piped, _, _ = s.mneme("tail", "--until-end")
	require.NotContains(t, piped, "\x1b[")
}

func TestWhatAgentsPublishCannotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	s.publish("c"+evil, started("title "+evil), userMessage("m1", "text "+evil),
		map[string]any{"type": "dev.mneme.tool.called.v1", "id": "t1", "tool_call_id": "t1" + evil, "tool_name": "Read" + evil, "arguments": map[string]any{"file_path": "/src/" + evil}},
		map[string]any{"type": "dev.mneme.tool.returned.v1", "id": "r1", "tool_call_id": "t1" + evil, "result": "out " + evil, "success": true})
	id := "c" + evil
	for _, command := range [][]string{
		{"conversations", "list"}, {"conversations", "list", "--json"}, {"conversations", "show", id, "--at-least", "4", "--messages", "0"},
		{"conversations", "show", id}, {"messages", id}, {"messages", id, "--json"}, {"messages", id, "m1"}, {"turns", id}, {"steps", id}, {"tool-calls", id},
		{"tool-calls", id, "t1" + evil}, {"event", "2"}, {"files", id, "--at-least", "4"}, {"files", id, "--json"}, {"files", id, "--by-directory"}, {"context", id}, {"context", id, "--format", "json"},
		{"tail", "--until-end"}, {"tail", "--until-end", "--json"}, {"conversations", "show", "no" + evil},
		{"export", "turns", "--format", "csv"}, {"export", "calls", "--format", "jsonl"}, {"insights", "--by", "conversation", "--csv", "--at-least", "4"},
	} {
		out := uncolored(s.person(100, nil, command...))
		require.NotEmpty(t, out, command[0])
		for _, raw := range []string{"\x1b", "\x07", "\u009b", "\u202e"} {
			require.NotContains(t, out, raw, "%v: %q", command, out)
		}
	}
	// A script gets the text itself.
	list := read[[]httpapi.Conversation](s, "conversations", "list")
	require.Equal(t, "title "+evil, list[0].Title)
	context, _, _ := s.mneme("context", id) // which a model reads: it has no control characters at all
	require.Contains(t, context, "**User**: text ")
	require.NotContains(t, context, "\x1b")
}

func TestAClosedPipeEndsACommandQuietly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := up(t, filepath.Join(dir, "data"))
	file := filepath.Join(dir, "recording.jsonl")
	recording(t, file, 1, 400, 1)
	_, stderr, code := s.mneme("import", file, "--wait")
	require.Zero(t, code, stderr)
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	for _, command := range []string{"conversations list", "conversations list --json", "tail --last 1000", "tail --last 1000 --json", "--help"} {
		ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", path+" "+command+` --url "$1" --nats-url "$2" | head -n 1`, "sh", s.ready.HTTP, s.ready.NATS)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		require.NoError(t, err, "%s: %s", command, ctx.Err())
		require.NotEmpty(t, out, command)
		require.Empty(t, errs.String(), command)
	}
}

func TestATailEndsWhenItsReaderIsGone(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(path, "tail", "--url", s.ready.HTTP, "--nats-url", s.ready.NATS)
	cmd.Stdout = writer
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	require.NoError(t, reader.Close())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(mnemetest.Patience):
		_ = cmd.Process.Kill()
		t.Fatal("it waits for events that nobody reads")
	}
}

func TestDeleteNeedsConfirmation(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	s.publish("c", userMessage("m1", "x"))
	_, stderr, code := s.mneme("conversations", "delete", "c")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--yes")
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	ask := func(answer string) (said string, code int) {
		ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, "conversations", "delete", "c", "--url", s.ready.HTTP)
		terminal, err := pty.Start(cmd)
		require.NoError(t, err)
		asked := bufio.NewReader(terminal)
		said, err = asked.ReadString(']') // [y/N]: the question can be interrupted
		require.NoError(t, err)
		_, err = terminal.WriteString(answer)
		require.NoError(t, err)
		rest, _ := io.ReadAll(asked)
		_ = cmd.Wait()
		return said + string(rest), cmd.ProcessState.ExitCode()
	}
	s.mneme("context", "c", "--at-least", "1")
	for _, no := range []string{"n\n", "\n", "\x03"} {
		said, code := ask(no)
		require.Equal(t, exitFailed, code, said)
		require.Contains(t, said, "Delete conversation c? This cannot be undone.")
		require.Contains(t, said, "nothing was deleted")
	}
	said, code := ask("y\n")
	require.Zero(t, code, said)
	require.Contains(t, said, "deleted c at sequence 2")
}

func TestATableInAPipeChangesNoValue(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	values := []string{"plain id", "a\nb", "a\tb", "\u202eevil", "\u0085", "\x1b[2J", "\x7f", "\u2028", `"quoted"`, "<&>é😀", ""}
	rows := [][]any{}
	for _, v := range values {
		rows = append(rows, []any{v, "next"})
	}
	require.NoError(t, newTerminal(&out, io.Discard, "never").table([]column{{Name: "ID"}, {Name: "NEXT"}}, rows))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")[1:]
	require.Len(t, lines, len(values))
	for i, line := range lines {
		got, next, _ := strings.Cut(line, "\t")
		require.Equal(t, "next", next)
		require.Equal(t, got, console.OneLine(got), "nothing a terminal obeys")
		if strings.HasPrefix(got, `"`) {
			require.NoError(t, json.Unmarshal([]byte(got), &got))
		}
		require.Equal(t, values[i], got)
	}
}
