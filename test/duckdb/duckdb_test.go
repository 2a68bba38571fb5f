// Package duckdb_test reads exported tables with DuckDB, which knows nothing of mneme.
package duckdb_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

// hard is a text that formats must quote.
const hard = "read, \"quote\" and = end\nthen test ü"

func TestDuckDBReadsExportedTables(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../../.cache/duckdb/bin/python")
	require.NoError(t, err)
	if _, err := exec.LookPath(python); err != nil {
		const missing = "NOT RUN: make .cache/duckdb/installed fetches DuckDB, and needs Python"
		if os.Getenv("MNEME_TEST_DUCKDB") == "required" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	script, err := filepath.Abs("query.py")
	require.NoError(t, err)

	dir := t.TempDir()
	s := mnemetest.UpWith(t, "--data", filepath.Join(dir, "data"))
	run := func(args ...string) {
		stdout, stderr, code := s.Run(args...)
		require.Zero(t, code, "%v: %s%s", args, stdout, stderr)
	}
	publish(t, s.HTTP)
	run("insights", "--at-least", "6")
	for _, table := range []string{"conversations", "turns", "calls", "files"} {
		run("export", table, "-o", filepath.Join(dir, table+".parquet"))
		run("export", table, "-o", filepath.Join(dir, table+".csv"))
		run("export", table, "-o", filepath.Join(dir, table+".jsonl"))
	}

	for _, c := range []struct{ statement, want string }{
		{"SELECT conversation_id, turns, calls FROM 'conversations.parquet'", `[["c", 1, 2]]`},
		{"SELECT tool, success, duration_ms, result_chars FROM 'calls.parquet' ORDER BY time", `[["Read", true, 12.5, 9], ["Bash", false, null, 4]]`},
		{"SELECT typeof(time), typeof(success), typeof(duration_ms), typeof(turn) FROM 'calls.parquet' LIMIT 1", `[["TIMESTAMP WITH TIME ZONE", "BOOLEAN", "DOUBLE", "BIGINT"]]`},
		{"SELECT user_message FROM 'turns.parquet'", `[["read, \"quote\" and = end\nthen test \u00fc"]]`},
		{"SELECT user_message FROM 'turns.csv'", `[["read, \"quote\" and = end\nthen test \u00fc"]]`},
		{"SELECT user_message FROM 'turns.jsonl'", `[["read, \"quote\" and = end\nthen test \u00fc"]]`},
		{"SELECT path, kind FROM 'files.parquet'", `[["/w/a.go", "read"]]`},
		{"SELECT count(*) FROM 'calls.parquet' p JOIN 'calls.csv' USING (tool_call_id) JOIN 'calls.jsonl' USING (tool_call_id)", `[[2]]`},
	} {
		require.JSONEq(t, c.want, query(t, python, script, dir, c.statement), c.statement)
	}
}

// publish publishes a small session.
func publish(t *testing.T, url string) {
	t.Helper()
	var batch []json.RawMessage
	for i, p := range []events.Payload{
		&events.ConversationStarted{Title: "A session", Cwd: "/w"},
		&events.MessageCreated{MessageID: "u", Role: "user", Content: hard},
		&events.ToolCalled{ToolCallID: "k1", ToolName: "Read", Arguments: json.RawMessage(`{"file_path":"/w/a.go"}`)},
		&events.ToolReturned{ToolCallID: "k1", Result: events.TextResult("package a"), Success: new(true), DurationMS: new(12.5)},
		&events.ToolCalled{ToolCallID: "k2", ToolName: "Bash", Arguments: json.RawMessage(`{"command":"go test"}`)},
		&events.ToolReturned{ToolCallID: "k2", Result: events.TextResult("FAIL"), Success: new(false)},
	} {
		e, err := events.New("c", "duckdb", strconv.Itoa(i), p)
		require.NoError(t, err)
		raw, err := events.EncodeStructured(e)
		require.NoError(t, err)
		batch = append(batch, raw)
	}
	body, err := json.Marshal(batch)
	require.NoError(t, err)
	response, err := http.Post(url+"/v1/events", events.ContentTypeBatch, bytes.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Less(t, response.StatusCode, 300, response.Status)
}

// query runs a statement in a folder and returns its rows as JSON.
func query(t *testing.T, python, script, dir, statement string) string {
	t.Helper()
	statements, err := json.Marshal([]string{statement})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, script)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(statements)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", statement, &stderr)
	return string(out)
}
