package llm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/summary"
)

func TestATitleIsOneLineThatNamesTheConversation(t *testing.T) {
	t.Parallel()
	e, w := setup(t)
	for answer, want := range map[string]string{
		"Fix the flaky test":                               "Fix the flaky test",
		" \"Sorry, wrong branch: a revert\".\n":            "Sorry, wrong branch: a revert",
		"**[ci] Fix the cache**":                           "[ci] Fix the cache",
		"<think>\nThey want a fix.\n</think>\n\nFix tests": "Fix tests",
		"I'm sorry, but I can't help with that.":           "",
		"I’m sorry, I can't assist with that request.":     "",
		"I cannot name this conversation.":                 "",
		"Sure! Here it is:\n\nFix the flaky test":          "",
		"```\nFix the flaky test\n```":                     "Fix the flaky test",
		`{"title": "Fix the flaky test"}`:                  "",
		"...":                                              "",
	} {
		e.Reply(llmtest.Chat(answer))
		title, _, err := w.Title(t.Context(), "The test fails in CI.")
		require.Equal(t, want, title, answer)
		if want == "" {
			require.ErrorIs(t, err, summary.ErrUnusable, answer)
		}
	}
}
