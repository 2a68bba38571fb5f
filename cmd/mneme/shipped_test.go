package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestALogThatCameWithARepositoryIsServedOnlyIfItIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT RUN: git is not installed, so whether it tracks a log was not tested")
	}
	repository := t.TempDir()
	git := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repository}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	git("init", "--quiet")
	data := filepath.Join(repository, ".mneme")
	require.False(t, shipped(t.Context(), data), "there is none")
	require.NoError(t, os.MkdirAll(filepath.Join(data, "nats"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "nats", "1.blk"), []byte("a log"), 0o600))
	require.False(t, shipped(t.Context(), data), "git does not track it")
	git("add", ".mneme")
	require.True(t, shipped(t.Context(), data))

	path, err := mnemetest.Binary()
	require.NoError(t, err)
	up := exec.CommandContext(t.Context(), path, "up", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	up.Dir = repository
	out, err := up.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, exitUsage, up.ProcessState.ExitCode(), "%s", out)
	require.Contains(t, string(out), "--data .mneme")
}
