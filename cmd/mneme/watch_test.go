package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
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

func TestWatchOnceEndsIfTheTokenMayNotWrite(t *testing.T) {
	t.Parallel()
	s, reading := readable(t)
	home, env := agentHome(t)
	session := filepath.Join(home, ".claude", "projects", "-src", "0b6c8b1e-0000-4000-8000-000000000001.jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(session), 0o700))
	require.NoError(t, os.WriteFile(session, []byte(`{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-01-01T00:00:00Z","cwd":"/src","message":{"role":"user","content":"hello"}}`+"\n"), 0o600))
	require.NoError(t, os.Chtimes(session, time.Time{}, time.Now().Add(-time.Hour)))
	out, stderr, code := mnemeWith(t, env, "watch", "--agent", "claude-code", "--once", "--url", s.ready.HTTP, "--token", reading)
	require.Equal(t, exitFailed, code, stderr)
	require.Equal(t, "published 0 events\n", out)
	require.Contains(t, stderr, "needs the role write, and the token has read")
	require.NotContains(t, stderr, "trying again")
}

func TestWatchIndexesChangedFiles(t *testing.T) {
	t.Parallel()
	s := up(t, t.TempDir())
	root := checkout(t, map[string]string{"upload.go": "package a\n\nfunc sendPart() {\n}\n", "old.go": "package a\n\nfunc oldPart() {\n}\n"})
	_, env := agentHome(t)
	args := []string{"watch", "--index", root, "--url", s.ready.HTTP}
	out, stderr, code := mnemeWith(t, env, append(args, "--once")...)
	require.Zero(t, code, stderr)
	require.Equal(t, "published 0 events, indexed 2 changed files\n", out)

	path, err := mnemetest.Binary()
	require.NoError(t, err)
	watch := exec.Command(path, args...)
	watch.Env = append(os.Environ(), env...)
	watch.Stderr = os.Stderr
	require.NoError(t, watch.Start())
	t.Cleanup(func() { _ = watch.Process.Kill() })
	require.NoError(t, os.WriteFile(filepath.Join(root, "upload.go"), []byte("package a\n\nfunc sendPartAgain() {\n}\n"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(root, "old.go")))
	require.Eventually(t, func() bool {
		out, _, code := s.mneme("code", "search", "sendPartAgain oldPart", "--project", root, "--json")
		var found foundCode
		if code != 0 || json.Unmarshal([]byte(out), &found) != nil {
			return false // nothing of the index is applied yet
		}
		return len(found.Scopes) > 0 && found.Scopes[0].Name == "sendPartAgain" && !slices.ContainsFunc(found.Scopes, func(f httpapi.FoundScope) bool { return f.Path == "old.go" })
	}, mnemetest.Patience, 200*time.Millisecond)
	require.NoError(t, watch.Process.Signal(os.Interrupt))
	require.NoError(t, watch.Wait())

	_, stderr, code = mnemeWith(t, env, "watch", "--index", filepath.Join(root, "missing"), "--once", "--url", s.ready.HTTP)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "no such file")
}
