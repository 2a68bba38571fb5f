package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestAHookNeverFailsAndNeverComplains(t *testing.T) {
	t.Parallel()
	program, err := mnemetest.Binary()
	require.NoError(t, err)
	for _, env := range [][]string{{}, {"HOME=", "XDG_STATE_HOME="}, {"MNEME_URL=::"}, {"MNEME_COLOR=wrong"}, {"MNEME_TOKEN_FILE=/none"}} {
		for _, args := range [][]string{{"hook", "claude-code"}, {"hook"}, {"hook", "--none", "x", "y", "z"}} {
			command := exec.Command(program, args...)
			command.Env = append(append(os.Environ(), "MNEME_URL=http://127.0.0.1:1", "HOME="+t.TempDir(), "XDG_STATE_HOME="), env...)
			command.Stdin = strings.NewReader(`{"hook_event_name":"Stop","session_id":"s"}`)
			out, err := command.CombinedOutput()
			require.NoError(t, err, "%v %v", env, args)
			require.Empty(t, out, "%v %v", env, args)
		}
	}
}

func TestAHookThatIsOffDoesNothing(t *testing.T) {
	t.Parallel()
	program, err := mnemetest.Binary()
	require.NoError(t, err)
	home := t.TempDir()
	command := exec.Command(program, "hook", "claude-code")
	command.Env = append(os.Environ(), "MNEME_URL=http://127.0.0.1:1", "HOME="+home, "XDG_STATE_HOME=", "MNEME_HOOK=off")
	command.Stdin = strings.NewReader(`{"hook_event_name":"Stop","session_id":"s"}`)
	require.NoError(t, command.Run())
	require.NoDirExists(t, filepath.Join(home, ".local"))
}
