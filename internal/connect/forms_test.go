package connect

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachAgentGetsTheFormThatItReads(t *testing.T) {
	for agent, want := range map[string]map[string]string{
		Droid: {
			".factory/settings.json": `{
  "hooks": {
    "SessionStart": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "HOOK droid",
            "timeout": 5
          }
        ]
      }
    ],
    "UserPromptSubmit": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "HOOK droid",
            "timeout": 3
          }
        ]
      }
    ],
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "HOOK droid",
            "timeout": 10
          }
        ]
      }
    ],
    "SessionEnd": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "HOOK droid",
            "timeout": 5
          }
        ]
      }
    ]
  }
}
`,
			".factory/mcp.json": `{
  "mcpServers": {
    "mneme": {
      "type": "stdio",
      "command": "MNEME",
      "args": [
        "mcp"
      ]
    }
  }
}
`,
		},
		Cursor: {
			".cursor/hooks.json": `{
  "version": 1,
  "hooks": {
    "sessionStart": [
      {
        "command": "HOOK cursor",
        "timeout": 5
      }
    ],
    "beforeSubmitPrompt": [
      {
        "command": "HOOK cursor",
        "timeout": 3
      }
    ]
  }
}
`,
			".cursor/mcp.json": `{
  "mcpServers": {
    "mneme": {
      "command": "MNEME",
      "args": [
        "mcp"
      ]
    }
  }
}
`,
		},
		CopilotCLI: {
			".copilot/mcp-config.json": `{
  "mcpServers": {
    "mneme": {
      "type": "local",
      "command": "MNEME",
      "args": [
        "mcp"
      ],
      "tools": [
        "*"
      ]
    }
  }
}
`,
		},
		OpenHands: {
			".openhands/hooks.json": `{
  "session_start": [
    {
      "hooks": [
        {
          "type": "command",
          "command": "HOOK openhands",
          "timeout": 5
        }
      ]
    }
  ],
`,
		},
		Goose: {
			".config/goose/config.yaml": `extensions:
  mneme:
    type: stdio
    name: mneme
    enabled: true
    timeout: 60
    cmd: "MNEME"
    args: ["mcp"]
`,
		},
	} {
		home, options := machine(t)
		o := options(agent)
		_, err := Connect(t.Context(), o)
		require.NoError(t, err)
		hook, err := CommandLine([]string{o.Hook})
		require.NoError(t, err)
		for path, text := range want {
			text = strings.NewReplacer("HOOK", strings.Trim(quoted(hook), `"`), "MNEME", strings.Trim(quoted(o.Mneme), `"`)).Replace(text)
			got := get(t, filepath.Join(home, filepath.FromSlash(path)))
			require.Equal(t, text, got[:min(len(got), len(text))], path)
		}
	}
}

// Otherwise they hide the tools of servers until the model searches for them.
func TestAgentsThatHideToolsAreToldToShowThem(t *testing.T) {
	for agent, want := range map[string]struct{ path, member string }{
		Pi:       {".pi/agent/mcp.json", `"exposure": "direct"`},
		QwenCode: {".qwen/settings.json", `"alwaysLoadTools": true`},
	} {
		home, options := machine(t)
		_, err := Connect(t.Context(), options(agent))
		require.NoError(t, err)
		require.Contains(t, get(t, filepath.Join(home, filepath.FromSlash(want.path))), want.member, agent)
	}
}

// OpenHands takes events in either form, but not the same event in both, and no others next to a member hooks.
func TestHooksOfOpenHandsKeepTheFormOfTheFile(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".openhands", "hooks.json")
	const mine = `{"matcher": "*", "hooks": [{"command": "mine"}]}`
	for text, names := range map[string][]string{
		`{"hooks": {"SessionStart": [` + mine + `]}}`:  {`"hooks": {"SessionStart": [` + mine + `, {`, `"user_prompt_submit": [{`},
		`{"hooks": {"session_start": [` + mine + `]}}`: {`"hooks": {"session_start": [` + mine + `, {`},
		`{"SessionStart": [` + mine + `]}`:             {`{"SessionStart": [` + mine + `, {`, `"user_prompt_submit": [{`},
		`{"stop": [` + mine + `]}`:                     {`{"stop": [` + mine + `, {`, `"session_start": [{`},
	} {
		put(t, path, text)
		_, err := Connect(t.Context(), options(OpenHands))
		require.NoError(t, err)
		got := get(t, path)
		for _, name := range names {
			require.Contains(t, got, name)
		}
		require.Equal(t, strings.Contains(text, `"hooks": {`), strings.Contains(got, `"hooks": {`), "a member of this name would hide the others")
		require.NotEqual(t, strings.Contains(got, `"SessionStart"`), strings.Contains(got, `"session_start"`))
		require.True(t, inspected(t, OpenHands, "").Connected)
		_, err = Disconnect(t.Context(), options(OpenHands))
		require.NoError(t, err)
		require.Equal(t, text, get(t, path))
	}
}

func TestTheVersionThatConnectWroteGoesWithItsHooks(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".cursor", "hooks.json")
	_, err := Connect(t.Context(), options(Cursor))
	require.NoError(t, err)
	put(t, path, get(t, path)+"// edited\n")
	_, err = Disconnect(t.Context(), options(Cursor))
	require.NoError(t, err)
	require.Equal(t, "{}\n// edited\n", get(t, path))
}

func TestWhereAnAgentKeepsItsSettingsIsAsked(t *testing.T) {
	home, _ := machine(t)
	t.Setenv("OH_PERSISTENCE_DIR", filepath.Join(home, "hooks"))
	t.Setenv("OPENHANDS_PERSISTENCE_DIR", filepath.Join(home, "cli"))
	t.Setenv("COPILOT_HOME", filepath.Join(home, "copilot"))
	t.Setenv("FACTORY_HOME_OVERRIDE", filepath.Join(home, "factory"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	for agent, want := range map[string][]string{
		OpenHands:  {"hooks/hooks.json", "cli/mcp.json"},
		Droid:      {"factory/.factory/settings.json", "factory/.factory/mcp.json"},
		CopilotCLI: {"copilot/hooks/mneme.json", "copilot/mcp-config.json"},
		Goose:      {"config/goose/config.yaml"},
	} {
		a, err := find(agent)
		require.NoError(t, err)
		list, err := a.targets("")
		require.NoError(t, err)
		for i, path := range want {
			require.Equal(t, filepath.Join(home, filepath.FromSlash(path)), list[i].path)
		}
	}
}

// Factory Droid takes the hooks of an event from hooks.json, its own file, and those of settings.json only if hooks.json has
// none for the event.
func TestTheHooksOfFactoryDroidAreWhereItLooksFirst(t *testing.T) {
	home, options := machine(t)
	settings, own := filepath.Join(home, ".factory", "settings.json"), filepath.Join(home, ".factory", "hooks.json")
	const before, mine = "{\"logoAnimation\": \"off\"}\n", "{\n  \"SessionStart\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]\n}\n"
	put(t, settings, before)
	_, err := Connect(t.Context(), options(Droid))
	require.NoError(t, err)
	require.Contains(t, get(t, settings), "mneme-hook")
	require.NoFileExists(t, own)

	put(t, own, mine) // the user has typed /hooks
	_, err = Connect(t.Context(), options(Droid))
	require.NoError(t, err)
	require.Equal(t, before, get(t, settings))
	var hooks map[string][]group
	require.NoError(t, json.Unmarshal([]byte(get(t, own)), &hooks))
	require.Len(t, hooks, 4)
	require.Len(t, hooks["SessionStart"], 2)
	state := Inspect("")[slices.Index(Names(), Droid)]
	require.True(t, state.Connected, state.Missing)
	require.Equal(t, []string{own}, state.Files)

	_, err = Disconnect(t.Context(), options(Droid))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"settings.json": before, "hooks.json": mine}, files(t, filepath.Join(home, ".factory")))
}

// If /hooks has copied our hooks, both files have them.
func TestDisconnectingFactoryDroidEmptiesBothFilesOfHooks(t *testing.T) {
	home, options := machine(t)
	_, err := Connect(t.Context(), options(Droid))
	require.NoError(t, err)
	settings, own := filepath.Join(home, ".factory", "settings.json"), filepath.Join(home, ".factory", "hooks.json")
	var copied struct{ Hooks json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(get(t, settings)), &copied))
	put(t, own, string(copied.Hooks))
	_, err = Disconnect(t.Context(), options(Droid))
	require.NoError(t, err)
	for path, text := range files(t, filepath.Join(home, ".factory")) {
		require.NotContains(t, text, "mneme-hook droid", path)
	}
	require.NoFileExists(t, settings)
}

// Qwen Code read the timeouts of hooks as milliseconds up to 0.23, and still does so from 1000 on: 5 would end a hook at once.
func TestHooksOfQwenCodeHaveTimeInAllOfItsVersions(t *testing.T) {
	home, options := machine(t)
	_, err := Connect(t.Context(), options(QwenCode))
	require.NoError(t, err)
	var settings struct {
		Hooks map[string][]struct{ Hooks []struct{ Timeout int } }
	}
	require.NoError(t, json.Unmarshal([]byte(get(t, filepath.Join(home, ".qwen", "settings.json"))), &settings))
	require.NotEmpty(t, settings.Hooks)
	for event, groups := range settings.Hooks {
		require.GreaterOrEqual(t, groups[0].Hooks[0].Timeout, 1000, event)
	}
}
