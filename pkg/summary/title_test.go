package summary_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/summary"
)

func TestTitleIsTheFirstSentenceOfTheUsersMessage(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Fix the login bug. It breaks on Safari.":                        "Fix the login bug",
		"How does authentication work? I need it today":                  "How does authentication work?",
		"\n\n# Plan\nImplement it":                                       "Plan",
		"<system-reminder>be brief\nplease</system-reminder>\nAdd tests": "Add tests",
		"e.g. this one is short":                                         "e.g. this one is short",
		"Implement the following plan:":                                  "Implement the following plan",
		"Refactor the whole persistence layer so that every store shares the same transaction handling": "Refactor the whole persistence layer so that every store…",
		"Implement the following plan:\n\n# Warm the caches first\n\n## Why":                            "Warm the caches first",
		"---\n***\n🙂": "",
		"":            "",
	} {
		require.Equal(t, want, summary.Title(message), "%q", message)
	}
}

func FuzzTitle(f *testing.F) {
	f.Add("Fix the login bug. It breaks on Safari.")
	f.Add("<a><b\n</a>")
	f.Fuzz(func(t *testing.T, message string) {
		require.LessOrEqual(t, utf8.RuneCountInString(summary.Title(message)), summary.MaxTitle)
	})
}
