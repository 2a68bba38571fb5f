package connect

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/hook/ring"
)

// State says how an agent is connected.
type State struct {
	Agent     string     `json:"agent"`
	Found     bool       `json:"found" doc:"its program is in PATH, or its folder of settings exists"`
	Connected bool       `json:"connected" doc:"it runs the hook at all events, and the program of the hook exists"`
	Files     []string   `json:"files" doc:"that have it run the hook"`
	Hook      string     `json:"hook,omitempty" doc:"the program that it runs"`
	Command   []string   `json:"-"` // the same with its arguments
	Server    string     `json:"server,omitempty" doc:"URL of the server that the hook calls"`
	Tenant    string     `json:"tenant,omitempty" doc:"for which the hook calls, if its command names one"`
	Tools     bool       `json:"tools" doc:"mneme's MCP server is set up"`
	Last      *time.Time `json:"last_event" doc:"when one of its hooks last reached the server; null if none has since the server started, or the server does not answer"`
	Missing   []Lack     `json:"missing"`
}

// Lack is something that is missing, and what to do about it.
type Lack struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`
	Weight Weight `json:"-"`
}

// Weight says how much it matters that something is missing.
type Weight int

// Weights.
const (
	Matters  Weight = iota // the agent misses a part
	Optional               // the user may want it
	Breaks                 // hooks of a file don't run
)

func (l Lack) String() string { return l.What + ": " + l.Remedy }

// Asked reports whether the agent is to run the hook: a file says so, or one that may say so can't be read.
func (s *State) Asked() bool {
	return len(s.Files) > 0 || s.Found && s.Broken()
}

// Broken reports whether hooks of a file don't run.
func (s *State) Broken() bool {
	return slices.ContainsFunc(s.Missing, func(l Lack) bool { return l.Weight == Breaks })
}

// Heard notes when a hook of the agent last reached the server since that started, nil for never.
func (s *State) Heard(at *time.Time) {
	s.Last = at
	if at != nil || !s.Connected {
		return
	}
	remedy := "begin a session"
	if s.Agent == Codex {
		remedy = "begin a session; if that changes nothing, type /hooks in codex and trust them, because Codex skips hooks that are not trusted without a word"
	}
	s.lack(Matters, remedy, "no hook has reached the server since it started")
}

func (s *State) lack(w Weight, remedy, format string, args ...any) {
	s.Missing = append(s.Missing, Lack{fmt.Sprintf(format, args...), remedy, w})
}

// Inspect says how each agent is connected, from their settings alone; projectDir is a project that may have settings of its
// own. It changes nothing, and a file that can't be read is something that is missing.
func Inspect(projectDir string) []State {
	states := make([]State, len(agents))
	for i := range agents {
		states[i] = agents[i].inspect(projectDir)
	}
	return states
}

func (a *agent) inspect(projectDir string) State {
	s := State{Agent: a.name, Files: []string{}, Missing: []Lack{}}
	connect := "mneme connect " + a.name
	home, err := a.home()
	if err != nil {
		s.lack(Breaks, "set HOME, or "+a.moved, "the folder of its settings is not known")
		return s
	}
	_, inPath := exec.LookPath(a.program)
	_, noFolder := os.Stat(home)
	s.Found = inPath == nil || noFolder == nil
	targets, err := a.targets("")
	if err != nil {
		s.lack(Breaks, "set HOME, or "+a.moved, "%v", err)
		return s
	}
	if a.name == ClaudeCode && projectDir != "" {
		if own, err := a.targets(projectDir); err == nil {
			targets = append(targets, own...)
		}
	}
	most := 0
	for _, t := range targets {
		file, err := load(t.path)
		if err == nil && !file.there {
			continue
		}
		var c Commands
		var n int
		if err == nil {
			c, n, err = t.read(file.raw)
		}
		if err != nil {
			s.lack(Breaks, "correct the file, then "+connect, "%s: %v", t.path, err)
			continue
		}
		s.Tools = s.Tools || c.MCP != nil
		if c.Hook == nil {
			continue
		}
		s.Files, s.Hook, s.Command, most = append(s.Files, t.path), c.Hook[0], c.Hook, max(most, n)
		s.Server, s.Tenant = cmp.Or(flag(c.Hook, "--url"), ring.DefaultURL), flag(c.Hook, "--tenant")
		if _, err := exec.LookPath(c.Hook[0]); err != nil {
			s.lack(Breaks, connect, "%s runs %s, which is not there or can't be run", t.path, c.Hook[0])
		}
	}
	switch a.name {
	case ClaudeCode:
		s.Tools = claudeServer(home)
	case OpenCode:
		s.Tools = opencodeServer(home)
	}
	switch {
	case len(s.Files) == 0:
		if !s.Broken() && s.Found {
			s.lack(Optional, connect, "it is not connected")
		}
		return s
	case most < len(a.events):
		s.lack(Matters, connect, "the hook runs at %d of %d events", most, len(a.events))
	}
	s.Connected = !s.Broken() && most == len(a.events)
	if !s.Tools && (a.name == ClaudeCode || a.name == OpenCode) {
		s.lack(Optional, "mneme mcp --print "+a.name+" says how", "the MCP server, with which the agent can search by itself, is not set up")
	} else if !s.Tools {
		s.lack(Matters, connect, "the MCP server is not set up")
	}
	return s
}

// flag returns what a command gives to a flag, "" if it does not have it.
func flag(command []string, name string) string {
	for i, arg := range command {
		switch at, value, joined := strings.Cut(arg, "="); {
		case at != name:
		case joined:
			return value
		case i+1 < len(command):
			return command[i+1]
		}
	}
	return ""
}

// claudeFile is the file in which Claude Code keeps its MCP servers, in the home directory or in CLAUDE_CONFIG_DIR. The
// agent writes it all the time, so it is only read here.
const claudeFile = ".claude.json"

func claudeServer(home string) bool {
	dir := home
	if os.Getenv("CLAUDE_CONFIG_DIR") == "" {
		dir = filepath.Dir(home)
	}
	file, err := load(filepath.Join(dir, claudeFile))
	if err != nil || !file.there {
		return false
	}
	c, _, err := jsonFile{&agent{servers: true}}.read(file.raw)
	return err == nil && c.MCP != nil
}

// opencodeServer reports whether the settings of opencode name the MCP server.
func opencodeServer(home string) bool {
	for _, name := range []string{"opencode.json", "opencode.jsonc", "config.json"} {
		file, err := load(filepath.Join(home, name))
		if err != nil || !file.there {
			continue
		}
		d, err := parse(file.raw)
		if err != nil {
			continue
		}
		if servers, err := d.top.find("mcp"); err == nil && servers != nil && servers.value("mneme") != nil {
			return true
		}
	}
	return false
}

// Next returns what a user should know or still has to do after [Connect], one line each.
func Next(o Options) (lines []string) {
	switch o.Agent {
	case ClaudeCode:
		a, err := find(o.Agent)
		if err != nil {
			return nil
		}
		home, err := a.home()
		if err != nil || !claudeServer(home) {
			if command, err := commandLine(append([]string{"claude", "mcp", "add", "--scope", "user", "mneme", "--", o.Mneme, "mcp"}, o.Flags...)); err == nil {
				lines = append(lines, "To let the agent also search by itself: "+command)
			}
		}
		if o.ProjectDir == "" {
			lines = append(lines, reads(o.Agent)+" For the sessions of one project only: mneme disconnect claude-code, then mneme connect claude-code --project-dir DIR")
		}
	case OpenCode:
		lines = append(lines, "To let the agent also search by itself: mneme mcp --print opencode shows what to add to opencode.json.", reads(o.Agent)+" An opencode that runs loads the plugin when it is started again.")
	case GeminiCLI:
		lines = append(lines, reads(o.Agent))
	case Codex:
		lines = append(lines, "Start codex and trust the hooks with /hooks: Codex skips hooks that are not trusted without a word. Do so again after each change of them.", reads(o.Agent))
	}
	return lines
}

// reads tells what connecting an agent for all projects leads to.
func reads(agent string) string {
	return fmt.Sprintf("The server, if it is mneme up on this machine, now reads all sessions of %s, those from before too.", Title(agent))
}
