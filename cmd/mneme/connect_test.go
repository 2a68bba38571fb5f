package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// agentHome returns the environment of a home directory in which no agent has been used, with mneme-hook in PATH.
func agentHome(t *testing.T) (home string, env []string) {
	t.Helper()
	home = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "mneme-hook"), []byte("#!/bin/sh\n"), 0o700))
	return home, []string{"HOME=" + home, "PATH=" + home, "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "GEMINI_CLI_HOME=", "MNEME_URL=http://127.0.0.1:1"}
}

func TestAnAgentIsConnectedShownAndDisconnected(t *testing.T) {
	t.Parallel()
	home, env := agentHome(t)
	path := filepath.Join(home, ".claude", "settings.json")
	diff, stderr, code := mnemeWith(t, env, "connect", "claude-code", "--dry-run")
	require.Zero(t, code, stderr)
	require.Contains(t, diff, "+++ "+path)
	require.NoFileExists(t, path)

	stdout, stderr, code := mnemeWith(t, env, "connect", "claude-code", "--json")
	require.Zero(t, code, stderr)
	var done connection
	require.NoError(t, json.Unmarshal([]byte(stdout), &done))
	require.Equal(t, "created", done.Files[0].Action)
	require.Contains(t, done.Next[0], "claude mcp add --scope user mneme -- ")
	settings, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(settings), `"http://127.0.0.1:1"`, "a server elsewhere is an argument of the hook")

	stdout, stderr, code = mnemeWith(t, env, "connected", "--json")
	require.Zero(t, code, stderr)
	var now connections
	require.NoError(t, json.Unmarshal([]byte(stdout), &now))
	require.True(t, now.Agents[0].Connected)
	require.NotEmpty(t, now.Server, "no server answers, which is not an error")
	require.False(t, now.Agents[1].Connected)

	_, stderr, code = mnemeWith(t, env, "disconnect", "claude-code")
	require.Zero(t, code, stderr)
	require.NoFileExists(t, path)
}

func TestSeveralAgentsAreConnectedAtOnce(t *testing.T) {
	t.Parallel()
	home, env := agentHome(t)
	_, stderr, code := mnemeWith(t, env, "connect", "--all")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no agent was found on this machine")

	broken := filepath.Join(home, ".qwen", "settings.json")
	require.NoError(t, os.Mkdir(filepath.Dir(broken), 0o700))
	require.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))
	stdout, stderr, code := mnemeWith(t, env, "connect", "claude-code", "qwen-code", "gemini-cli", "claude-code", "--json")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "qwen-code: ")
	var names []string
	for line := range strings.Lines(stdout) {
		var done connection
		require.NoError(t, json.Unmarshal([]byte(line), &done))
		names = append(names, done.Agent)
	}
	require.Equal(t, []string{"claude-code", "gemini-cli"}, names, "one that can't be read does not keep the others from it")

	require.NoError(t, os.Remove(broken))
	require.NoError(t, os.Mkdir(filepath.Join(home, ".codex"), 0o700))
	stdout, stderr, code = mnemeWith(t, env, "connect", "--all")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "created  "+broken)
	require.Contains(t, stdout, "created  "+filepath.Join(home, ".codex", "hooks.json"))
	require.NotContains(t, stdout, ".kimi-code", "it is not on this machine")

	_, stderr, code = mnemeWith(t, env, "disconnect", "--all")
	require.Zero(t, code, stderr)
	for _, path := range []string{broken, filepath.Join(home, ".claude", "settings.json"), filepath.Join(home, ".codex", "hooks.json")} {
		require.NoFileExists(t, path)
	}
	_, stderr, code = mnemeWith(t, env, "disconnect", "--all")
	require.Zero(t, code)
	require.Contains(t, stderr, "No agent is connected.")
}

func TestAProgramThatWasStartedByALinkIsConnectedByIt(t *testing.T) {
	t.Parallel()
	home, env := agentHome(t)
	program, err := mnemetest.Binary()
	require.NoError(t, err)
	bin := filepath.Join(home, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	mneme, hook := filepath.Join(bin, "mneme"), filepath.Join(bin, "mneme-hook")
	require.NoError(t, os.Symlink(program, mneme))
	require.NoError(t, os.Symlink(filepath.Join(home, "mneme-hook"), hook))
	connect := func(path, started string) {
		cmd := exec.CommandContext(t.Context(), started, "connect", "gemini-cli")
		cmd.Env = append(os.Environ(), append(env, "PATH="+path)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		settings, err := os.ReadFile(filepath.Join(home, ".gemini", "settings.json"))
		require.NoError(t, err)
		require.Contains(t, string(settings), `"`+mneme+`"`)
		require.Contains(t, string(settings), hook)
		require.NotContains(t, string(settings), program)
	}
	connect(t.TempDir(), mneme)
	connect(bin, program)
}

func TestConnectedAsksTheServerOfTheHookWithItsToken(t *testing.T) {
	t.Parallel()
	home, env := agentHome(t)
	file := filepath.Join(home, "token")
	require.NoError(t, os.WriteFile(file, []byte("mneme_x\n"), 0o600))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/hooks" || r.Header.Get("Authorization") != "Bearer mneme_x" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	asked := func(env []string, args ...string) (problem string) {
		stdout, stderr, code := mnemeWith(t, env, append([]string{"connected", "--json"}, args...)...)
		require.Zero(t, code, stderr)
		var now connections
		require.NoError(t, json.Unmarshal([]byte(stdout), &now))
		return now.Server
	}

	project := t.TempDir()
	_, stderr, code := mnemeWith(t, env, "connect", "claude-code", "--project-dir", project, "--url", server.URL, "--token-file", file)
	require.Zero(t, code, stderr)
	require.NotEmpty(t, asked(append(env, "MNEME_URL="), "--project-dir", project), "a repository can ship settings")

	_, stderr, code = mnemeWith(t, env, "connect", "gemini-cli", "--url", server.URL, "--token-file", file)
	require.Zero(t, code, stderr)
	require.Empty(t, asked(append(env, "MNEME_URL=")))
	require.NotEmpty(t, asked(env), "the user names another server")
}

func TestConnectSaysThatItDoesNotWriteTheToken(t *testing.T) {
	t.Parallel()
	home, env := agentHome(t)
	file := filepath.Join(home, "token")
	require.NoError(t, os.WriteFile(file, []byte("mneme_x\n"), 0o600))
	for _, args := range [][]string{{"connect", "gemini-cli", "--dry-run"}, {"mcp", "--print", "gemini-cli"}} {
		out, stderr, code := mnemeWith(t, append(env, "MNEME_TOKEN=mneme_x"), args...)
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, "The token is not written: ")
		require.Contains(t, stderr, "--token-file")
		require.NotContains(t, out, "mneme_x")
		out, stderr, code = mnemeWith(t, env, append(args, "--token-file", file)...)
		require.Zero(t, code, stderr)
		require.NotContains(t, stderr, "The token")
		require.Contains(t, out, file)
	}
}

func TestMistakesInConnectSayWhatToDo(t *testing.T) {
	t.Parallel()
	home, env := agentHome(t)
	_, stderr, code := mnemeWith(t, env, "connect", "emacs")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "claude-code")
	for _, args := range [][]string{{"connect"}, {"connect", "codex", "--all"}, {"disconnect"}} {
		_, stderr, code = mnemeWith(t, env, args...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "--all")
	}
	_, stderr, code = mnemeWith(t, env, "connect", "codex", "--project-dir", home)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--project-dir is for claude-code")
	_, stderr, code = mnemeWith(t, env, "connect", "codex", "--url", "nowhere")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--url=")
	require.NoDirExists(t, filepath.Join(home, ".codex"))
}

func TestStatusSaysWhatOfTranscriptsCouldNotBeRead(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	_, stderr, code := s.mneme("status")
	require.Zero(t, code, stderr)
	require.NotContains(t, stderr, "transcript")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.jsonl")
	require.NoError(t, os.WriteFile(elsewhere, nil, 0o600))
	event := fmt.Sprintf(`{"hook_event_name":"Stop","session_id":"s","transcript_path":%q}`, elsewhere)
	response, err := http.Post(s.HTTP+"/v1/hooks/claude-code", "application/json", strings.NewReader(event))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Eventually(t, func() bool {
		_, stderr, code := s.mneme("status")
		return code == 0 && strings.Contains(stderr, "warning  a transcript was not read") && strings.Contains(stderr, "elsewhere.jsonl") && strings.Contains(stderr, "mneme import FILE")
	}, mnemetest.Patience, time.Millisecond)
}
