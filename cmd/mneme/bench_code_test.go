package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/bench"
)

// codeSource is a file with two functions, as a tool shows it.
const codeSource = `package upload

// RetryUploads sends the failed parts of an upload again.
func RetryUploads(parts []string) error {
	return sendAll(parts, "failed parts only")
}

// PaintHeader draws the picture at the top of a page.
func PaintHeader(page string) error {
	return drawPicture(page, "top of the page")
}
`

// codeRecording is a session that reads the file, and a later one of another checkout that changes a function of it, and then
// reads the file.
func codeRecording(t *testing.T) string {
	var lines []string
	line := func(session, kind string, seq int, minute int, more map[string]any) {
		row := map[string]any{"kind": kind, "conversation_id": session, "id": fmt.Sprintf("%s/%d", session, seq), "seq": seq, "time": fmt.Sprintf("2026-01-02T10:%02d:00Z", minute)}
		maps.Copy(row, more)
		raw, err := json.Marshal(row)
		require.NoError(t, err)
		lines = append(lines, string(raw))
	}
	type o = map[string]any
	numbered := ""
	for i, text := range strings.Split(strings.TrimSuffix(codeSource, "\n"), "\n") {
		numbered += fmt.Sprintf("%6d→%s\n", i+1, text)
	}
	session := func(id, cwd string, minute int, ask string, calls ...o) {
		line(id, "conversation", 0, minute, o{"id": id, "meta": o{"cwd": cwd}})
		line(id, "message", 1, minute, o{"role": "user", "content": ask})
		line(id, "message", 2, minute+1, o{"role": "assistant", "content": "I look."})
		for i, call := range calls {
			line(id, "tool_call", 3+2*i, minute+1, o{"parent_ids": []string{id + "/2"}, "tool_name": call["tool"], "arguments": call["arguments"]})
			line(id, "tool_result", 4+2*i, minute+2, o{"parent_ids": []string{fmt.Sprintf("%s/%d", id, 3+2*i)}, "result": call["result"], "success": true})
		}
	}
	read := func(cwd string) o {
		return o{"tool": "Read", "arguments": o{"file_path": cwd + "/upload/retry.go"}, "result": numbered}
	}
	session("a:1", "/w/one", 1, "Where is the header painted?", read("/w/one"))
	session("a:2", "/w/two", 30, "Uploads are not sent again: which function sends the failed parts of an upload?",
		o{"tool": "Edit", "arguments": o{"file_path": "/w/two/upload/retry.go", "old_string": `return sendAll(parts, "failed parts only")`, "new_string": "return nil"}, "result": "ok"},
		read("/w/two"))
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

func TestBenchCodeComparesContextsWithAnIndexOfEarlierSessionsAndWithout(t *testing.T) {
	path := codeRecording(t)
	measured := func(args ...string) (r bench.Code) {
		out, stderr, code := mneme(t, append([]string{"bench", "code", "--json", "--events", path}, args...)...)
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		return r
	}
	r := measured("--one-repository")
	require.Equal(t, []int{2, 1}, []int{r.Sessions, r.Indexed})
	require.Equal(t, []float64{1, 2}, []float64{r.Files, r.Scopes})
	require.Equal(t, 2, r.Changed.Points, "after the first message, and at 50 %")
	require.Equal(t, 1.0, r.Changed.Functions)
	require.Equal(t, []float64{1, 0}, []float64{r.Changed.Known, r.Changed.Seen})
	require.Equal(t, []float64{1, 0}, []float64{r.Changed.With.Section, r.Changed.Without.Section})
	require.Equal(t, 2, r.At["0"].Points)
	require.Equal(t, 0.5, r.At["0"].Known, "the first session began without an index: nothing that came later is in it")

	own := measured()
	require.Equal(t, []int{2, 0}, []int{own.Sessions, own.Indexed}, "another checkout shows nothing by default")
	require.Equal(t, own.All.Without, own.All.With)
}
