package settings

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAgentsWhoseTranscriptsAreReadAreAListWithCommas(t *testing.T) {
	t.Parallel()
	for list, agents := range map[string][]string{
		"":                    nil,
		"none":                nil,
		"codex":               {"codex"},
		"claude-code, codex ": {"claude-code", "codex"},
	} {
		s := &Capturing{Capture: list}
		s.Redact = "auto"
		require.NoError(t, s.Check(), list)
		require.Equal(t, agents, s.Agents(), list)
	}
	for _, list := range []string{"claude", "codex,", "codex,none", "codex pi"} {
		require.ErrorContains(t, (&Capturing{Capture: list}).Check(), "MNEME_CAPTURE: ", list)
	}
}
