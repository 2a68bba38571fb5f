package projects

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheShortNameOfAConversationIsItsOwnShortName(t *testing.T) {
	for id, want := range map[string]string{
		"claude_code:58e50d6c-9896-4a6c-bb91-0d1e111d2a6b":     "111d2a6b",
		"opencode:ses_0a1b2c3d4effeAbCdEfGhIjKl":               "EfGhIjKl",
		"kimi_code:session_5d1f0c7a-6f0f3a1b2c4d:agent-1":      "3a1b2c4d:agent-1",
		"claude_code:58e50d6c-0d1e111d2a6b:agent-a1b2c3d4e5f6": "c3d4e5f6",
		"goose:20250724_1":  "250724_1",
		"chat-1":            "chat-1",
		"pi:1":              "pi:1",
		"notes:shop":        "notes:shop",
		"a/folder/of/notes": "a/folder/of/notes",
		"":                  "",
		":":                 ":",
		"swe_agent:a run with a long name/django__django-1234567890": "34567890",
	} {
		require.Equal(t, want, ShortID(id), id)
		require.Equal(t, want, ShortID(want), id)
	}
	for name, want := range map[string]bool{"111d2a6b": true, "3a1b2c4d:agent-1": true, "notes:shop": false, "a/folder/of/notes": false, "chat-1": false, "pi:1": false, "": false} {
		require.Equal(t, want, IsShort(name), name)
	}
	for id, want := range map[string]bool{
		"claude_code:58e50d6c-9896-4a6c-bb91-0d1e111d2a6b":         true,
		"58e50d6c-9896-4a6c-bb91-0d1e111d2a6b":                     true,
		"claude_code:58e50d6c-9896-4a6c-bb91-0d1e111d2a6b:agent-1": false,
		"claude_code:x58e50d6c-9896-4a6c-bb91-0d1e111d2a6b":        false,
	} {
		require.Equal(t, want, Names("58e50d6c-9896-4a6c-bb91-0d1e111d2a6b", id), id)
	}
}
