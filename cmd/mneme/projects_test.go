package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnUnknownRepositorySaysHowItsWorktreeIsJoinedToIt(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	repository, worktree := filepath.Join(dir, "cli"), filepath.Join(dir, "fix")
	require.NoError(t, os.MkdirAll(filepath.Join(repository, ".git", "worktrees", "fix"), 0o755))
	require.NoError(t, os.Mkdir(worktree, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(worktree, ".git"), []byte("gitdir: "+repository+"/.git/worktrees/fix\n"), 0o600))
	t.Chdir(worktree)
	require.Contains(t, nothingOf(repository), "mneme projects alias "+worktree+" "+repository)
	require.NotContains(t, nothingOf("nope"), "alias")
	t.Chdir(repository)
	require.NotContains(t, nothingOf(repository), "alias")
}
