// Package hook decides what a coding agent sees at its own events: when a session begins, after its context was
// compacted, and at each prompt. Nothing else decides that. The route POST /v1/hooks/{agent} asks this package;
// the program mneme-hook only passes on the route's answer.
//
//	agent ──event──▶ mneme-hook ──▶ POST /v1/hooks/{agent} ──▶ Desk.Take ──▶ Doorbell.Ring
//	   ◀──────────── the agent's own format ◀── Agent.Answer ◀──┘
//
// A hook brings no content into the log. It says that a transcript has grown, and the follower of
// transcripts reads the content from there. No model is called.
package hook

import (
	"bytes"
	"encoding/json"
	"strings"

	"mneme.dev/mneme/internal/hook/ring"
)

// moment is what an event means.
type moment int

const (
	other     moment = iota // the transcript may have grown
	begins                  // a session begins, or continues
	compacted               // its context was replaced by a summary
	asks                    // the user has sent a prompt
	rests                   // the agent has answered, or its session ends
	reports                 // a subagent has answered
)

// Agent is a coding agent that runs hooks.
type Agent struct {
	Name   string // as in the path of the route
	Prefix string // with the id of a session it makes the id of the conversation
	events map[string]moment
	answer func(event, text string) any
	prompt bool // it accepts a text at a prompt only: what it is to see at a start, it sees at the next prompt
	apart  bool // the file that its hooks name is not the one that is read
	hex    bool // its hooks write the id of a session with dashes, its files without
}

// Agents are the agents whose events are understood.
var Agents = []Agent{
	{Name: "claude-code", Prefix: "claude_code:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests, "SubagentStop": reports, "SessionEnd": rests}, answer: specific},
	{Name: "codex", Prefix: "codex:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests}, answer: specific},
	{Name: "gemini-cli", Prefix: "gemini_cli:", events: map[string]moment{"SessionStart": begins, "BeforeAgent": asks, "AfterAgent": rests, "SessionEnd": rests}, answer: specific},
	{Name: "qwen-code", Prefix: "qwen_code:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests, "SessionEnd": rests}, answer: specific},
	{Name: "opencode", Prefix: "opencode:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests}, answer: specific},
	{Name: "kilo", Prefix: "kilo:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests}, answer: specific},
	{Name: "pi", Prefix: "pi:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests, "SessionEnd": rests}, answer: specific},
	{Name: "kimi-code", Prefix: "kimi_code:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "PostCompact": compacted, "Stop": rests, "SessionEnd": rests}, answer: inMessage, prompt: true},
	{Name: "hermes", Prefix: "hermes:", events: map[string]moment{"on_session_start": begins, "pre_llm_call": asks, "on_session_end": rests}, answer: asContext, prompt: true},
	{Name: "droid", Prefix: "droid:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests, "SessionEnd": rests}, answer: specific},
	{Name: "openclaw", Prefix: "openclaw:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests, "SessionEnd": rests}, answer: specific},
	{Name: "cursor", Prefix: "cursor:", events: map[string]moment{"sessionStart": begins, "beforeSubmitPrompt": asks}, answer: ofCursor, apart: true},
	{Name: "copilot-cli", Prefix: "copilot_cli:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "PreCompact": compacted, "Stop": rests, "SessionEnd": rests}, answer: plainly},
	{Name: "openhands", Prefix: "openhands:", events: map[string]moment{"SessionStart": begins, "UserPromptSubmit": asks, "Stop": rests, "SessionEnd": rests}, answer: plainly, hex: true},
}

// specific is the form in which Claude Code, and agents modelled on it, accept a text.
func specific(event, text string) any {
	type output struct {
		Event string `json:"hookEventName"`
		Text  string `json:"additionalContext"`
	}
	return struct {
		Quiet    bool   `json:"suppressOutput"`
		Specific output `json:"hookSpecificOutput"`
	}{true, output{event, text}}
}

// plainly is the form for Copilot CLI and OpenHands.
func plainly(_, text string) any {
	return struct {
		Text string `json:"additionalContext"`
	}{text}
}

// inMessage is the form for Kimi Code.
func inMessage(_, text string) any {
	return struct {
		Text string `json:"message"`
	}{text}
}

// asContext is the form for Hermes Agent.
func asContext(_, text string) any {
	return struct {
		Text string `json:"context"`
	}{text}
}

// ofCursor is the form for Cursor. It sends a prompt only if the answer says so.
func ofCursor(_, text string) any {
	return struct {
		Continue bool   `json:"continue"`
		Text     string `json:"additional_context"`
	}{true, text}
}

// Find returns an agent by its name, nil if there is none.
func Find(name string) *Agent {
	for i := range Agents {
		if Agents[i].Name == name {
			return &Agents[i]
		}
	}
	return nil
}

// Of returns the agent whose sessions have conversations of this kind, and the session; nil if it runs no hooks.
func Of(conversation string) (a *Agent, session string) {
	for i := range Agents {
		if session, ok := strings.CutPrefix(conversation, Agents[i].Prefix); ok {
			return &Agents[i], session
		}
	}
	return nil, ""
}

// PromptEvent returns the name of the agent's event at a prompt.
func (a *Agent) PromptEvent() string {
	for name, m := range a.events {
		if m == asks {
			return name
		}
	}
	return ""
}

// moment returns what an event means. Claude Code, Codex, Qwen Code and Factory Droid compact a context and then begin the session again.
// Copilot CLI says before that it will. Gemini CLI's PreCompress is of no use: it comes with each turn, compacted or not.
func (a *Agent) moment(name, source string) moment {
	m := a.events[name]
	if m == begins && source == "compact" {
		return compacted
	}
	return m
}

// turns returns what an event means for the turn of the session, and for that of the subagent whose transcript it names.
// One that arrives late says nothing: the session may have gone on.
func (a *Agent) turns(e ring.Event, late bool) (session, subagent Turn) {
	switch m := a.moment(e.Name, e.Source); {
	case late:
	case m == reports:
		return Goes, Ended
	case e.Subagent != "":
	case m == rests:
		return Ended, Goes
	case m == begins, m == compacted, m == asks:
		return Began, Goes
	}
	return Goes, Goes
}

// conversation returns the id of a session's conversation.
func (a *Agent) conversation(session string) string {
	if a.hex {
		session = strings.ReplaceAll(session, "-", "")
	}
	return a.Prefix + session
}

// Answer returns a text in the form that the agent accepts at an event, and nothing for no text.
func (a *Agent) Answer(event, text string) []byte {
	if text == "" {
		return nil
	}
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	_ = e.Encode(a.answer(event, text)) // strings and a bool: it cannot fail
	return w.Bytes()
}
