// Package harness knows what coding agents' own programs, their harnesses, write into conversations in somebody else's
// name: the output of a slash command as a message of the user, or a user's refusal as the result of a call. Imports mark
// much of it with an origin; what is recognised here has none, or comes from a recording that names none.
package harness

import (
	"regexp"
	"slices"
	"strings"
)

// interrupted begins the message in the user's name that says that the user stopped the agent.
const interrupted = "[Request interrupted by user"

// written is how the other messages in the user's name begin.
var written = []string{
	// Claude Code: commands of its terminal and of the shell with their output, reminders, tasks in the background, texts of
	// skills, what hooks say, what other agents say, and the summary that begins a continued session.
	"<command-", "<local-command", "<bash-", "<system-reminder", "<task-notification",
	"Caveat: The messages below", "Base directory for this skill: ", "Operation stopped by hook: ", "Stop hook feedback:",
	"<teammate-message", "<cross-session-message", "<agent-message", "Another Claude session sent a message:\n<", "Another Claude session sent a message: <",
	"This session is being continued from a previous conversation that ran out of context.",
	// Codex: its instructions and its environment, what happened there, and texts of skills, extensions and hooks.
	"<environment_context>", "<user_instructions>", "<permissions instructions>", "<skills_instructions>",
	"# AGENTS.md instructions for ", "# AGENTS.md instructions\n", "<recommended_plugins>",
	"<turn_aborted>", "<user_shell_command>", "<subagent_notification>", "<agent_message_board_notification>",
	"<skill>\n", "<codex_internal_context", "<goal_context>", "<extension_context>", "<external_", "<hook_prompt",
}

// slashCommand matches how Claude Code records a command of the user that is a prompt for the model. Commands of its terminal
// begin with the name, and skills that the model loads have no slash.
var slashCommand = regexp.MustCompile(`(?s)^\s*<command-message>[^<]*</command-message>\s*<command-name>(/[^<]*)</command-name>\s*(?:<command-args>(.*)</command-args>\s*)?$`)

// task matches the message by which the lead of a team gives an agent of Claude Code its task: to that agent it is what a
// prompt is. An object of JSON is about the team itself, such as its end.
var task = regexp.MustCompile(`(?s)^\s*<teammate-message teammate_id="team-lead"[^>]*>\s*([^{\s].*?)\s*(?:</teammate-message>\s*)?$`)

// Said returns what a message says without the tags in which Claude Code records it: of a slash command, the command and its
// arguments, and the task of an agent in a team.
func Said(text string) string {
	if m := slashCommand.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(strings.TrimSpace(m[1]) + " " + strings.TrimSpace(m[2]))
	}
	if m := task.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

// Wrote reports whether an agent's program wrote a message in the user's name, other than that the user stopped the agent.
func Wrote(text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(written, func(begins string) bool { return strings.HasPrefix(text, begins) }) &&
		!slashCommand.MatchString(text) && !task.MatchString(text)
}

// OriginMeta is the origin of what a program put into a conversation.
const OriginMeta = "meta"

// Origin returns the origin of a message: the one that it has, else meta if a program wrote it in the user's name.
func Origin(role, origin, text string) string {
	if role == "user" && origin == "" && (Wrote(text) || Interrupts(text)) {
		return OriginMeta
	}
	return origin
}

// Asks reports whether a user wrote a message and asks for something. It is the one rule for what the user's word is, which
// titles, queries, lessons, findings and the turns of insights follow.
func Asks(role, origin, text string) bool {
	return role == "user" && strings.TrimSpace(text) != "" && Origin(role, origin, text) == ""
}

// Interrupts reports whether a message of the user says that the user stopped the agent.
func Interrupts(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), interrupted) }

// refusals are how agents tell their model that the user refused a call: how the text begins, what else its first line
// holds, and what stands before and after the user's reason, if there is one.
var refusals = []struct{ begins, holds, before, after string }{
	{"The user doesn't want to proceed with this tool use.", "", "the user said:\n", "\n\nNote: "}, {interrupted, "", "", ""}, // Claude Code
	{"The user rejected permission to use this specific tool call", "", "feedback: ", ""}, // opencode
	{"The user denied this operation", "", "<feedback>\n", "\n</feedback>"},               // Cline and its forks
	{"This tool call was rejected by the user", "", "", ""}, {"User denied the tool execution", "", "", ""}, {`Tool "`, `" was denied by user`, "", ""},
	{"exec command rejected by user", "", "", ""}, {"patch rejected by user", "", "", ""}, {"user rejected MCP tool call", "", "", ""}, // Codex
	{"[Operation Cancelled] Reason: ", "", "", ""},                                                                                    // Gemini CLI, Qwen Code
	{"The user rejected this tool call.", "", "User feedback: ", ""},                                                                  // Copilot CLI
	{`Tool "`, `" was not run because the user rejected the approval request.`, "Reason: ", " Do not re-attempt the exact same call"}, // Kimi Code
	{"The tool call is rejected by the user.", "", "User feedback: ", ""},                                                             // its predecessor
	{"The user has declined to run this tool.", "", "", ""},                                                                           // goose
	{"User denied permission", "", "", ""}, {"Tool execution canceled by user", "", "", ""},                                           // Crush
	{"Tool execution cancelled by user", "", "", ""}, {"Error: Tool execution cancelled by user", "", "", ""}, // Factory Droid
	{"Permission denied by user", "", "", ""},                                                      // Continue
	{"User rejected the action", "", "", ""}, {"Action has been rejected by the user", "", "", ""}, // OpenHands
}

// clarifying begins what Claude Code itself writes as the reason if the user wants to talk about the agent's questions.
const clarifying = "The user wants to clarify these questions"

// Refusal reports whether a call failed because the user refused it, and returns the reason that the user gave, "" for none.
// It takes the error of the failed call or, if there is none, its result.
func Refusal(failure string) (reason string, refused bool) {
	text := strings.TrimSpace(failure)
	line, _, _ := strings.Cut(text, "\n")
	for _, r := range refusals {
		if !strings.HasPrefix(text, r.begins) || !strings.Contains(line, r.holds) {
			continue
		}
		if _, reason, found := strings.Cut(text, r.before); r.before != "" && found && !strings.HasPrefix(reason, clarifying) {
			if r.after != "" {
				reason, _, _ = strings.Cut(reason, r.after)
			}
			return reason, true
		}
		return "", true
	}
	return "", false
}

// NotRun reports whether a call did not run, because another call of its step had failed. Claude Code says so as an error. It
// takes what [Refusal] takes.
func NotRun(failure string) bool {
	text := strings.TrimPrefix(strings.TrimSpace(failure), "<tool_use_error>")
	return strings.HasPrefix(text, "Sibling tool call errored") || strings.HasPrefix(text, "Cancelled: parallel tool call ")
}
