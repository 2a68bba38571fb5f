package plain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpellingsOfANameAreOneName(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"Claude Code", "claude-code", true}, {"claude_code", "Claude Code", true}, {" claude code ", "ClaudeCode", true},
		{"Über", "über", true}, {"codex", "codex", true}, {"", "", true}, {"--", "--", true},
		{"codex", "codex-2", false}, {"claude", "claude code", false}, {"", "codex", false}, {"--", "..", false}, {"-", "", false},
	} {
		require.Equal(t, c.same, SameName(c.a, c.b), "%q and %q", c.a, c.b)
		require.Equal(t, c.same, SameName(c.b, c.a), "%q and %q", c.b, c.a)
	}
}
