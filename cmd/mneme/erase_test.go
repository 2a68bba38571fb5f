package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestEraseRemovesAConversationAndProvesIt(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	data, report := filepath.Join(dir, "data"), filepath.Join(dir, "report.json")
	s := mnemetest.Up(t, data)
	run := func(want int, args ...string) string {
		t.Helper()
		stdout, stderr, code := s.Run(args...)
		require.Equal(t, want, code, "%s %s", stdout, stderr)
		return stdout
	}
	run(0, "conversations", "create", "--id", "gone", "--title", "a zanzibar canary")
	run(0, "conversations", "create", "--id", "stays", "--title", "something else")
	run(3, "erase", "--prove", "zanzibar", "--path", data)
	run(2, "erase", "conversation", "gone") // there is no terminal to ask
	run(2, "erase")
	run(2, "erase", "everything", "gone", "--yes")
	run(2, "erase", "conversation", "gone", "--before", "2026-01-01", "--yes")
	run(1, "erase", "conversation", "unknown", "--yes")
	var dry httpapi.Erasure
	require.NoError(t, json.Unmarshal([]byte(run(0, "erase", "conversation", "gone", "--dry-run", "--json")), &dry))
	require.Equal(t, []httpapi.ErasedConversation{{ID: "gone", Events: 1}}, dry.Conversations)
	run(3, "erase", "--prove", "zanzibar", "--path", data) // a dry run changes nothing

	run(0, "erase", "conversation", "gone", "--yes", "--out", report)
	run(0, "erase", "--prove", "zanzibar", "--path", data)
	run(3, "erase", "--prove", "something else", "--path", data)
	raw, err := os.ReadFile(report)
	require.NoError(t, err)
	var r erasure.Report
	require.NoError(t, json.Unmarshal(raw, &r))
	require.True(t, r.Sealed(), "the hash is that of the file's report")
	require.EqualValues(t, 1, r.Events["conversation_started"])
	run(0, "verify")
	run(1, "conversations", "show", "gone")
}

func TestEraseChecksItsArgumentsBeforeItErases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mnemetest.Up(t, filepath.Join(dir, "data"))
	_, stderr, code := s.Run("conversations", "create", "--id", "kept")
	require.Zero(t, code, stderr)
	_, stderr, code = s.Run("erase", "conversation", "kept", "--yes", "--out", filepath.Join(dir, "missing", "report.json"))
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "nothing was erased")
	_, stderr, code = s.Run("conversations", "show", "kept")
	require.Zero(t, code, stderr)

	report := filepath.Join(dir, "report.json")
	_, _, code = s.Run("erase", "conversation", "kept", "--out", report) // there is no terminal to ask
	require.Equal(t, exitUsage, code)
	require.NoFileExists(t, report)

	for _, flags := range [][]string{{"--yes"}, {"--dry-run"}, {"--dry-run", "--json"}} {
		out, stderr, code := s.Run(append([]string{"erase", "conversation", "unknown"}, flags...)...)
		require.Equal(t, exitFailed, code, flags)
		require.Contains(t, stderr, "conversation unknown of tenant default: there is nothing to erase", flags)
		require.Equal(t, slices.Contains(flags, "--json"), out != "", out)
	}
	for _, flags := range [][]string{{"--yes"}, {"--yes", "--json"}, {"--dry-run", "--json"}} { // as a nightly job does
		out, stderr, code := s.Run(append([]string{"erase", "--tenant", "default", "--before", "2001-01-01"}, flags...)...)
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, "there is nothing to erase")
		require.Equal(t, slices.Contains(flags, "--json"), json.Valid([]byte(out)), out)
	}
}

// Whatever reads the log during an erasure may have read events that the erasure then removes. None of these readers
// may write what it has read to a place where the erasure has already looked.
func TestAnErasureLeavesNothingWhileReadModelsAreRebuiltAndSessionsImportedAndSummarised(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	data, gone, more := filepath.Join(dir, "data"), filepath.Join(dir, "gone.jsonl"), filepath.Join(dir, "more.jsonl")
	rewrite := func(path string, pairs ...string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600))
	}
	recording(t, gone, 1, 1, 60)
	rewrite(gone, "checkpoint", "zanzibar")
	recording(t, more, 2, 8, 60)
	rewrite(more, "testagent:", "other:")
	s := mnemetest.Up(t, data)
	run := func(want int, args ...string) string {
		t.Helper()
		stdout, stderr, code := s.Run(args...)
		require.Equal(t, want, code, "%v: %s %s", args, stdout, stderr)
		return stdout
	}
	run(0, "import", gone, "--wait")
	run(3, "erase", "--prove", "zanzibar", "--path", data)
	run(0, "conversations", "branch", "testagent:0", "u0-5", "--id", "branch")

	var meanwhile sync.WaitGroup
	for _, args := range [][]string{{"import", more, "--wait"}, {"rebuild", "graph"}, {"rebuild", "summaries"}, {"rebuild", "insight"}} {
		meanwhile.Go(func() {
			stdout, stderr, code := s.Run(args...)
			assert.Zero(t, code, "%v: %s %s", args, stdout, stderr)
		})
	}
	run(0, "erase", "conversation", "testagent:0", "--yes")
	meanwhile.Wait()
	run(0, "erase", "--prove", "zanzibar", "--path", data)
	run(0, "verify")
	require.NotContains(t, run(0, "search", "zanzibar"), "testagent:0")
	run(0, "conversations", "show", "other:0")
}

// On Neo4j the same long text is true of every read model.
func TestWhatAnErasureLeavesIsSaidOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"graph, files: kept in free records", "embeddings: no answer"}, leftIn([]erasure.StoreReport{
		{Projection: "graph", Left: "kept in free records"}, {Projection: "graph", Generation: 2, Left: "kept in free records"},
		{Projection: "insight"}, {Projection: "embeddings", Left: "no answer"}, {Projection: "files", Left: "kept in free records"},
	}))
}
