package openclaw

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFoldersAreThoseThatOpenClawUses(t *testing.T) {
	user := t.TempDir()
	for _, c := range []struct{ home, state, want string }{
		{"", "", "USER/.openclaw"},
		{"USER/claw", "", "USER/claw/.openclaw"},
		{"~/claw", "", "USER/claw/.openclaw"},
		{"~", " ", "USER/.openclaw"},
		{"", "~/state", "USER/state"},
		{"USER/claw", "~/state", "USER/claw/state"},
		{"USER/claw", "USER/state", "USER/state"},
		{"", "USER/~state", "USER/~state"},
	} {
		at := func(path string) string {
			return strings.Replace(path, "USER", user, 1)
		}
		t.Setenv("HOME", user)
		t.Setenv("USERPROFILE", user)
		t.Setenv("OPENCLAW_HOME", at(c.home))
		t.Setenv("OPENCLAW_STATE_DIR", at(c.state))
		dir, err := StateDir()
		require.NoError(t, err)
		require.Equal(t, at(c.want), dir, c)
	}
}

func TestWithoutAHomeOnlyPathsThatNeedNoneAreFound(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	t.Setenv("OPENCLAW_HOME", "")
	t.Setenv("OPENCLAW_STATE_DIR", "")
	_, err := StateDir()
	require.Error(t, err)
	state := t.TempDir()
	t.Setenv("OPENCLAW_STATE_DIR", state)
	dir, err := StateDir()
	require.NoError(t, err)
	require.Equal(t, state, dir)
}
