package project

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestOnlyWhatAUserWroteIsAsked(t *testing.T) {
	for want, list := range map[bool][]events.MessageCreated{
		true: {{Role: "user", Content: "fix uploadQueue.go"}, {Role: "user", Content: "  <b>this</b> is not bold"}},
		false: {
			{Role: "assistant", Content: "fix uploadQueue.go"},
			{Role: "user", Content: "fix uploadQueue.go", Origin: "meta"},
			{Role: "user", Content: " \n"},
			{Role: "user", Content: "[Request interrupted by user for tool use]"},
			{Role: "user", Content: "<command-name>/exit</command-name>"},
			{Role: "user", Content: "<local-command-stdout>Bye!</local-command-stdout>"},
		},
	} {
		for _, m := range list {
			require.Equal(t, want, Asks(&m), "%s %q", m.Role, m.Content)
		}
	}
}
