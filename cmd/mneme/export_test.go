package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/tabular"
)

func TestTablesAreExportedInAllFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := up(t, filepath.Join(dir, "data"))
	session(s, "c")
	s.publish("d", userMessage("m1", "=1+1"))
	_, stderr, code := s.mneme("context", "d", "--at-least", "8")
	require.Zero(t, code, stderr)
	export := func(args ...string) string {
		out, stderr, code := s.mneme(append([]string{"export"}, args...)...)
		require.Zero(t, code, "%v: %s", args, stderr)
		return out
	}

	file := filepath.Join(dir, "calls.parquet")
	export("calls", "-o", file)
	calls, err := parquet.ReadFile[tabular.Call](file)
	require.NoError(t, err)
	require.Len(t, calls, 1)
	require.Equal(t, "c", calls[0].Conversation)
	require.Equal(t, `{"pattern":"checkpoint"}`, calls[0].Arguments)
	require.True(t, *calls[0].Success)
	require.InDelta(t, 18, *calls[0].DurationMS, 0)
	require.EqualValues(t, 20*len("engine.go: checkpoint\n"), *calls[0].ResultChars)
	require.Equal(t, "2026-01-02T03:04:07Z", calls[0].Time.UTC().Format("2006-01-02T15:04:05Z07:00"))

	rows, err := csv.NewReader(strings.NewReader(export("turns", "--format", "csv"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 4)
	require.Equal(t, tabular.Columns[tabular.Turn](), rows[0])
	require.Equal(t, []string{"d", "'=1+1"}, []string{rows[1][0], rows[1][4]}, "the newest conversation first, no formula")

	named := filepath.Join(dir, "turns.csv")
	export("turns", "-o", named)
	text, err := os.ReadFile(named)
	require.NoError(t, err)
	require.Equal(t, export("turns", "--format", "csv"), string(text), "the name of the file says the format")

	other := filepath.Join(dir, "turns.txt")
	_, stderr, code = s.mneme("export", "turns", "-o", other)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--format")
	require.NoFileExists(t, other)
	export("turns", "--format", "csv", "-o", other)

	var conversation map[string]any
	require.NoError(t, json.Unmarshal([]byte(strings.Split(export("conversations", "--format", "jsonl"), "\n")[1]), &conversation))
	require.Equal(t, "A session", conversation["title"])
	out, stderr, code := s.mneme("export", "files", "--format", "jsonl", "--project", "none")
	require.Zero(t, code, stderr)
	require.Empty(t, out)
	require.Contains(t, stderr, "No conversation matches, so the table has no rows.\nPerhaps the name is wrong: ")
	require.Empty(t, export("conversations", "--format", "jsonl", "--tenant", "other"), "of this tenant alone")
	require.Empty(t, export("turns", "--format", "jsonl", "--since", "2099-01-01"))
}

func TestAFailedExportLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, _, code := mneme(t, "export", "calls", "-o", filepath.Join(dir, "x"), "--url", "http://127.0.0.1:1")
	require.Equal(t, exitFailed, code)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, _, code = mneme(t, "export", "calls", "--format", "xlsx")
	require.Equal(t, exitUsage, code)
}
