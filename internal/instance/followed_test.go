package instance_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
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

func TestWhatTheLogHoldsIsNotPublishedAgainBeforeTheGraphKnowsIt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", dir)
	r := &running{T: t, folder: filepath.Join(dir, "projects", "-repo")}
	require.NoError(t, os.MkdirAll(r.folder, 0o700))
	const sessions = 200
	for n := range sessions {
		r.session(r.folder, fmt.Sprint("s", n), "From before.")
	}
	address := "127.0.0.1:" + mnemetest.FreePort(t)
	r.connect("", "--url", "http://"+address)
	c := instance.Config{
		Data: t.TempDir(), Listen: address, NATSListen: "127.0.0.1:0", Capture: []string{"claude-code"}, Redact: redact.Default(), Logger: settings.Logger(os.Stderr, "error", "text"),
		DuplicateWindow: 100 * time.Millisecond,
	}
	run := func() (state eventlog.State) {
		var err error
		r.Instance, err = instance.Start(t.Context(), c)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, hooks := r.get("/v1/hooks")
			return strings.Contains(hooks, fmt.Sprintf(`"imports":%d`, sessions)) && strings.Contains(hooks, `"history":0`)
		}, patience, 10*time.Millisecond)
		state, err = r.Log.State(mnemetest.Context(t))
		require.NoError(t, err)
		require.NoError(t, r.Close())
		return state
	}
	first := run()
	require.NotZero(t, first.Messages)
	require.NoError(t, os.RemoveAll(filepath.Join(c.Data, "models"))) // as if the log had been restored
	require.NoError(t, os.Remove(filepath.Join(c.Data, "transcripts.json")))
	require.Equal(t, first.Messages, run().Messages)
}
