package instance_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/connect"
)

// connect connects Claude Code, whose folder start sets.
func (r *running) connect(projectDir string, flags ...string) {
	r.Helper()
	hook, err := exec.LookPath("true") // it is never run
	require.NoError(r, err)
	program := filepath.Join(r.TempDir(), "mneme-hook")
	require.NoError(r, os.Symlink(hook, program))
	_, err = connect.Connect(r.Context(), connect.Options{Agent: connect.ClaudeCode, Mneme: "/usr/local/bin/mneme", Hook: program, ProjectDir: projectDir, Flags: flags})
	require.NoError(r, err)
}

func (r *running) has(session string) bool {
	r.Helper()
	status, _ := r.get("/v1/conversations/claude_code:" + session)
	return status == http.StatusOK
}

func TestSessionsOfAConnectedAgentAreReadWithoutItsHooks(t *testing.T) {
	r := start(t, "claude-code")
	r.session(r.folder, "before", "From before.")
	rang := r.session(r.folder, "rang", "Its hook calls.")
	r.connect(t.TempDir(), "--url", r.HTTPURL())
	r.hook("rang", rang) // the server looks at once whether the agent is connected
	require.Eventually(t, func() bool { return r.has("rang") }, patience, 10*time.Millisecond)
	port := r.HTTPURL()[strings.LastIndex(r.HTTPURL(), ":"):]
	for _, flags := range [][]string{nil, {"--url", "http://192.0.2.1" + port}, {"--url", r.HTTPURL(), "--tenant", "other"}} {
		r.connect("", flags...)
		r.hook("rang", rang)
		time.Sleep(100 * time.Millisecond)
		_, hooks := r.get("/v1/hooks")
		require.NotContains(t, hooks, "followed", "connected with %v", flags)
	}
	require.False(t, r.has("before"))

	r.connect("", "--url", "http://localhost"+port)
	r.hook("rang", rang)
	require.Eventually(t, func() bool { return r.has("before") }, patience, 10*time.Millisecond)
	r.session(r.folder, "after", "No hook calls.")
	require.Eventually(t, func() bool { return r.has("after") }, patience, 10*time.Millisecond)
	_, hooks := r.get("/v1/hooks")
	require.Contains(t, hooks, `"followed":[{"agent":"claude-code","folder":"`+filepath.Dir(r.folder)+`","files":`)
	require.Contains(t, hooks, `"history":0`)
}
