package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/internal/hook/ring"
	"mneme.dev/mneme/internal/httpapi"
)

// agentArgs say which agents' settings to change, and in which of their files.
type agentArgs struct {
	Agents     []string `arg:"" optional:"" name:"agent" help:"The agents, one or more of: ${agents}." enum:"${agents}"`
	All        bool     `help:"Instead of naming agents: all that are on this machine, as mneme connected shows them."`
	ProjectDir string   `help:"Only in this project: the file .claude/settings.local.json in this folder. For claude-code." placeholder:"DIR" complete:"directory"`
	DryRun     bool     `help:"Show the changes as a diff and write nothing."`
}

// ConnectCmd connects an agent.
type ConnectCmd struct{ agentArgs }

func (*ConnectCmd) Help() string {
	return `Changes the agent's settings so that it runs mneme-hook at its events. mneme up then reads the agent's sessions as they grow. The agent sees the context of its project when a session begins, and at a prompt what fits from earlier sessions. The command also adds the MCP server, with which the agent can search by itself; for Claude Code, opencode and Kilo it says how to add it. Cline and goose get only the MCP server, because what their hooks print does not reach the model.

    claude-code   ~/.claude/settings.json, or in CLAUDE_CONFIG_DIR
    codex         ~/.codex/hooks.json and config.toml, or in CODEX_HOME; trust the hooks with /hooks in codex
    gemini-cli    ~/.gemini/settings.json, or in .gemini in GEMINI_CLI_HOME
    qwen-code     ~/.qwen/settings.json, or in QWEN_HOME
    opencode      a plugin, ~/.config/opencode/plugins/mneme.js, or in OPENCODE_CONFIG_DIR
    kilo          a plugin, ~/.config/kilo/plugins/mneme.js, or in KILO_CONFIG_DIR
    kimi-code     ~/.kimi-code/config.toml and mcp.json, or in KIMI_CODE_HOME
    hermes        ~/.hermes/config.yaml, or in HERMES_HOME
    droid         ~/.factory/settings.json and mcp.json, or in .factory in FACTORY_HOME_OVERRIDE; hooks.json if it exists
    pi            an extension, ~/.pi/agent/extensions/mneme.js, and mcp.json, or in PI_CODING_AGENT_DIR
    cursor        ~/.cursor/hooks.json and mcp.json; its sessions are not recorded
    copilot-cli   ~/.copilot/hooks/mneme.json and mcp-config.json, or in COPILOT_HOME
    cline         ~/.cline/data/settings/cline_mcp_settings.json, or in CLINE_DATA_DIR
    goose         ~/.config/goose/config.yaml, or in XDG_CONFIG_HOME
    openhands     ~/.openhands/hooks.json and mcp.json, or in OH_PERSISTENCE_DIR and OPENHANDS_PERSISTENCE_DIR

Everything else in these files stays as it is, comments included. Before the first change a copy of the file is saved in the same folder, with the suffix .mneme-backup. A second call changes nothing. A file that can't be read is left alone.

If that server is mneme up on this machine, it then reads all sessions of the agent, earlier ones too; with --project-dir only those of the project.

The hook goes to --url with --tenant and --token-file. They are written into the settings if they are not the defaults; a token or --ca-file is not: put MNEME_TOKEN or MNEME_CA_FILE into the agent's environment.

Examples:

    mneme connect claude-code
    mneme connect claude-code codex
    mneme connect --all --dry-run
    mneme connect codex --url https://mneme.example.com --token-file ~/.mneme-token`
}

// DisconnectCmd undoes what [ConnectCmd] did.
type DisconnectCmd struct{ agentArgs }

func (*DisconnectCmd) Help() string {
	return `Removes what mneme connect added, and nothing else. If a file has not been changed since, it is byte for byte as before. Folders that mneme connect made are removed if they are empty.

Examples:

    mneme disconnect claude-code
    mneme disconnect gemini-cli --dry-run
    mneme disconnect --all                  wherever mneme connect wrote something`
}

// connection is what connect --json and disconnect --json print for each agent.
type connection struct {
	Agent string           `json:"agent"`
	Files []connect.Change `json:"files"`
	Next  []string         `json:"next"` // what the user has still to do
}

func (c *ConnectCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	agents, err := c.agents(func(s *connect.State) bool { return s.Found })
	if err != nil {
		return err
	}
	if len(agents) == 0 {
		return errors.New("no agent was found on this machine: name one")
	}
	if err := g.given.check(&g.Client); err != nil {
		return err
	}
	flags, err := serverFlags(g)
	if err != nil {
		return err
	}
	err = c.each(agents, func(o connect.Options) error {
		o.Flags = flags
		if o.Hook, err = connect.FindHook(o.Mneme); err != nil {
			return err
		}
		files, err := connect.Connect(ctx, o)
		if err != nil {
			return err
		}
		next := connect.Next(o)
		if g.JSON {
			next = append(unwritten(g), next...)
		}
		return show(g, t, connection{o.Agent, files, next})
	})
	if !g.JSON {
		for _, line := range unwritten(g) {
			t.say("%s", line)
		}
	}
	return err
}

func (c *DisconnectCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	agents, err := c.agents((*connect.State).Asked)
	if err != nil {
		return err
	}
	if len(agents) == 0 {
		t.say("No agent is connected.")
	}
	return c.each(agents, func(o connect.Options) error {
		files, err := connect.Disconnect(ctx, o)
		if err != nil {
			return err
		}
		return show(g, t, connection{o.Agent, files, []string{}})
	})
}

// agents returns the agents to change: those that are named, each once, or with --all those that are in a state, perhaps none.
func (a *agentArgs) agents(in func(*connect.State) bool) (list []string, err error) {
	switch {
	case a.All && len(a.Agents) > 0:
		return nil, usageError("name agents or give --all, not both")
	case !a.All && len(a.Agents) == 0:
		return nil, usageError("name an agent, or give --all: mneme connected lists them")
	case !a.All:
		for _, agent := range a.Agents {
			if !slices.Contains(list, agent) {
				list = append(list, agent)
			}
		}
	default:
		states := connect.Inspect("")
		for i := range states {
			if in(&states[i]) {
				list = append(list, states[i].Agent)
			}
		}
	}
	for _, agent := range list {
		if a.ProjectDir != "" && agent != connect.ClaudeCode {
			return nil, usageError("--project-dir is for claude-code: %s has one settings file for all projects", agent)
		}
	}
	return list, nil
}

// each changes the settings of agents. One that can't be changed does not keep the others from it.
func (a *agentArgs) each(agents []string, change func(connect.Options) error) error {
	var failed []error
	for _, agent := range agents {
		o, err := a.options(agent)
		if err == nil {
			err = change(o)
		}
		if err != nil && len(agents) > 1 {
			err = fmt.Errorf("%s: %w", agent, err)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (a *agentArgs) options(agent string) (connect.Options, error) {
	o := connect.Options{Agent: agent, ProjectDir: a.ProjectDir, DryRun: a.DryRun}
	var err error
	project := o.ProjectDir
	if project != "" {
		if project, err = filepath.Abs(project); err != nil {
			return o, err
		}
	}
	o.Made, _ = stateFile("connect", o.Agent, project) // without a home folder nothing is remembered
	o.Mneme, err = thisProgram()
	return o, err
}

// serverFlags returns the flags with which the hook and the MCP server reach the same server as this command.
func serverFlags(g *Globals) (flags []string, err error) {
	if g.URL != ring.DefaultURL {
		flags = append(flags, "--url", g.URL)
	}
	if g.Tenant != "" {
		flags = append(flags, "--tenant", g.Tenant)
	}
	if g.TokenFile != "" {
		path, err := filepath.Abs(g.TokenFile)
		if err != nil {
			return nil, err
		}
		flags = append(flags, "--token-file", path)
	}
	return flags, nil
}

// unwritten says which flags are not in the configuration of an agent, and what to do instead.
func unwritten(g *Globals) (lines []string) {
	if g.Token.Token != "" {
		lines = append(lines, "The token is not written: unless MNEME_TOKEN is in the agent's environment too, the server answers 401. Save it in a file, and run this again with --token-file.")
	}
	if g.CAFile != "" {
		lines = append(lines, "--ca-file is not written: put MNEME_CA_FILE into the agent's environment.")
	}
	return lines
}

// show prints what was done.
func show(g *Globals, t *terminal, c connection) error {
	if c.Next == nil {
		c.Next = []string{}
	}
	if g.JSON {
		return t.json(c)
	}
	for _, f := range c.Files {
		if f.Diff != "" {
			if err := t.text(f.Diff); err != nil {
				return err
			}
			continue
		}
		line := f.Action + "  " + f.Path
		if f.Backup != "" {
			line += "  (saved in " + f.Backup + ")"
		}
		if err := t.text(line + "\n"); err != nil {
			return err
		}
	}
	for _, next := range c.Next {
		t.say("%s", next)
	}
	return nil
}

// ConnectedCmd lists agents.
type ConnectedCmd struct {
	ProjectDir string `help:"Also look at the settings of this project." default:"." placeholder:"DIR" complete:"directory"`
}

func (*ConnectedCmd) Help() string {
	return `For each agent: whether it is on this machine, which of its files run the hook or the MCP server, when a hook last reached the server, what is missing, and which folders of transcripts the server follows. Unless a URL or a token is given, it asks the server that an agent is connected to, with the token file of that agent's hook. A server that does not answer is not an error. It changes nothing.

Examples:

    mneme connected
    mneme connected --json | jq '.agents[] | select(.connected)'`
}

// connections is the output of connected --json.
type connections struct {
	Agents  []connect.State   `json:"agents"`
	Capture *httpapi.Captured `json:"capture,omitempty"`      // what the server read of transcripts
	Server  string            `json:"server_error,omitempty"` // why the server does not say when hooks fired
}

func (c *ConnectedCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	answer := connections{Agents: connect.Inspect(c.ProjectDir)}
	fired, captured, err := firedHooks(ctx, asConnected(g, answer.Agents))
	if err != nil {
		answer.Server = err.Error()
	}
	answer.Capture = captured
	for i := range answer.Agents {
		if a := &answer.Agents[i]; err == nil {
			a.Heard(hook.Newest(fired, a.Agent))
		}
	}
	if g.JSON {
		return t.json(answer)
	}
	return c.print(t, answer)
}

// asConnected returns the flags for the server that hooks reach, unless the user names a server or a token: the first that an
// agent is connected to. The settings of a project choose none, because a repository can ship them.
func asConnected(g *Globals, agents []connect.State) *Globals {
	if g.given["MNEME_URL"] || os.Getenv("MNEME_URL") != "" || g.hasToken() {
		return g
	}
	for i := range agents {
		if a := &agents[i]; len(a.Command) > 0 && a.Project == "" {
			o, _ := ring.FromArguments(a.Command[1:])
			to := &Globals{Client: g.Client, JSON: g.JSON, given: g.given}
			to.URL, to.TokenFile, to.Tenant = o.URL, o.TokenFile, cmp.Or(g.Tenant, o.Tenant)
			return to
		}
	}
	return g
}

// firedHooks asks the server which hooks have fired, the newest first, and what it read of transcripts.
func firedHooks(ctx context.Context, g *Globals) ([]hook.Fired, *httpapi.Captured, error) {
	api, err := g.client()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, serverVersionWithin)
	defer cancel()
	var answer httpapi.Hooks
	err = api.get(ctx, "/v1/hooks", parameters{"tenant": g.Tenant}, &answer)
	return answer.Sessions, answer.Capture, err
}

func (c *ConnectedCmd) print(t *terminal, answer connections) error {
	yes := map[bool]string{true: "yes", false: "no"}
	rows := make([][]any, len(answer.Agents))
	for i, a := range answer.Agents {
		last := ""
		switch {
		case a.Last == nil:
		case t.isPerson(): // to the second, because it must change with the next prompt
			last = a.Last.Local().Format(time.DateTime)
		default:
			last = a.Last.Format(time.RFC3339Nano)
		}
		rows[i] = []any{a.Agent, yes[a.Found], yes[a.Connected], yes[a.Tools], last}
	}
	if err := t.table([]column{{Name: "AGENT"}, {Name: "FOUND"}, {Name: "CONNECTED"}, {Name: "TOOLS"}, {Name: "LAST EVENT"}}, rows); err != nil {
		return err
	}
	for _, a := range answer.Agents {
		for _, file := range a.Files {
			t.say("%s: %s runs %s", a.Agent, file, a.Command[0])
		}
		for _, missing := range a.Missing {
			t.say("%s: %s", a.Agent, missing)
		}
	}
	if s := answer.Capture; s != nil {
		t.say("Transcripts since the server started: %s published, %s refused", counted(int(s.Published), "event"), counted(s.RefusedLines, "line"))
		for _, f := range s.Followed {
			t.say("%s: %s is followed: %s", f.Agent, f.Folder, counted(f.Files, "transcript"))
			if f.Unreadable > 0 {
				t.say("%s: %s in it can't be read: see the log of mneme up", f.Agent, counted(f.Unreadable, "path"))
			}
		}
		if s.History > 0 {
			t.say("Earlier sessions still to be read: %s", counted(s.History, "transcript"))
		}
		if s.LastError != "" {
			t.say("The newest problem with one, at %s: %s", s.LastErrorTime.Local().Format(time.DateTime), s.LastError)
		}
	}
	if answer.Server != "" {
		t.say("When hooks last fired is not known: %s", answer.Server)
	}
	return nil
}
