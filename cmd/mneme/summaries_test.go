package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestSummarizeReadAndResummarize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.jsonl")
	recording(t, file, 1, 1, 12)
	program := mnemetest.UpWith(t, "--data", filepath.Join(dir, "data"), "--summary-writer", "extractive")
	s := &server{program, t, ready{HTTP: program.HTTP, NATS: program.NATS, Data: program.Data}}
	_, stderr, code := s.mneme("import", file, "--wait")
	require.Zero(t, code, stderr)

	const id = "testagent:0"
	require.Eventually(t, func() bool { // the summarizer has only just started
		_, stderr, code = s.mneme("summarize", id)
		return code == 0
	}, mnemetest.Patience, 20*time.Millisecond, "%s", stderr)
	out, stderr, code := s.mneme("summarize", id)
	require.Zero(t, code, stderr)
	require.Empty(t, out)
	require.Contains(t, stderr, "nothing to do")

	var list []httpapi.Summary
	require.Eventually(t, func() bool { // the graph may apply it a moment later
		list = read[[]httpapi.Summary](s, "summaries", id, "--order", "oldest")
		return len(list) > 0
	}, mnemetest.Patience, 20*time.Millisecond)
	require.Equal(t, 1, list[0].Level)
	out, stderr, code = s.mneme("summaries", id, list[0].SummaryID)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "extractive")
	require.Contains(t, out, "on the frontier")
	out, stderr, code = s.mneme("context", id, "--strategy", "levels", "--condense", "clear", "--max-chars", "6000")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "## Story So Far")

	out, stderr, code = s.mneme("resummarize", id, "--level", "1")
	require.Zero(t, code, stderr)
	require.Contains(t, strings.Fields(out), list[0].SummaryID+"-r2")
	for _, args := range [][]string{{"resummarize", id, "--fallbacks"}, {"condense", id}} {
		_, stderr, code = s.mneme(args...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "no model is configured; set MNEME_SUMMARY_WRITER")
		require.Equal(t, args[0] == "condense", strings.Contains(stderr, "MNEME_CONDENSE_LLM_MODEL"), stderr)
	}
	_, stderr, code = s.mneme("summarize", "nobody")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "not found")
}
