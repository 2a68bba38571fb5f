package connect

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHooksThatCodexDoesNotTrustAreNamed(t *testing.T) {
	home, options := machine(t)
	hooks, config := filepath.Join(home, ".codex", "hooks.json"), filepath.Join(home, ".codex", "config.toml")
	put(t, hooks, `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}`)
	_, err := Connect(t.Context(), options(Codex))
	require.NoError(t, err)
	connected := get(t, config)
	trust := func(places ...string) (s State) {
		text := connected
		for _, place := range places {
			text += fmt.Sprintf("\n[hooks.state.%s]\ntrusted_hash = \"sha256:x\"\n", quoted(hooks+":"+place))
		}
		put(t, config, text)
		s = inspected(t, Codex, "")
		require.True(t, s.Connected)
		return s
	}
	now := time.Now()

	s := trust()
	require.ElementsMatch(t, []string{"SessionStart", "UserPromptSubmit", "Stop"}, s.Untrusted)
	s.Heard(nil)
	require.Contains(t, s.Missing[0].String(), "skips them: type /hooks in codex")
	s = trust()
	s.Heard(&now)
	require.Empty(t, s.Missing, "they run all the same, so nobody is asked for trust")

	s = trust("session_start:0:0", "user_prompt_submit:0:0", "stop:0:0") // of Stop, the hook of another
	require.Equal(t, []string{"Stop"}, s.Untrusted)
	s.Heard(&now)
	require.Contains(t, s.Missing[0].What, "the hooks of Stop")

	s = trust("session_start:0:0", "user_prompt_submit:0:0", "stop:1:0")
	require.Empty(t, s.Untrusted)
	s.Heard(&now)
	require.Empty(t, s.Missing)
	s.Heard(nil)
	require.Contains(t, s.Missing[0].String(), "no hook has reached the server")
}
