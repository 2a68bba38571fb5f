package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"mneme.dev/mneme/internal/mnemetest"
)

// hosted starts mneme mcp in a folder, as an agent does, and connects to it.
func hosted(t *testing.T, folder string, env []string, args ...string) *sdk.ClientSession {
	t.Helper()
	binary, err := mnemetest.Binary()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"mcp"}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), "CLAUDE_PROJECT_DIR=", "CLAUDE_CODE_SESSION_ID="), env...)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) (string, bool) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	require.NoError(t, err)
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

// repository makes a folder that looks like a git repository, with a folder below it.
func repository(t *testing.T) (root, below string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	below = filepath.Join(root, "pkg", "a")
	require.NoError(t, os.MkdirAll(filepath.Join(root, ".git"), 0o700))
	require.NoError(t, os.MkdirAll(below, 0o700))
	return root, below
}

func TestAnAgentThatStartsMnemeMCPRemembersItsProject(t *testing.T) {
	s := up(t, t.TempDir())
	root, below := repository(t)
	url := []string{"MNEME_URL=" + s.HTTP}
	host := hosted(t, below, url)
	var names []string
	for tool, err := range host.Tools(t.Context(), nil) {
		require.NoError(t, err)
		names = append(names, tool.Name)
	}
	require.Equal(t, []string{"memory_context", "memory_file_history", "memory_read", "memory_remember", "memory_search"}, names)
	text, failed := call(t, host, "memory_remember", map[string]any{"text": "Releases are cut on Mondays"})
	require.False(t, failed, text)
	var noted struct {
		Project string
		Seq     uint64
	}
	require.NoError(t, json.Unmarshal([]byte(text), &noted))
	require.Equal(t, root, noted.Project, "a folder of a repository means the repository")
	_, stderr, code := s.mneme("projects", "list", "--at-least", "2")
	require.Zero(t, code, stderr)

	elsewhere := t.TempDir()
	named := hosted(t, elsewhere, append(url, "CLAUDE_PROJECT_DIR="+below))
	text, failed = call(t, named, "memory_context", nil)
	require.False(t, failed, text)
	require.Contains(t, text, "Releases are cut on Mondays")

	reading := hosted(t, elsewhere, append(url, "CLAUDE_CODE_SESSION_ID=s1"), "--read-only", "--project", root)
	text, failed = call(t, reading, "memory_context", nil)
	require.False(t, failed, text)
	require.Contains(t, text, "Releases are cut on Mondays", "the session has no conversation yet")
	list, err := reading.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list.Tools, 4)

	resources, err := named.ListResources(t.Context(), nil)
	require.NoError(t, err)
	require.NotEmpty(t, resources.Resources)
	content, err := named.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: resources.Resources[0].URI})
	require.NoError(t, err)
	require.Contains(t, content.Contents[0].Text, "Releases are cut on Mondays")
	prompt, err := named.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "recall"})
	require.NoError(t, err)
	require.Contains(t, prompt.Messages[0].Content.(*sdk.TextContent).Text, "Releases are cut on Mondays")
	_, err = named.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "resume", Arguments: map[string]string{"conversation": "nothing"}})
	require.ErrorContains(t, err, "no conversation", "a refusal of the server is passed on")
	completed, err := named.Complete(t.Context(), &sdk.CompleteParams{
		Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "recall"}, Argument: sdk.CompleteParamsArgument{Name: "project", Value: filepath.Base(root)},
	})
	require.NoError(t, err)
	require.Equal(t, []string{root}, completed.Completion.Values)

	homeless := hosted(t, "/", url)
	text, failed = call(t, homeless, "memory_context", nil)
	require.True(t, failed)
	require.Contains(t, text, "The newest: "+root, "the root folder is no project")
}

func TestMnemeMCPAnswersWhatItHasReadWhenItsInputEnds(t *testing.T) {
	s := up(t, t.TempDir())
	binary, err := mnemetest.Binary()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, "mcp", "--project", "shop")
	cmd.Env = append(os.Environ(), "MNEME_URL="+s.HTTP)
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"script","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_remember","arguments":{"text":"Releases are cut on Mondays"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"memory_context","arguments":{}}}
`)
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(out), "\n"), "%s", out)
	require.Contains(t, string(out), "notes:shop")
	_, stderr, code := s.mneme("conversations", "show", "notes:shop", "--at-least", "1")
	require.Zero(t, code, stderr)
}

func TestMnemeMCPListsWhatTheTokenAllows(t *testing.T) {
	s, reading := readable(t)
	host := hosted(t, t.TempDir(), []string{"MNEME_URL=" + s.HTTP, "MNEME_TOKEN=" + reading}, "--project", "shop")
	list, err := host.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	require.Equal(t, []string{"memory_context", "memory_file_history", "memory_read", "memory_search"}, names)
	text, failed := call(t, host, "memory_remember", map[string]any{"text": "x"})
	require.True(t, failed)
	require.Equal(t, "memory_remember needs a token with the role write, and the token of this MCP server has a lower one", text)
}

func TestAnAgentThatStartsMnemeMCPHearsOfChanges(t *testing.T) {
	s := up(t, t.TempDir())
	binary, err := mnemetest.Binary()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, "mcp", "--project", "shop")
	cmd.Env = append(os.Environ(), "MNEME_URL="+s.HTTP)
	heard := make(chan string, 100)
	host, err := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
	}).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = host.Close() })
	say := func(id int) {
		event := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"%[1]d","subject":"cart","data":{"message_id":"%[1]d","role":"user","content":"hello"}}`, id)
		response, err := http.Post(s.HTTP+"/v1/events", "application/cloudevents+json", strings.NewReader(event)) //nolint:noctx // it ends with the server
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusCreated, response.StatusCode)
	}
	say(0)
	_, stderr, code := s.mneme("conversations", "show", "cart", "--at-least", "1")
	require.Zero(t, code, stderr)
	const address = "mneme://conversations/cart/context"
	require.NoError(t, host.Subscribe(t.Context(), &sdk.SubscribeParams{URI: address}))
	for id := 1; ; id++ { // the subscription has no answer, so what is said first may come before it
		say(id)
		select {
		case uri := <-heard:
			require.Equal(t, address, uri)
			require.NoError(t, host.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: address}))
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestWithoutAServerEveryToolSaysWhatToDo(t *testing.T) {
	host := hosted(t, t.TempDir(), []string{"MNEME_URL=http://127.0.0.1:1"})
	list, err := host.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range list.Tools {
		text, failed := call(t, host, tool.Name, map[string]any{})
		require.True(t, failed, tool.Name)
		require.Contains(t, text, "mneme up", tool.Name)
	}
	_, err = host.ListResources(t.Context(), nil)
	require.ErrorContains(t, err, "mneme up")
	_, err = host.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "recall"})
	require.ErrorContains(t, err, "mneme up")
}

func TestMnemeMCPSurvivesARestartOfTheServer(t *testing.T) {
	mnemetest.Long(t)
	data := t.TempDir()
	address := "127.0.0.1:" + mnemetest.FreePort(t)
	s := listening(t, data, address)
	host := hosted(t, t.TempDir(), []string{"MNEME_URL=" + s.HTTP})
	text, failed := call(t, host, "memory_context", nil)
	require.False(t, failed, text)
	require.Zero(t, s.stop())
	_, failed = call(t, host, "memory_context", nil)
	require.True(t, failed)
	listening(t, data, address)
	text, failed = call(t, host, "memory_context", nil)
	require.False(t, failed, text)
}

func TestNeitherTheRootNorTheHomeIsAProject(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	below := filepath.Join(home, "work")
	require.NoError(t, os.Mkdir(below, 0o700))
	require.Empty(t, workFolder("/"))
	require.Empty(t, workFolder(home))
	require.Equal(t, below, workFolder(below))
	require.NoError(t, os.Mkdir(filepath.Join(home, ".git"), 0o700)) // as of a repository of settings
	require.Empty(t, workFolder(home))
	require.Equal(t, below, workFolder(below))
	unfilled := MCPCmd{Project: "${workspaceFolder}"}
	t.Setenv("CLAUDE_PROJECT_DIR", below)
	project, err := unfilled.project()
	require.NoError(t, err)
	require.Equal(t, below, project, "the client did not fill in its variable")
}

func TestTheConfigurationOfEachClientIsWellFormed(t *testing.T) {
	for _, c := range mcpClients {
		out, where, code := mnemeWith(t, nil, "mcp", "--print", c.name, "--url", "http://127.0.0.1:9999", "--read-only")
		require.Zero(t, code, where)
		require.Contains(t, where, "This goes into ", c.name)
		if c.name == "claude-code" {
			require.Regexp(t, `\n    claude mcp add --scope user mneme -- \S+/mneme mcp --read-only --url http://127.0.0.1:9999\n$`, where, "the command can be copied as a line")
		}
		require.Contains(t, out, "http://127.0.0.1:9999", c.name)
		require.Contains(t, out, "--read-only", c.name)
		switch c.name {
		case "codex":
			require.Regexp(t, `^\[mcp_servers\.mneme\]\ncommand = "[^"\n]+"\nargs = \["mcp",[^\n]+\]\n$`, out)
		default: // JSON is YAML too
			var config map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(out), &config), c.name)
			if c.name != "goose" && c.name != "hermes" && c.name != "continue" {
				require.True(t, json.Valid([]byte(out)), c.name)
			}
		}
	}
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("x"), 0o600))
	out, stderr, code := mneme(t, "mcp", "--print", "cursor", "--token-file", token)
	require.Zero(t, code, stderr)
	require.Contains(t, out, `"--token-file",`+"\n        "+`"`+token+`"`)
	_, stderr, code = mneme(t, "mcp", "--print", "emacs")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "claude-code")
}
