package connect

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
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
	Connected bool       `json:"connected" doc:"it runs the hook at all events, or the MCP server if it has no hooks that help; and that program exists"`
	ToolsOnly bool       `json:"tools_only,omitempty" doc:"what its hooks print does not reach the model, so it only gets the MCP server"`
	Files     []string   `json:"files" doc:"that have it run the hook, or the MCP server"`
	Hook      string     `json:"hook,omitempty" doc:"the program of the hook"`
	Command   []string   `json:"-"` // the same, or the MCP server, with its arguments
	Project   string     `json:"-"` // the project's settings file that names the command; "" if it is one of the user's own
	Server    string     `json:"server,omitempty" doc:"URL of the server that the program calls"`
	Tenant    string     `json:"tenant,omitempty" doc:"for which the program calls, if its command names one"`
	Tools     bool       `json:"tools" doc:"mneme's MCP server is set up"`
	Last      *time.Time `json:"last_event" doc:"when one of its hooks last reached the server; null if none has since the server started, or the server does not answer"`
	Untrusted []string   `json:"untrusted,omitempty" doc:"events of hooks that the agent skips because its user does not trust them; only of Codex and Hermes Agent"`
	Keeps     bool       `json:"-"` // its transcripts hold what a hook showed
	events    int        // at which it is to run the hook
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
	Matters  Weight = iota // the agent lacks a part of mneme
	Optional               // the user may want it
	Breaks                 // a program that a settings file names does not run
)

func (l Lack) String() string { return l.What + ": " + l.Remedy }

// Asked reports whether the agent is set up to run a program of ours: a file says so, or a file that may say so can't
// be read.
func (s *State) Asked() bool {
	return len(s.Files) > 0 || s.Found && s.Broken()
}

// Broken reports whether a program that a settings file names does not run.
func (s *State) Broken() bool {
	return slices.ContainsFunc(s.Missing, func(l Lack) bool { return l.Weight == Breaks })
}

// Heard notes when a hook of the agent last reached the server since that started, nil for never.
func (s *State) Heard(at *time.Time) {
	s.Last = at
	if !s.Connected || s.ToolsOnly {
		return
	}
	trust := trusting[s.Agent]
	switch all := s.events == len(s.Untrusted); {
	case len(s.Untrusted) > 0 && (!all || at == nil): // an agent that calls without any trust runs in a mode that needs none
		s.lack(Matters, trust, "%s does not trust the hooks of %s, and skips them", Title(s.Agent), strings.Join(s.Untrusted, ", "))
	case at == nil && trust != "":
		s.lack(Matters, "begin a session; if that changes nothing, "+trust+" again", "no hook has reached the server since it started")
	case at == nil:
		s.lack(Matters, "begin a session", "no hook has reached the server since it started")
	}
}

// trusting says how the user of an agent that skips hooks without trust gives it.
var trusting = map[string]string{
	Codex:  "type /hooks in codex and trust the hooks",
	Hermes: "start hermes in a terminal and allow the hooks when it asks, or once with --accept-hooks",
}

func (s *State) lack(w Weight, remedy, format string, args ...any) {
	s.Missing = append(s.Missing, Lack{fmt.Sprintf(format, args...), remedy, w})
}

// Inspect says how each agent is connected, judging by their settings alone; projectDir is a project that may have its
// own settings. It changes nothing, and reports an unreadable file as something missing.
func Inspect(projectDir string) []State {
	states := make([]State, len(agents))
	for i := range agents {
		states[i] = agents[i].inspect(projectDir)
	}
	return states
}

func (a *agent) inspect(projectDir string) State {
	s := State{Agent: a.name, ToolsOnly: len(a.events) == 0, Keeps: a.keeps, events: len(a.events), Files: []string{}, Missing: []Lack{}}
	home, err := a.home(a.moved)
	if err != nil {
		s.lack(Breaks, a.setHome(), "the folder of its settings is not known")
		return s
	}
	_, inPath := exec.LookPath(a.program)
	_, noFolder := os.Stat(home)
	s.Found = inPath == nil || noFolder == nil
	targets, err := a.targets("")
	if err != nil {
		s.lack(Breaks, a.setHome(), "%v", err)
		return s
	}
	ofUser := len(targets)
	if a.name == ClaudeCode && projectDir != "" {
		if own, err := a.targets(projectDir); err == nil {
			targets = append(targets, own...)
		}
	}
	most := 0
	for i, t := range targets {
		before := len(s.Files)
		if most = max(most, s.look(t)); i >= ofUser && len(s.Files) > before {
			s.Project = t.path
		}
	}
	switch a.name {
	case ClaudeCode:
		s.Tools = claudeServer(home)
	case OpenCode, Kilo:
		s.Tools = opencodeServer(home)
	case Codex:
		s.Untrusted = untrusted(targets)
	case Hermes:
		s.Untrusted = a.unapproved(home, targets[0])
	case OpenClaw:
		settings := targets[len(targets)-1].path
		why, remedy := openClawForbids(settings)
		switch {
		case len(s.Files) == 0:
		case why != "":
			s.lack(Breaks, remedy, "%s", why)
		case !openClawAdmits(settings):
			s.lack(Breaks, "mneme connect openclaw", "%s does not let the plugin see prompts", settings)
		}
	}
	connect := "mneme connect " + a.name
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
	if !s.Tools && a.byHand {
		s.lack(Optional, "mneme mcp --print "+a.name+" says how", "the MCP server, with which the agent can search by itself, is not set up")
	} else if !s.Tools {
		s.lack(Matters, connect, "the MCP server is not set up")
	}
	return s
}

// look adds what a file says, and returns at how many events the file makes the agent run the hook.
func (s *State) look(t target) (events int) {
	connect := "mneme connect " + s.Agent
	file, err := load(t.path)
	if err == nil && !file.there {
		return 0
	}
	var c Commands
	if err == nil {
		c, events, err = t.read(file.raw)
	}
	if err != nil {
		s.lack(Breaks, "correct the file, then "+connect, "%s: %v", t.path, err)
		return 0
	}
	s.Tools = s.Tools || c.MCP != nil
	command := c.Hook
	if s.ToolsOnly {
		command = c.MCP
	}
	if command == nil {
		return 0
	}
	s.Files, s.Command = append(s.Files, t.path), command
	if !s.ToolsOnly {
		s.Hook = command[0]
	}
	s.Server, s.Tenant = cmp.Or(flag(command, "--url"), ring.DefaultURL), flag(command, "--tenant")
	if _, err := exec.LookPath(command[0]); err != nil {
		s.lack(Breaks, connect, "%s runs %s, which is not there or can't be run", t.path, command[0])
	}
	return events
}

// flag returns the value of a flag in a command, "" if the command does not have it.
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
	c, _, err := servers(nil).read(file.raw)
	return err == nil && c.MCP != nil
}

// opencodeServer reports whether the settings of opencode, or of Kilo, name the MCP server.
func opencodeServer(home string) bool {
	for _, name := range []string{"opencode.json", "opencode.jsonc", "config.json", "kilo.json", "kilo.jsonc"} {
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

// Next returns what a user should know or must still do after [Connect], one line each.
func Next(o Options) (lines []string) {
	switch o.Agent {
	case ClaudeCode:
		a, err := find(o.Agent)
		if err != nil {
			return nil
		}
		home, err := a.home(a.moved)
		if err != nil || !claudeServer(home) {
			if command, err := CommandLine(append([]string{"claude", "mcp", "add", "--scope", "user", "mneme", "--", o.Mneme, "mcp"}, o.Flags...)); err == nil {
				lines = append(lines, "To let the agent also search by itself: "+command)
			}
		}
		switch {
		case o.ProjectDir != "":
		case isElsewhere(o.Flags):
			lines = append(lines, reads(o))
		default:
			lines = append(lines, reads(o)+" For the sessions of one project only: mneme disconnect claude-code, then mneme connect claude-code --project-dir DIR")
		}
	case OpenCode:
		lines = append(lines, "To let the agent also search by itself: mneme mcp --print opencode shows what to add to opencode.json.", reads(o)+" An opencode that runs loads the plugin when it is started again.")
	case Kilo:
		lines = append(lines, "To let the agent also search by itself: mneme mcp --print kilo shows what to add to kilo.json.", reads(o)+" A Kilo that runs loads the plugin when it is started again.")
	case Pi:
		lines = append(lines, "In a pi that runs, type /reload.", reads(o))
	case KimiCode:
		lines = append(lines, "Start a new session: what mneme knows is shown with its first prompt, and Kimi Code displays it to you too. In scripts that read the output of kimi -p, set MNEME_HOOK=off.", reads(o))
	case Hermes:
		lines = append(lines, "Start hermes in a terminal: it asks once for each of the three hooks whether it may run. A gateway or a script can't be asked and skips them: run hermes once with --accept-hooks. Then begin a new session: what mneme knows is sent along with its first prompt.", reads(o))
	case Codex:
		lines = append(lines, "Start codex and trust the hooks when it asks, or with /hooks: Codex skips hooks that are not trusted, and codex exec does so without a word. Do so again after each change of them.", reads(o))
	case Cursor:
		lines = append(lines, "Open a new chat: what mneme knows is shown at its start.", reads(o))
	case OpenClaw:
		if a, err := find(o.Agent); err == nil {
			if targets, err := a.targets(""); err == nil {
				if why, remedy := openClawForbids(targets[len(targets)-1].path); why != "" {
					lines = append(lines, "OpenClaw will not load the plugin, because "+why+": "+remedy+".")
				}
			}
		}
		lines = append(lines, "A gateway that runs loads the plugin by itself, or after openclaw plugins reload mneme.", reads(o))
	case Cline:
		lines = append(lines, "Cline gets mneme's tools, because what its hooks print does not reach the model. For its extension in an editor, add what mneme mcp --print cline shows.", reads(o))
	case Goose:
		lines = append(lines, "goose gets mneme's tools, because what its hooks print does not reach the model.", reads(o))
	case OpenHands:
		lines = append(lines, "In a project with an .openhands/hooks.json of its own, OpenHands runs only the hooks of that file.", reads(o))
	default:
		lines = append(lines, reads(o))
	}
	return lines
}

// reads says what connecting an agent for all projects leads to.
func reads(o Options) string {
	if isElsewhere(o.Flags) {
		if command, err := CommandLine(append([]string{o.Mneme, "watch"}, o.Flags...)); err == nil {
			return fmt.Sprintf("The server is on another machine and can't read the sessions of %s here: keep %s running, which sends them, earlier ones too.", Title(o.Agent), command)
		}
	}
	verb := "now reads"
	if o.DryRun {
		verb = "would then read"
	}
	return fmt.Sprintf("The server, if it is mneme up on this machine, %s all sessions of %s, earlier ones too.", verb, Title(o.Agent))
}

// isElsewhere reports whether flags name a server that is not on loopback.
func isElsewhere(flags []string) bool {
	for i, flag := range flags {
		text, found := strings.CutPrefix(flag, "--url=")
		if flag == "--url" && i+1 < len(flags) {
			text, found = flags[i+1], true
		}
		if !found {
			continue
		}
		server, err := url.Parse(text)
		if err != nil {
			return false
		}
		ip, err := netip.ParseAddr(server.Hostname())
		return server.Hostname() != "localhost" && (err != nil || !ip.IsLoopback())
	}
	return false
}
