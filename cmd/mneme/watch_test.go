package main

import (
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
)

func TestMistakesInWatchSayWhatToDo(t *testing.T) {
	t.Parallel()
	_, env := agentHome(t)
	_, stderr, code := mnemeWith(t, env, "watch", "--once")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "mneme connect")
	_, stderr, code = mnemeWith(t, env, "watch", "--agent", "emacs")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "claude-code")
	state := filepath.Join(t.TempDir(), "watch.json")
	other := flock.New(state + ".lock")
	alone, err := other.TryLock()
	require.NoError(t, err)
	require.True(t, alone)
	t.Cleanup(func() { _ = other.Unlock() })
	_, stderr, code = mnemeWith(t, env, "watch", "--agent", "claude-code", "--once", "--state", state)
	require.NotZero(t, code)
	require.Contains(t, stderr, "another mneme watch uses "+state+": end it")
}
