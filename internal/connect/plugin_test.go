package connect

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPluginOfAnotherIsLeftAsItIs(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".config", "opencode", "plugins", "mneme.js")
	put(t, path, "export const Mine = async () => ({})\n")
	_, err := Connect(t.Context(), options(OpenCode))
	require.ErrorContains(t, err, "did not write it")
	require.Contains(t, inspected(t, OpenCode, "").Missing[0].String(), "did not write it")
	require.Equal(t, "export const Mine = async () => ({})\n", get(t, path))
}

func TestAnOlderPluginIsReplacedAndAnEditedOneIsSaved(t *testing.T) {
	home, options := machine(t)
	folder := filepath.Join(home, ".config", "opencode", "plugins")
	path := filepath.Join(folder, "mneme.js")
	_, err := Connect(t.Context(), options(OpenCode))
	require.NoError(t, err)
	text := get(t, path)
	older := strings.Replace(text, "fresh", "young", -1)
	require.NotEqual(t, text, older)
	put(t, path, older)
	_, err = Connect(t.Context(), options(OpenCode))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"mneme.js": text}, files(t, folder))

	put(t, path, older)
	changes, err := Disconnect(t.Context(), options(OpenCode))
	require.NoError(t, err)
	require.Equal(t, Removed, changes[0].Action)
	require.Equal(t, map[string]string{"mneme.js" + backupSuffix: older}, files(t, folder))
}

// calls is a program that does with the plugin what opencode does, and prints what it adds to each message.
const calls = `
import { Mneme } from "./mneme.mjs"
const plugin = await Mneme({ directory: "/shop" })
const created = (id, parentID) => plugin.event({ event: { type: "session.created", properties: { info: { id, parentID } } } })
const sent = { ses_1: [], ses_2: [], ses_3: [], ses_4: [] } // the messages of each session, without what the plugin adds
const ask = async (...prompt) => {
  await say(...prompt)
  await show(prompt[0])
}
const say = async (sessionID, text) => {
  const id = "msg_" + text
  const parts = [{ type: "text", text }, { type: "text", text: "put there", synthetic: true }]
  await plugin["chat.message"]({ sessionID }, { message: { id, sessionID, role: "user" }, parts })
  sent[sessionID].push({ info: { id, sessionID, role: "user" }, parts }, { info: { id: id + "_answer", sessionID, role: "assistant" }, parts: [{ type: "text", text: "done" }] })
}
const show = async (sessionID) => {
  const messages = [...structuredClone(sent[sessionID]), { role: "user" }] // another plugin may have added something
  for (const time of ["once", "again"]) await plugin["experimental.chat.messages.transform"]({}, { messages })
  const added = messages.filter((message) => message.info).map(({ info, parts }) => parts.filter((part) => part.id).map((part) => {
    if (part.type !== "text" || !part.synthetic || part.sessionID !== sessionID || part.messageID !== info.id) throw new Error(JSON.stringify(part))
    return part.text
  }))
  console.log(sessionID, JSON.stringify(added))
}
await created("ses_1")
await ask("ses_1", "one")
await ask("ses_1", "two")
await created("ses_2", "ses_1")
await ask("ses_2", "of the model")
await ask("ses_3", "three")
await plugin.event({ event: { type: "session.compacted", properties: { sessionID: "ses_1" } } })
await show("ses_1")
const compacting = plugin.event({ event: { type: "session.compacted", properties: { sessionID: "ses_3" } } })
await ask("ses_3", "asked meanwhile")
await compacting
await show("ses_3")
await Promise.all([say("ses_4", "four"), say("ses_4", "five")])
await show("ses_4")
if (plugin["experimental.chat.system.transform"]) throw new Error("recorded text gets into the system prompt")
`

// nodePath returns the program that runs the plugins. The gate installs it.
func nodePath(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOT RUN: there is no node in PATH to run the plugins of agents")
	}
	return node
}

// runPlugin connects an agent, runs a program that does with the plugin what the agent does, and returns what the program
// printed and which events the hook heard, with its arguments. The hook has something to say at a start and at each prompt
// but "two".
func runPlugin(t *testing.T, agent, plugin, program string, env ...string) (printed string, heard []string) {
	t.Helper()
	node := nodePath(t)
	home, options := machine(t)
	log := filepath.Join(home, "heard")
	put(t, options("").Hook, `#!/bin/sh
event=$(cat)
echo "$* $event" >> "`+log+`"
case "$event" in
*'"prompt":"two"'*) ;; # nothing fits
*UserPromptSubmit*) echo '{"hookSpecificOutput": {"additionalContext": "of the prompt"}}' ;;
*SessionStart*) echo '{"hookSpecificOutput": {"additionalContext": "of the start"}}' ;;
esac
`)
	require.NoError(t, os.Chmod(options("").Hook, 0o700))
	o := options(agent)
	o.Flags = []string{"--url", "http://it's"}
	_, err := Connect(t.Context(), o)
	require.NoError(t, err)
	run := t.TempDir()
	put(t, filepath.Join(run, "mneme.mjs"), get(t, filepath.Join(home, filepath.FromSlash(plugin))))
	put(t, filepath.Join(run, "calls.mjs"), program)
	command := exec.CommandContext(t.Context(), node, filepath.Join(run, "calls.mjs"))
	command.Env = append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out), strings.Split(strings.TrimSpace(get(t, log)), "\n")
}

func TestThePluginOfOpencodeShowsTheModelWhatTheHookSays(t *testing.T) {
	for agent, variable := range map[string]string{OpenCode: "OPENCODE_DB", Kilo: "KILO_DB"} {
		t.Run(agent, func(t *testing.T) { showsWhatTheHookSays(t, agent, variable) })
	}
}

func showsWhatTheHookSays(t *testing.T, agent, variable string) {
	out, got := runPlugin(t, agent, ".config/"+agent+"/plugins/mneme.js", calls, variable+"=/data/sessions.db")
	require.Equal(t, `ses_1 [["of the start","of the prompt"],[]]
ses_1 [["of the start","of the prompt"],[],[],[]]
ses_2 [[],[]]
ses_3 [["of the start","of the prompt"],[]]
ses_1 [["of the start"],[],[],[]]
ses_3 [["of the start"],[],["of the prompt"],[]]
ses_3 [["of the start"],[],["of the prompt"],[]]
ses_4 [["of the start","of the prompt"],[],["of the prompt"],[]]
`, out)
	event := func(name, session, more string) string {
		return agent + ` --url http://it's {"hook_event_name":"` + name + `","session_id":"` + session + `","transcript_path":"/data/sessions.db","cwd":"/shop",` + more + `}`
	}
	require.Len(t, got, 11)
	require.Equal(t, []string{
		event("SessionStart", "ses_1", `"source":"startup"`), event("UserPromptSubmit", "ses_1", `"prompt":"one"`), event("UserPromptSubmit", "ses_1", `"prompt":"two"`),
		event("SessionStart", "ses_3", `"source":"resume"`), event("UserPromptSubmit", "ses_3", `"prompt":"three"`), event("SessionStart", "ses_1", `"source":"compact"`),
	}, got[:6])
	require.ElementsMatch(t, []string{event("SessionStart", "ses_3", `"source":"compact"`), event("UserPromptSubmit", "ses_3", `"prompt":"asked meanwhile"`)}, got[6:8], "at once")
	require.ElementsMatch(t, []string{
		event("SessionStart", "ses_4", `"source":"resume"`), event("UserPromptSubmit", "ses_4", `"prompt":"four"`), event("UserPromptSubmit", "ses_4", `"prompt":"five"`),
	}, got[8:], "at once, and the start is asked for once")
}

// piCalls is a program that does with the extension what pi does in five sessions, and prints the messages it adds.
const piCalls = `
import extension from "./mneme.mjs"
const session = async (id, file, entries) => {
  const on = {}
  extension({ on: (name, handler) => (on[name] = handler) })
  const context = { cwd: "/shop", sessionManager: { getSessionId: () => id, getSessionFile: () => file, getEntries: () => entries } }
  const happens = (name, event) => on[name](event, context)
  const ask = async (prompt) => console.log(id, JSON.stringify(await happens("before_agent_start", { prompt }) ?? null))
  return { happens, ask }
}
const fresh = await session("fresh", "/s/fresh.jsonl", [{ type: "model_change" }])
await fresh.happens("session_start", { reason: "startup" })
await fresh.ask("one")
await fresh.ask("two")
await fresh.ask(undefined) // another extension's message starts the model
await fresh.happens("session_compact", {})
await fresh.ask("two")
await fresh.happens("session_shutdown", { reason: "quit" })
const old = await session("old", "/s/old.jsonl", [{ type: "message" }])
await old.happens("session_start", { reason: "resume" })
await old.ask("two")
const reloaded = await session("old", "/s/old.jsonl", [{ type: "message" }])
await reloaded.happens("session_start", { reason: "reload" })
await reloaded.ask("two")
const busy = await session("busy", "/s/busy.jsonl", [])
await busy.happens("session_start", { reason: "startup" })
const asked = busy.ask("two")
await busy.happens("session_compact", {}) // while the hook still runs
await asked
await busy.ask("two")
const unkept = await session("unkept", undefined, [])
await unkept.happens("session_start", { reason: "startup" })
await unkept.ask("one")
unkept.happens("agent_end", {})
await unkept.happens("session_shutdown", { reason: "quit" })
`

func TestTheExtensionOfPiShowsTheModelWhatTheHookSays(t *testing.T) {
	out, heard := runPlugin(t, Pi, ".pi/agent/extensions/mneme.js", piCalls)
	message := func(text string) string {
		return `{"message":{"customType":"mneme","content":"` + text + `","display":false}}`
	}
	require.Equal(t, "fresh "+message(`of the start\n\nof the prompt`)+"\nfresh null\nfresh null\nfresh "+message("of the start")+
		"\nold "+message("of the start")+"\nold null\nbusy "+message("of the start")+"\nbusy "+message("of the start")+"\nunkept null\n", out)
	event := func(name, session, more string) string {
		return `pi --url http://it's {"hook_event_name":"` + name + `","session_id":"` + session + `","transcript_path":"/s/` + session + `.jsonl","cwd":"/shop"` + more + `}`
	}
	require.Equal(t, []string{
		event("SessionStart", "fresh", `,"source":"startup"`), event("UserPromptSubmit", "fresh", `,"prompt":"one"`), event("UserPromptSubmit", "fresh", `,"prompt":"two"`),
		event("SessionStart", "fresh", `,"source":"compact"`), event("UserPromptSubmit", "fresh", `,"prompt":"two"`), event("SessionEnd", "fresh", ""),
		event("SessionStart", "old", `,"source":"resume"`), event("UserPromptSubmit", "old", `,"prompt":"two"`), event("UserPromptSubmit", "old", `,"prompt":"two"`),
		event("SessionStart", "busy", `,"source":"startup"`), event("UserPromptSubmit", "busy", `,"prompt":"two"`),
		event("SessionStart", "busy", `,"source":"compact"`), event("UserPromptSubmit", "busy", `,"prompt":"two"`),
	}, heard, "nothing of the session without a file")
}

// An error that nobody hears of ends the agent.
func TestAHookThatCannotBeStartedDoesNotEndTheAgent(t *testing.T) {
	nodePath(t)
	hook, err := plugins.ReadFile("plugins/hook.js")
	require.NoError(t, err)
	folder := t.TempDir()
	put(t, filepath.Join(folder, "hook.mjs"), string(hook)+"export default hook\n")
	put(t, filepath.Join(folder, "run.mjs"), `
import { openSync } from "node:fs"
import hook from "./hook.mjs"
const answer = [await hook({})]
try {
  for (;;) openSync("/dev/null")
} catch {}
answer.push(await hook({}))
setTimeout(() => console.log(JSON.stringify(answer)))
`)
	command := exec.CommandContext(t.Context(), "sh", "-c", `PATH=$(dirname "$(command -v node)"); ulimit -n 64; exec node run.mjs`)
	command.Dir = folder
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, `["",""]`+"\n", string(out), "there is no such program, then there are no files left to open")
}

func TestThePluginOfClaudeCodeIsTheOneThatConnectWrites(t *testing.T) {
	want, err := ClaudePlugin()
	require.NoError(t, err)
	got := files(t, "../../deploy/plugins")
	for name, content := range want {
		require.Equal(t, string(content), got[name], "go generate ./internal/connect")
	}
	require.Len(t, got, len(want))
}
