// Package connect writes mneme into the settings of coding agents, and takes it out again. The agents then run
// mneme-hook at their events, and those that allow it here also get mneme's tools by MCP.
//
// A file of settings belongs to its user. So what connect does not know stays byte for byte, a file that it can't
// read it leaves alone, and Disconnect removes what Connect added and nothing else:
//
//   - JSON is edited in place; order, formatting and comments stay.
//   - The first change saves the file beside it, with the suffix .mneme-backup.
//   - If connecting the saved file would give the present one, Disconnect brings it back byte for byte. Else it takes
//     its own entries out of the present file.
//   - Hooks are recognised by the program that they run, mneme-hook, so entries made by hand count too.
package connect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the agents that can be connected.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	GeminiCLI  = "gemini-cli"
	OpenCode   = "opencode"
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
	folder  string // of its settings, in the home directory
	moved   string // environment variable that names another folder, or another home directory if inHome
	inHome  bool
	config  bool   // XDG_CONFIG_HOME moves the folder too
	file    string // of the hooks
	shell   bool   // runs commands with a shell; else a program and its arguments
	label   string // name of the hook, if the agent shows one
	servers bool   // file also holds the MCP servers
	events  []event
}

// agents are those that can be connected. Timeouts only matter if something is badly wrong: a hook ends within 300 ms.
var agents = []agent{
	{name: ClaudeCode, title: "Claude Code", program: "claude", folder: ".claude", moved: "CLAUDE_CONFIG_DIR", file: "settings.json", events: []event{
		{"SessionStart", 5, false}, {"UserPromptSubmit", 3, false}, {"Stop", 10, true}, {"SubagentStop", 10, true}, {"SessionEnd", 5, false}, // waited for: the agent ends with it
	}},
	{name: Codex, title: "Codex", program: "codex", folder: ".codex", moved: "CODEX_HOME", file: "hooks.json", shell: true, events: []event{
		{"SessionStart", 5, false}, {"UserPromptSubmit", 3, false}, {"Stop", 10, false}, // it runs no asynchronous hooks
	}},
	{name: GeminiCLI, title: "Gemini CLI", program: "gemini", folder: ".gemini", moved: "GEMINI_CLI_HOME", inHome: true, file: "settings.json", shell: true, label: "mneme", servers: true, events: []event{
		{"SessionStart", 5000, false}, {"BeforeAgent", 3000, false}, {"AfterAgent", 10000, false}, {"SessionEnd", 5000, false},
	}},
	{name: OpenCode, title: "opencode", program: "opencode", folder: ".config/opencode", moved: "OPENCODE_CONFIG_DIR", config: true, file: "plugins/mneme.js", events: []event{
		{"SessionStart", 3000, false}, {"UserPromptSubmit", 3000, false}, {"Stop", 3000, true},
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

// Title returns an agent's own name, and its name here if it is not known.
func Title(name string) string {
	if a, err := find(name); err == nil {
		return a.title
	}
	return name
}

func find(name string) (*agent, error) {
	i := slices.IndexFunc(agents, func(a agent) bool { return a.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%q is not an agent that can be connected: name one of %s", name, strings.Join(Names(), ", "))
	}
	return &agents[i], nil
}

// home returns the folder of an agent's settings.
func (a *agent) home() (string, error) {
	at := os.Getenv(a.moved)
	if at != "" {
		at, err := filepath.Abs(at)
		if err != nil || !a.inHome {
			return at, err
		}
		return filepath.Join(at, a.folder), nil
	}
	if xdg := os.Getenv("XDG_CONFIG_HOME"); a.config && filepath.IsAbs(xdg) {
		return filepath.Join(xdg, filepath.Base(a.folder)), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", fmt.Errorf("where the settings of %s are is not known: set HOME, or %s", a.title, a.moved)
	}
	return filepath.Join(home, a.folder), nil
}

// targets returns the files that connect an agent, in the order in which they are written.
func (a *agent) targets(projectDir string) ([]target, error) {
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
		return []target{{filepath.Join(dir, a.folder, "settings.local.json"), jsonFile{a}}}, nil
	}
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(home, filepath.FromSlash(a.file))
	switch a.name {
	case OpenCode:
		return []target{{path, pluginFile{a}}}, nil
	case Codex:
		return []target{{path, jsonFile{a}}, {filepath.Join(home, "config.toml"), tomlFile{}}}, nil
	}
	return []target{{path, jsonFile{a}}}, nil
}

// Commands are the commands that a file of settings names, each with its arguments. An empty one is not there.
type Commands struct {
	Hook []string // mneme-hook
	MCP  []string // mneme mcp
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
var errNoHook = errors.New("mneme-hook is neither beside mneme nor in PATH: install it there (in the source: go build -o DIR ./cmd/mneme-hook, with the DIR of mneme)")
