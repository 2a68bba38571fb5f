// Package connect writes mneme into the settings of coding agents, and takes it out again. The agents then run
// mneme-hook at their events, and those whose settings allow it also get mneme's tools by MCP.
//
// A settings file belongs to its user. So connect keeps byte for byte what it does not know, leaves files that it can't
// read alone, and Disconnect removes what Connect added and nothing else:
//
//   - JSON is edited in place; order, formatting and comments stay.
//   - The first change saves a copy of the file in the same folder, with the suffix .mneme-backup.
//   - If connecting the saved file would give the present one, Disconnect brings the saved one back byte for byte.
//     Otherwise it takes its own entries out of the present file.
//   - Hooks are recognised by the program that they run, mneme-hook, so entries made by hand count too.
package connect

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/openclaw"
)

// Names of the agents that can be connected.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	GeminiCLI  = "gemini-cli"
	OpenCode   = "opencode"
	Kilo       = "kilo"
	Cursor     = "cursor"
	CopilotCLI = "copilot-cli"
	Cline      = "cline"
	Goose      = "goose"
	OpenHands  = "openhands"
	QwenCode   = "qwen-code"
	Pi         = "pi"
	KimiCode   = "kimi-code"
	Hermes     = "hermes"
	Droid      = "droid"
	OpenClaw   = "openclaw"
)

// hookProgram is what agents run at their events.
const hookProgram = "mneme-hook"

// event is an event at which an agent runs the hook.
type event struct {
	name    string
	timeout int  // in the agent's unit
	async   bool // the agent does not wait, because it is shown nothing
}

// agent is a coding agent, and how its settings look.
type agent struct {
	name    string
	title   string
	program string // on PATH, if it is installed
	folder  string // the folder of its settings, in the home directory
	moved   string // environment variable that names another folder, or another home directory if inHome; "" for none
	inHome  bool
	config  bool    // XDG_CONFIG_HOME moves the folder too
	files   []file  // that connect it, in the order in which they are written
	events  []event // at which it runs the hook; none if what a hook prints does not reach the model
	shape   shape   // of the hooks
	server  server  // what its MCP servers have besides a command and arguments
	byHand  bool    // its user must add the MCP server
	keeps   bool    // its transcripts hold what a hook showed
}

// file is a settings file of an agent.
type file struct {
	path   string // in the folder of the settings
	format func(*agent) format
	moved  string // environment variable that moves this file instead of the agent's
	named  string // environment variable of OpenClaw that names this file itself
	// instead is the path of another file, into which the hooks go if it exists; optional marks that one, which is not created.
	instead  string
	optional bool
}

// shape says how an agent's form of hooks differs from others.
type shape struct {
	shell   bool   // a shell runs the command; else it is a program and its arguments
	label   string // name of the hook, if the agent shows one
	flat    bool   // an event has a list of hooks; else of groups of hooks
	top     bool   // without a member hooks, events are members of the file
	version bool   // a file of hooks says that it is of version 1
}

// agents are those that can be connected. Timeouts only matter if something is badly wrong: a hook ends within 300 ms.
var agents = []agent{
	{name: ClaudeCode, title: "Claude Code", program: "claude", folder: ".claude", moved: "CLAUDE_CONFIG_DIR", keeps: true, byHand: true, files: []file{{path: "settings.json", format: hooks}}, events: []event{
		{"SessionStart", 5, false}, {"UserPromptSubmit", 3, false}, {"Stop", 10, true}, {"SubagentStop", 10, true}, {"SessionEnd", 5, false}, // waited for: the agent ends with it
	}},
	{name: Codex, title: "Codex", program: "codex", folder: ".codex", moved: "CODEX_HOME", keeps: true, shape: shape{shell: true}, files: []file{{path: "hooks.json", format: hooks}, {path: "config.toml", format: serversTOML}}, events: []event{
		{"SessionStart", 5, false}, {"UserPromptSubmit", 3, false}, {"Stop", 10, false}, // it runs no asynchronous hooks
	}},
	{name: GeminiCLI, title: "Gemini CLI", program: "gemini", folder: ".gemini", moved: "GEMINI_CLI_HOME", keeps: true, inHome: true, shape: shape{shell: true, label: "mneme"}, files: []file{{path: "settings.json", format: hooksAndServers}}, events: []event{
		{"SessionStart", 5000, false}, {"BeforeAgent", 3000, false}, {"AfterAgent", 10000, false}, {"SessionEnd", 5000, false},
	}},
	{name: QwenCode, title: "Qwen Code", program: "qwen", folder: ".qwen", moved: "QWEN_HOME", keeps: true, server: server{Always: true}, shape: shape{shell: true, label: "mneme"}, files: []file{{path: "settings.json", format: hooksAndServers}}, events: []event{
		// Milliseconds: so it read them up to 0.23, and still does from 1000 on.
		{"SessionStart", 5000, false}, {"UserPromptSubmit", 3000, false}, {"Stop", 10000, true}, {"SessionEnd", 5000, false},
	}},
	{name: OpenCode, title: "opencode", program: "opencode", folder: ".config/opencode", moved: "OPENCODE_CONFIG_DIR", config: true, byHand: true, files: []file{{path: "plugins/mneme.js", format: plugin}}, events: []event{
		{"SessionStart", 3000, false}, {"UserPromptSubmit", 3000, false}, {"Stop", 3000, true},
	}},
	{name: Kilo, title: "Kilo", program: "kilo", folder: ".config/kilo", moved: "KILO_CONFIG_DIR", config: true, byHand: true, files: []file{{path: "plugins/mneme.js", format: plugin}}, events: []event{
		{"SessionStart", 3000, false}, {"UserPromptSubmit", 3000, false}, {"Stop", 3000, true},
	}},
	{name: Pi, title: "pi", program: "pi", folder: ".pi/agent", moved: "PI_CODING_AGENT_DIR", keeps: true, server: server{Exposure: "direct"}, files: []file{{path: "extensions/mneme.js", format: plugin}, {path: "mcp.json", format: servers}}, events: []event{
		{"SessionStart", 3000, false}, {"UserPromptSubmit", 3000, false}, {"Stop", 3000, true}, {"SessionEnd", 3000, false},
	}},
	{name: KimiCode, title: "Kimi Code", program: "kimi", folder: ".kimi-code", moved: "KIMI_CODE_HOME", keeps: true, shape: shape{shell: true}, files: []file{{path: "config.toml", format: hooksTOML}, {path: "mcp.json", format: servers}}, events: []event{
		{"SessionStart", 5, false}, {"UserPromptSubmit", 3, false}, {"PostCompact", 5, false}, {"Stop", 10, false}, {"SessionEnd", 5, false},
	}},
	{name: Hermes, title: "Hermes Agent", program: "hermes", folder: ".hermes", moved: "HERMES_HOME", shape: shape{shell: true}, files: []file{{path: "config.yaml", format: hooksAndServersYAML}}, events: []event{
		{"on_session_start", 5, false}, {"pre_llm_call", 3, false}, {"on_session_end", 10, false},
	}},
	// What hooks.json has for an event counts, and not what settings.json has; its command /hooks makes the file.
	{name: Droid, title: "Factory Droid", program: "droid", folder: ".factory", moved: "FACTORY_HOME_OVERRIDE", keeps: true, inHome: true, server: server{Type: "stdio"}, shape: shape{shell: true}, files: []file{{path: "settings.json", format: hooks, instead: "hooks.json"}, {path: "hooks.json", format: topHooks, optional: true}, {path: "mcp.json", format: servers}}, events: []event{
		{"SessionStart", 5, false}, {"UserPromptSubmit", 3, false}, {"Stop", 10, false}, {"SessionEnd", 5, false},
	}},
	{name: Cursor, title: "Cursor", program: "cursor-agent", folder: ".cursor", shape: shape{shell: true, flat: true, version: true}, files: []file{{path: "hooks.json", format: hooks}, {path: "mcp.json", format: servers}}, events: []event{
		{"sessionStart", 5, false}, {"beforeSubmitPrompt", 3, false},
	}},
	// If events have these names instead of its own, it sends what Claude Code would send.
	{name: CopilotCLI, title: "Copilot CLI", program: "copilot", folder: ".copilot", moved: "COPILOT_HOME", keeps: true, server: server{Type: "local", Tools: []string{"*"}}, shape: shape{shell: true, version: true}, files: []file{{path: "hooks/mneme.json", format: hooks}, {path: "mcp-config.json", format: servers}}, events: []event{
		{"SessionStart", 5, false}, {"UserPromptSubmit", 3, false}, {"PreCompact", 5, false}, {"Stop", 10, false}, {"SessionEnd", 5, false},
	}},
	{name: OpenClaw, title: "OpenClaw", program: "openclaw", folder: ".openclaw", moved: "OPENCLAW_STATE_DIR", files: []file{{path: "extensions/mneme/index.js", format: plugin}, {path: "extensions/mneme/openclaw.plugin.json", format: manifest}, {path: "openclaw.json", format: openClawSettings, named: "OPENCLAW_CONFIG_PATH"}}, events: []event{
		{"SessionStart", 3000, false}, {"UserPromptSubmit", 3000, false}, {"Stop", 3000, true}, {"SessionEnd", 3000, false},
	}},
	{name: Cline, title: "Cline", program: "cline", folder: ".cline/data", moved: "CLINE_DATA_DIR", files: []file{{path: "settings/cline_mcp_settings.json", format: servers}}},
	{name: Goose, title: "goose", program: "goose", folder: ".config/goose", config: true, files: []file{{path: "config.yaml", format: serversYAML}}},
	{name: OpenHands, title: "OpenHands", program: "openhands", folder: ".openhands", moved: "OPENHANDS_PERSISTENCE_DIR", keeps: true, shape: shape{shell: true, top: true}, files: []file{{path: "hooks.json", format: hooks, moved: "OH_PERSISTENCE_DIR"}, {path: "mcp.json", format: servers}}, events: []event{
		{"session_start", 5, false}, {"user_prompt_submit", 3, false}, {"stop", 10, false}, {"session_end", 5, false},
	}},
}

// Names returns the names of the agents that can be connected.
func Names() []string {
	names := make([]string, len(agents))
	for i, a := range agents {
		names[i] = a.name
	}
	return names
}

// Title returns what an agent calls itself, and its name here if that is not known.
func Title(name string) string {
	if a, err := find(name); err == nil {
		return a.title
	}
	return name
}

func find(name string) (*agent, error) {
	i := slices.IndexFunc(agents, func(a agent) bool { return a.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%q is not an agent that can be connected; use one of %s", name, strings.Join(Names(), ", "))
	}
	return &agents[i], nil
}

// home returns the folder of an agent's settings, which an environment variable may move.
func (a *agent) home(moved string) (string, error) {
	if a.name == OpenClaw {
		dir, err := openclaw.StateDir()
		if err != nil {
			err = a.homeless()
		}
		return dir, err
	}
	at := os.Getenv(moved)
	if at != "" {
		at, err := filepath.Abs(at)
		if err != nil || !a.inHome {
			return at, err
		}
		return filepath.Join(at, a.folder), nil
	}
	if data := os.Getenv("APPDATA"); a.name == Goose && runtime.GOOS == "windows" && data != "" {
		return filepath.Join(data, "Block", "goose", "config"), nil
	}
	if xdg := os.Getenv("XDG_CONFIG_HOME"); a.config && filepath.IsAbs(xdg) {
		return filepath.Join(xdg, filepath.Base(a.folder)), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", a.homeless()
	}
	return filepath.Join(home, filepath.FromSlash(a.folder)), nil
}

func (a *agent) homeless() error {
	return fmt.Errorf("cannot tell where the settings of %s are: %s", a.title, a.setHome())
}

// setHome says what to do if the folder of an agent's settings is not known.
func (a *agent) setHome() string {
	if a.moved == "" {
		return "set HOME"
	}
	return "set HOME, or " + a.moved
}

// targets returns the files that connect an agent, in the order in which they are written.
func (a *agent) targets(projectDir string) (list []target, err error) {
	if projectDir != "" {
		if a.name != ClaudeCode {
			return nil, fmt.Errorf("%s is connected for all projects: a project folder is for %s only", a.title, ClaudeCode)
		}
		dir, err := filepath.Abs(projectDir)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is not a folder: name the folder of the project", dir)
		}
		return []target{{path: filepath.Join(dir, a.folder, "settings.local.json"), format: hooks(a)}}, nil
	}
	for _, f := range a.files {
		home, err := a.home(cmp.Or(f.moved, a.moved))
		if err != nil {
			return nil, err
		}
		t := target{path: filepath.Join(home, filepath.FromSlash(f.path)), format: f.format(a)}
		if at := os.Getenv(f.named); at != "" {
			if t.path, err = openclaw.Path(at); err != nil {
				return nil, err
			}
		}
		if f.optional && !exists(t.path) {
			continue
		}
		t.former = f.instead != "" && exists(filepath.Join(home, filepath.FromSlash(f.instead)))
		list = append(list, t)
	}
	return list, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Commands are the commands that a settings file names, each with its arguments. An empty one is absent.
type Commands struct {
	Hook []string // mneme-hook
	MCP  []string // mneme mcp
}

// eventsIn returns at how many of its events an agent runs the hook.
func (a *agent) eventsIn(at map[string]bool) (n int) {
	for _, e := range a.events {
		if at[e.name] {
			n++
		}
	}
	return n
}

// isHook reports whether a command is a hook of ours for this agent.
func (a *agent) isHook(command []string) bool {
	if len(command) < 2 {
		return false
	}
	switch base(command[0]) {
	case hookProgram:
		return slices.Contains(command[1:], a.name)
	case "mneme":
		return command[1] == "hook" && slices.Contains(command[2:], a.name)
	}
	return false
}

// isServer reports whether a command is our MCP server.
func isServer(command []string) bool {
	return len(command) > 1 && base(command[0]) == "mneme" && command[1] == "mcp"
}

// base returns the name of a program, on Windows without .exe.
func base(program string) string { return strings.TrimSuffix(filepath.Base(program), ".exe") }

// errNoHook says that the program of the hooks is missing.
var errNoHook = errors.New("mneme-hook is neither in the folder of mneme nor in PATH: install it there (in the source: go build -o DIR ./cmd/mneme-hook, with the DIR of mneme)")
