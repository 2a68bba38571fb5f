package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestWhatIsRemovedForGoodIsNamedByItsWholeID(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	for _, id := range []string{"claude-code:0001-d91ec3b9", "codex:2/twice123", "codex:3/twice123"} {
		s.publish(id, userMessage("m", "hello"))
		require.Eventually(t, func() bool { _, _, code := s.mneme("conversations", "show", id); return code == exitDone }, mnemetest.Patience, 20*time.Millisecond)
	}
	for _, command := range [][]string{{"conversations", "delete"}, {"erase", "conversation"}} {
		_, stderr, code := s.mneme(append(command, "d91ec3b9", "--yes")...)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, "d91ec3b9 means conversation claude-code:0001-d91ec3b9:")
		_, stderr, code = s.mneme(append(command, "twice123", "--yes")...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "codex:2/twice123")
		_, stderr, code = s.mneme(append(command, "nothing9", "--yes")...)
		require.Equal(t, exitFailed, code)
		require.NotContains(t, stderr, "short name")
	}
	_, stderr, code := s.mneme("conversations", "delete", "codex:3/twice123", "--yes")
	require.Zero(t, code, stderr)
	require.Eventually(t, func() bool {
		_, _, code := s.mneme("conversations", "show", "codex:3/twice123")
		return code == exitFailed
	}, mnemetest.Patience, 20*time.Millisecond)
}
