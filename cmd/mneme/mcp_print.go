package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/connect"
)

// mcpClient is a program that starts MCP servers.
type mcpClient struct {
	name      string
	where     string // the file that the configuration goes into
	add       string // the client's command that adds a server for all projects, followed by the server's, "" if it has none
	workspace string // what the client replaces with the folder that it works in, "" if it starts servers there
	show      func(command string, args []string) any
	format    func(any) (string, error)
}

// common is the form that most clients have.
func common(command string, args []string) any {
	return map[string]any{"mcpServers": map[string]any{"mneme": map[string]any{"command": command, "args": args}}}
}

// opencodes is the form of opencode, and of Kilo.
func opencodes(command string, args []string) any {
	return map[string]any{"mcp": map[string]any{"mneme": map[string]any{"type": "local", "command": append([]string{command}, args...), "enabled": true}}}
}

// mcpClients are the clients that --print knows.
var mcpClients = []mcpClient{
	{name: "claude-code", where: ".mcp.json in the repository", add: "claude mcp add --scope user mneme --", show: common, format: asJSON},
	{name: "codex", where: "~/.codex/config.toml", format: asTOML},
	{name: "cursor", where: "~/.cursor/mcp.json, or .cursor/mcp.json in the repository", workspace: "${workspaceFolder}", show: common, format: asJSON},
	{name: "vscode", where: ".vscode/mcp.json in the repository", workspace: "${workspaceFolder}", format: asJSON, show: func(command string, args []string) any {
		return map[string]any{"servers": map[string]any{"mneme": map[string]any{"type": "stdio", "command": command, "args": args}}}
	}},
	{name: "gemini-cli", where: "~/.gemini/settings.json, or .gemini/settings.json in the repository", show: common, format: asJSON},
	{name: "qwen-code", where: "~/.qwen/settings.json, or .qwen/settings.json in the repository", format: asJSON, show: func(command string, args []string) any {
		return map[string]any{"mcpServers": map[string]any{"mneme": map[string]any{"command": command, "args": args, "alwaysLoadTools": true}}}
	}},
	{name: "opencode", where: "~/.config/opencode/opencode.json, or opencode.json in the repository", show: opencodes, format: asJSON},
	{name: "kilo", where: "~/.config/kilo/kilo.json, or kilo.json in the repository", show: opencodes, format: asJSON},
	{name: "pi", where: "~/.pi/agent/mcp.json, or .pi/mcp.json in the repository", format: asJSON, show: func(command string, args []string) any {
		return map[string]any{"mcpServers": map[string]any{"mneme": map[string]any{"command": command, "args": args, "exposure": "direct"}}}
	}},
	{name: "kimi-code", where: "~/.kimi-code/mcp.json, or .kimi-code/mcp.json in the repository", show: common, format: asJSON},
	{name: "hermes", where: "~/.hermes/config.yaml", format: asYAML(connect.Hermes)},
	{name: "droid", where: "~/.factory/mcp.json, or .factory/mcp.json in the repository", add: "droid mcp add mneme", format: asJSON, show: func(command string, args []string) any {
		return map[string]any{"mcpServers": map[string]any{"mneme": map[string]any{"type": "stdio", "command": command, "args": args}}}
	}},
	{name: "copilot-cli", where: "~/.copilot/mcp-config.json", format: asJSON, show: func(command string, args []string) any {
		return map[string]any{"mcpServers": map[string]any{"mneme": map[string]any{"type": "local", "command": command, "args": args, "tools": []string{"*"}}}}
	}},
	{name: "cline", where: "~/.cline/data/settings/cline_mcp_settings.json; in an editor what its extension shows at Configure MCP Servers", show: common, format: asJSON},
	{name: "openhands", where: "~/.openhands/mcp.json", show: common, format: asJSON},
	{name: "continue", where: "~/.continue/config.yaml", format: asYAMLList},
	{name: "openclaw", where: "~/.openclaw/openclaw.json", format: asJSON, show: func(command string, args []string) any {
		return map[string]any{"mcp": map[string]any{"servers": map[string]any{"mneme": map[string]any{"command": command, "args": args}}}}
	}},
	{name: "goose", where: "~/.config/goose/config.yaml", format: asYAML(connect.Goose)},
}

// mcpClientNames lists them for the help.
func mcpClientNames() string {
	var names []string
	for _, c := range mcpClients {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// launch is how a client starts this program.
type launch struct {
	command string
	args    []string
}

// thisProgram returns the absolute path of this program, by which others can start it for long: see [connect.Lasting].
func thisProgram() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(program); err == nil {
		program = resolved
	}
	return connect.Lasting(program, filepath.Base(os.Args[0]), os.Args[0]), nil
}

// print prints what to paste, and on stderr where, and what else would do.
func (c *MCPCmd) print(g *Globals, t *terminal) error {
	of := mcpClients[slices.IndexFunc(mcpClients, func(m mcpClient) bool { return m.name == c.Print })]
	start, err := c.launched(g, of)
	if err != nil {
		return err
	}
	var value any = start
	if of.show != nil {
		value = of.show(start.command, start.args)
	}
	text, err := of.format(value)
	if err != nil {
		return err
	}
	for _, line := range unwritten(g) {
		t.say("%s", line)
	}
	t.say("This goes into %s:", of.where)
	if err := t.text(text); err != nil || of.add == "" {
		return err
	}
	command, err := connect.CommandLine(append([]string{start.command}, start.args...))
	if err != nil {
		return err
	}
	t.say("\nOr run this, which adds it for all repositories:\n\n    %s %s", of.add, command)
	return nil
}

// launched returns how a client starts this program.
func (c *MCPCmd) launched(g *Globals, by mcpClient) (start launch, err error) {
	if start.command, err = thisProgram(); err != nil { // clients with windows do not have the PATH of a shell
		return start, err
	}
	start.args = []string{"mcp"}
	if project := c.Project; project != "" {
		if project, err = c.project(); err != nil {
			return start, err
		}
		start.args = append(start.args, "--project", project)
	} else if by.workspace != "" {
		start.args = append(start.args, "--project", by.workspace)
	}
	if c.ReadOnly {
		start.args = append(start.args, "--read-only")
	}
	if g.given["MNEME_URL"] || os.Getenv("MNEME_URL") != "" {
		start.args = append(start.args, "--url", g.URL)
	}
	if g.Tenant != "" {
		start.args = append(start.args, "--tenant", g.Tenant)
	}
	if g.TokenFile != "" {
		path, err := filepath.Abs(g.TokenFile)
		if err != nil {
			return start, err
		}
		start.args = append(start.args, "--token-file", path)
	}
	return start, nil
}

func asJSON(value any) (string, error) {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(value)
	return w.String(), err
}

func asTOML(value any) (string, error) {
	s := value.(launch)
	return connect.TOML(s.command, s.args), nil
}

// asYAMLList is the form of Continue, whose servers are a list. A string of JSON is one of YAML too.
func asYAMLList(value any) (string, error) {
	s := value.(launch)
	command, err := json.Marshal(s.command)
	if err != nil {
		return "", err
	}
	args, err := json.Marshal(s.args)
	return fmt.Sprintf("mcpServers:\n  - name: mneme\n    command: %s\n    args: %s\n", command, args), err
}

func asYAML(agent string) func(any) (string, error) {
	return func(value any) (string, error) {
		s := value.(launch)
		return connect.YAML(agent, s.command, s.args), nil
	}
}
