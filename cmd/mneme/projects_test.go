package main

import (
	"os"
	"path/filepath"
	"strings"
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
	require.Contains(t, nothingOf(repository), "mneme projects alias "+worktree+" "+repository+" --force")
	require.NotContains(t, nothingOf("nope"), "alias")
	t.Chdir(repository)
	require.NotContains(t, nothingOf(repository), "alias")
}

// git worktree add --relative-paths, or the setting worktree.useRelativePaths.
func TestAWorktreeMayNameItsRepositoryRelatively(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	below := filepath.Join(dir, "fix", "pkg")
	require.NoError(t, os.MkdirAll(below, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fix", ".git"), []byte("gitdir: ../cli/.git/worktrees/fix\n"), 0o600))
	require.Equal(t, filepath.Join(dir, "cli"), repositoryOf(below))
}

func TestAnAliasOfAnUnknownProjectIsRefusedUnlessForced(t *testing.T) {
	t.Parallel()
	s := up(t, t.TempDir())
	for _, name := range []string{"old", "shop"} {
		begin := started(name)
		begin["project"] = name
		s.publish(name, begin)
	}
	alias := func(args ...string) (stderr string, code int) {
		_, stderr, code = s.mneme(append([]string{"projects", "alias"}, args...)...)
		return stderr, code
	}
	for _, args := range [][]string{{"odl", "shop"}, {"old", "shpo"}} {
		stderr, code := alias(args...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, strings.ReplaceAll(stderr, "\n", " "), "so nothing was changed")
	}
	for _, args := range [][]string{{"odl", "shop", "--force"}, {"old", "shop"}, {"old", "shop"}} {
		stderr, code := alias(args...)
		require.Zero(t, code, stderr)
	}
}
