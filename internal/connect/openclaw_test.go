package connect

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const openClawBefore = `// of Lea
{
  gateway: { mode: 'local' }, // here
  plugins: {
    // only these
    allow: [
      'telegram',
    ],
    entries: {
      telegram: { enabled: true },
    },
  },
}
`

func TestOpenClawIsConnectedByAPluginAndItsSettings(t *testing.T) {
	home, options := machine(t)
	folder := filepath.Join(home, ".openclaw")
	put(t, filepath.Join(folder, "openclaw.json"), openClawBefore)
	o := options(OpenClaw)
	_, err := Connect(t.Context(), o)
	require.NoError(t, err)
	text := get(t, filepath.Join(folder, "openclaw.json"))
	for _, part := range []string{"// of Lea", "// here", "// only these", `"mode": "local"`, `"telegram": { "enabled": true }`, `"allowConversationAccess": true`, quoted(o.Mneme)} {
		require.Contains(t, text, part)
	}
	require.Regexp(t, `"allow": \[\s*"telegram",\s*"mneme"`, text)
	require.Contains(t, get(t, filepath.Join(folder, "extensions", "mneme", "index.js")), "before_prompt_build")
	require.Contains(t, get(t, filepath.Join(folder, "extensions", "mneme", "openclaw.plugin.json")), `"id": "mneme"`)
	state := inspected(t, OpenClaw, "")
	require.True(t, state.Connected, state.Missing)
	require.True(t, state.Tools)
	require.Empty(t, state.Missing)

	again, err := Connect(t.Context(), o)
	require.NoError(t, err)
	for _, c := range again {
		require.Equal(t, Unchanged, c.Action, c.Path)
	}
	_, err = Disconnect(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"openclaw.json": openClawBefore}, files(t, folder))
}

// OpenClaw writes the file itself when its user changes a setting.
func TestDisconnectingOpenClawTakesOutOnlyWhatConnectAdded(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".openclaw", "openclaw.json")
	put(t, path, openClawBefore)
	_, err := Connect(t.Context(), options(OpenClaw))
	require.NoError(t, err)
	put(t, path, strings.Replace(get(t, path), `"local"`, `"remote"`, 1))
	_, err = Disconnect(t.Context(), options(OpenClaw))
	require.NoError(t, err)
	require.Equal(t, strings.NewReplacer("'local'", `"remote"`, "'telegram'", `"telegram"`, "gateway:", `"gateway":`, "mode:", `"mode":`, "plugins:", `"plugins":`, "allow:", `"allow":`,
		"entries:", `"entries":`, "telegram:", `"telegram":`, "enabled:", `"enabled":`).Replace(openClawBefore), get(t, path))
}

func TestOpenClawIsNotConnectedIfItsSettingsKeepThePluginFromPrompts(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".openclaw", "openclaw.json")
	_, err := Connect(t.Context(), options(OpenClaw))
	require.NoError(t, err)
	put(t, path, strings.Replace(get(t, path), `"allowConversationAccess": true`, `allowConversationAccess: false, timeoutMs: 9`, 1))
	state := inspected(t, OpenClaw, "")
	require.False(t, state.Connected)
	require.Contains(t, state.Missing[0].String(), "does not let the plugin see prompts: mneme connect openclaw")
	_, err = Connect(t.Context(), options(OpenClaw))
	require.NoError(t, err)
	require.True(t, inspected(t, OpenClaw, "").Connected)
	require.Contains(t, get(t, path), `"timeoutMs": 9`)
}

func TestAUserWhoTurnsThePluginsOfOpenClawOffIsTold(t *testing.T) {
	for setting, want := range map[string]string{
		`enabled: false`:              "plugins.enabled in PATH turns all plugins off: set it to true",
		`deny: ["telegram", "Mneme"]`: "plugins.deny in PATH names the plugin: take mneme out of that list",
	} {
		home, options := machine(t)
		path := filepath.Join(home, ".openclaw", "openclaw.json")
		put(t, path, "{ plugins: { "+setting+" } }")
		want = strings.Replace(want, "PATH", path, 1)
		_, err := Connect(t.Context(), options(OpenClaw))
		require.NoError(t, err)
		require.Contains(t, Next(options(OpenClaw)), "OpenClaw will not load the plugin, because "+want+".")
		state := inspected(t, OpenClaw, "")
		require.False(t, state.Connected)
		require.Equal(t, want, state.Missing[0].String())
	}
}

func TestOpenClawIsConnectedInTheHomeThatItIsTold(t *testing.T) {
	home, options := machine(t)
	t.Setenv("OPENCLAW_HOME", "~/claw")
	t.Setenv("OPENCLAW_CONFIG_PATH", "~/settings.json")
	_, err := Connect(t.Context(), options(OpenClaw))
	require.NoError(t, err)
	require.Contains(t, get(t, filepath.Join(home, "claw", "settings.json")), `"mneme"`)
	require.FileExists(t, filepath.Join(home, "claw", ".openclaw", "extensions", "mneme", "index.js"))
	require.NoDirExists(t, filepath.Join(home, ".openclaw"))
	require.True(t, inspected(t, OpenClaw, "").Connected)
}

func TestTheFileOfSettingsThatOpenClawIsToldToReadIsChanged(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, "elsewhere", "claw.json")
	put(t, path, "{}")
	t.Setenv("OPENCLAW_CONFIG_PATH", path)
	_, err := Connect(t.Context(), options(OpenClaw))
	require.NoError(t, err)
	require.Contains(t, get(t, path), `"mneme"`)
	require.FileExists(t, filepath.Join(home, ".openclaw", "extensions", "mneme", "index.js"))
	require.NoFileExists(t, filepath.Join(home, ".openclaw", "openclaw.json"))
	require.True(t, inspected(t, OpenClaw, "").Connected)
}

func TestSettingsOfOpenClawThatAreNotValidAreLeftAlone(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".openclaw", "openclaw.json")
	for text, why := range map[string]string{
		"{ plugins: { allow: 'mneme' } }": "plugins.allow is not a list",
		"{ plugins: [] }":                 "plugins is not an object",
		"{ a: what }":                     "it is not valid JSON",
		"{ a: 0x10 }":                     "it has the number 0x10, a form of JSON5",
		"{ a: [+1] }":                     "it has the number +1, a form of JSON5",
		"{ a: .5 }":                       "it has the number .5, a form of JSON5",
		"{ a: -Infinity }":                "it has the number -Infinity, a form of JSON5",
		"{ mcp: { servers: { mneme: { command: 'another' } } } }": "mcp.servers.mneme is another server",
	} {
		put(t, path, text)
		_, err := Connect(t.Context(), options(OpenClaw))
		require.ErrorContains(t, err, why)
		require.Equal(t, text, get(t, path))
		require.NoFileExists(t, filepath.Join(home, ".openclaw", "extensions", "mneme", "index.js"))
	}
}

// openClawCalls is a program that does with the plugin what OpenClaw does in three sessions, and prints what it adds.
const openClawCalls = `
import plugin from "./mneme.mjs"
const on = {}
plugin.register({ on: (name, handler) => (on[name] = handler) })
const ask = async (sessionId, prompt, event, context) =>
  console.log(sessionId, JSON.stringify(await on.before_prompt_build({ prompt, messages: [], ...event }, { sessionId, workspaceDir: "/shop", trigger: "user", ...context }) ?? null))
await ask("fresh", "one")
await ask("fresh", "History.\\n\\ntwo", { currentUserMessage: "two", messages: [{ role: "user" }] })
await ask("fresh", "of a timer", {}, { trigger: "cron" })
await ask("fresh", "of an agent", {}, { inputProvenance: { kind: "inter_session" } })
await ask("child", "of the model", {}, { sessionKey: "agent:main:subagent:1" })
await ask(undefined, "nowhere")
await on.after_compaction({}, { sessionId: "unknown" })
await on.after_compaction({}, { sessionId: "fresh", workspaceDir: "/shop" })
await ask("old", "two", { messages: [{ role: "user" }] }, { agentId: "work" })
await on.agent_end({}, { sessionId: "old", workspaceDir: "/shop" })
await on.session_end({ sessionId: "fresh" }, { workspaceDir: "/shop" })
`

func TestThePluginOfOpenClawShowsTheModelWhatTheHookSays(t *testing.T) {
	out, heard := runPlugin(t, OpenClaw, ".openclaw/extensions/mneme/index.js", openClawCalls, "OPENCLAW_STATE_DIR=/state")
	require.Equal(t, `fresh {"prependContext":"of the start\n\nof the prompt"}
fresh {"prependContext":"of the start"}
fresh null
fresh null
child null
undefined null
old {"prependContext":"of the start"}
`, out)
	event := func(name, session, agent, more string) string {
		return `openclaw --url http://it's {"hook_event_name":"` + name + `","session_id":"` + session + `","transcript_path":"/state/agents/` + agent + `/agent/openclaw-agent.sqlite","cwd":"/shop"` + more + `}`
	}
	require.Equal(t, []string{
		event("SessionStart", "fresh", "main", `,"source":"startup"`), event("UserPromptSubmit", "fresh", "main", `,"prompt":"one"`), event("UserPromptSubmit", "fresh", "main", `,"prompt":"two"`),
		event("SessionStart", "fresh", "main", `,"source":"compact"`), event("SessionStart", "old", "work", `,"source":"resume"`), event("UserPromptSubmit", "old", "work", `,"prompt":"two"`),
		event("Stop", "old", "main", ""), event("SessionEnd", "fresh", "main", ""),
	}, heard)
}
