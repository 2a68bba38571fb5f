package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/mcp"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/transcript"
)

// MCPCmd serves the tools to an agent that starts it.
type MCPCmd struct {
	Project  string `help:"The project that the agent works on: its name, or a folder; . is this one. Defaults to $CLAUDE_PROJECT_DIR, then to the repository or folder that it is started in." placeholder:"NAME" complete:"directory"`
	ReadOnly bool   `help:"Leave out memory_remember, the tool that writes."`
	Print    string `help:"Instead of serving, print the configuration with which a client starts this program: ${mcp_clients}." placeholder:"CLIENT" enum:",${mcp_clients}" default:""`
}

func (*MCPCmd) Help() string {
	return `Agents start this program themselves. It speaks the Model Context Protocol on stdin and stdout and forwards each call to the server at --url, so mneme up must run somewhere. If the server requires tokens, give --token-file, which --print prints too, or put MNEME_TOKEN into the environment of the program.

The root folder and the home directory are never a project: agents that start there must name one.

Examples:

    mneme mcp --print claude-code           what to paste, and where
    mneme mcp --print codex --read-only
    mneme mcp --print cursor --url https://mneme.example.com --token-file ~/.mneme-token
    mneme mcp --project .                   serve, for a client of your own`
}

// Run serves until stdin ends.
func (c *MCPCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if c.Print != "" {
		return c.print(g, t)
	}
	api, err := g.client()
	if err != nil {
		return err
	}
	project, err := c.project()
	if err != nil {
		return err
	}
	conversation := ""
	if session := os.Getenv("CLAUDE_CODE_SESSION_ID"); session != "" {
		conversation = transcript.ClaudeCodePrefix + session
	}
	return mcp.Proxy(ctx, mcp.Remote{
		URL: api.base, Tenant: api.tenant, Project: project, Conversation: conversation, ReadOnly: c.ReadOnly,
		HTTP: api.http, Explain: api.unreachable,
	}, os.Stdin, output{t.out}, slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

// project returns the project that the agent works on, "" if nothing shows it.
func (c *MCPCmd) project() (string, error) {
	if c.Project != "" && !strings.HasPrefix(c.Project, "${") { // else the client did not fill in its own variable
		if !filepath.IsAbs(c.Project) {
			return projectNamed(c.Project)
		}
		return repositoryOf(filepath.Clean(c.Project)), nil
	}
	folder := os.Getenv("CLAUDE_PROJECT_DIR")
	if !filepath.IsAbs(folder) {
		var err error
		if folder, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("this folder cannot be read, name the project with --project: %w", err)
		}
	}
	return workFolder(filepath.Clean(folder)), nil
}

// workFolder returns the repository that a folder is in, or else the folder. Clients start programs in the
// root or in the home directory if they know no better: neither is a project.
func workFolder(folder string) string {
	home, _ := os.UserHomeDir()
	none := func(at string) bool { return at == filepath.Dir(at) || at == filepath.Clean(home) }
	if root := repositoryOf(folder); !none(root) {
		return root
	}
	if none(folder) {
		return ""
	}
	return folder // below a home directory that is itself a repository
}

// output is stdout for the protocol, which closes its streams.
type output struct{ io.Writer }

// Close implements io.Closer.
func (output) Close() error { return nil }

// unreachable says why a tool got no answer.
func (c *client) unreachable(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Sprintf("memory is not available: no answer from %s. Start mneme there with `mneme up`, or set MNEME_URL in the configuration of this MCP server", settings.Redacted(c.base))
	}
	return fmt.Sprintf("memory is not available: %s answered: %s. `mneme doctor` says more", settings.Redacted(c.base), console.Cut(console.OneLine(err.Error()), 300))
}
