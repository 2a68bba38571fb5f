package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestARunningServerTakesMorePartitionsOver(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := up(t, data)
	whole, begun := data+"-whole.jsonl", data+"-begun.jsonl"
	recording(t, whole, 1, 6, 8)
	all, err := os.ReadFile(whole)
	require.NoError(t, err)
	var first []byte
	for line := range bytes.Lines(all) {
		var e struct{ Seq int }
		require.NoError(t, json.Unmarshal(line, &e))
		if e.Seq < 20 { // of its conversation
			first = append(first, line...)
		}
	}
	require.NoError(t, os.WriteFile(begun, first, 0o600))
	_, stderr, code := s.mneme("import", "--wait", begun)
	require.Zero(t, code, stderr)

	_, stderr, code = s.mneme("partitions", "4")
	require.NotZero(t, code, "without a terminal nobody can agree")
	require.Contains(t, stderr, "--yes")
	split := read[partitioned](s, "partitions", "4", "--yes")
	require.Equal(t, partitioned{Partitions: 4, Before: 1, Splits: []splitDone{{From: 1, UpTo: split.Splits[0].UpTo}}}, split)
	require.GreaterOrEqual(t, split.Splits[0].UpTo, uint64(6*20))
	require.Eventually(t, func() bool { // the server starts again with them
		out, _, code := s.mneme("status", "--json")
		return code == 0 && strings.Contains(out, `"partition":3`)
	}, mnemetest.Patience, 50*time.Millisecond)
	_, stderr, code = s.mneme("partitions", "6", "--yes")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "multiple")
	require.Equal(t, partitioned{Partitions: 4, Splits: split.Splits}, read[partitioned](s, "partitions"))

	_, stderr, code = s.mneme("import", "--wait", whole)
	require.Zero(t, code, stderr)
	out, stderr, code := s.mneme("verify")
	require.Zero(t, code, "%s%s", out, stderr)

	s.kill()
	s = up(t, data)
	out, stderr, code = s.mneme("verify")
	require.Zero(t, code, "%s%s", out, stderr)
	out, stderr, code = s.mneme("audit", "--action", "partitions")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "partitions:4")
}
