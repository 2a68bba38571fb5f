package doctor

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/hook/ring"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
)

// TestMain runs the tests, with a home directory in which no agent has been used. Under the name of the hook, the
// test program is the hook.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "mneme-hook" {
		ring.Main(os.Args[1:], os.Stdin, os.Stdout)
		return
	}
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{
		"CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME", "CLINE_DATA_DIR", "OH_PERSISTENCE_DIR", "OPENHANDS_PERSISTENCE_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
	} {
		_ = os.Unsetenv(name)
	}
	_ = os.Setenv("HOME", home)
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// machine is a home directory with an agent that is connected to a server.
type machine struct {
	*testing.T
	home, hook string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t, t.TempDir(), filepath.Join(t.TempDir(), "mneme-hook")}
	t.Setenv("HOME", m.home)
	t.Setenv("PATH", "")
	program, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(program, m.hook))
	require.NoError(t, os.Symlink(program, filepath.Join(m.home, "mneme")))
	return m
}

func (m *machine) connect(agent string, flags ...string) {
	m.Helper()
	_, err := connect.Connect(m.Context(), connect.Options{Agent: agent, Mneme: filepath.Join(m.home, "mneme"), Hook: m.hook, Flags: flags})
	require.NoError(m, err)
}

// fire runs the hook of an agent, as the agent does.
func (m *machine) fire(agent, url, session string) {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), m.hook, agent, "--url", url)
	cmd.Stdin = strings.NewReader(`{"hook_event_name":"Stop","session_id":"` + session + `"}`)
	require.NoError(m, cmd.Run())
}

func TestWithoutAConnectedAgentOneLineSaysHowToConnectOne(t *testing.T) {
	findings := examine(t, "http://"+nowhere, "nats://"+nowhere, "")
	require.Equal(t, OK, findings["agents"].Level)
	require.Contains(t, findings["agents"].Detail, "mneme connect claude-code")
	require.NotContains(t, findings, "hooks")
}

func TestAConnectedAgentIsFoundToCall(t *testing.T) {
	m := newMachine(t)
	i := up(t, t.TempDir())
	url := i.HTTPURL()
	for _, agent := range connect.Names() {
		m.connect(agent, "--url", url)
	}
	findings := examine(t, url, i.NATSURL(), "")
	for _, agent := range []string{connect.Cline, connect.Goose} {
		require.Equal(t, OK, findings["agent "+agent].Level, "%+v", findings["agent "+agent])
		require.Contains(t, findings["agent "+agent].Detail, "it gets the tools of "+filepath.Join(m.home, "mneme"))
	}
	withHooks := slices.DeleteFunc(connect.Names(), func(agent string) bool { return agent == connect.Cline || agent == connect.Goose })
	for _, agent := range withHooks {
		f := findings["agent "+agent]
		require.Equal(t, Warning, f.Level, "%+v", f)
		require.Regexp(t, "no hook has reached the server|does not trust the hooks", f.Detail)
		require.Equal(t, agent == connect.Codex, strings.Contains(f.Remedy, "/hooks"), "only Codex asks for trust")
	}
	for _, agent := range withHooks {
		require.Eventually(t, func() bool { // a hook gives up early on a busy machine
			m.fire(agent, url, "s")
			return examine(t, url, i.NATSURL(), "")["agent "+agent].Level == OK
		}, mnemetest.Patience, time.Millisecond)
	}
	findings = examine(t, url, i.NATSURL(), "")
	require.Contains(t, findings["agent codex"].Detail, "one called at ")
	require.Contains(t, findings["agent codex"].Detail, m.hook)
	require.Equal(t, OK, findings["mcp"].Level, "%+v", findings["mcp"])
	require.Contains(t, findings["mcp"].Detail, "lists 5 tools")
}

// Who clones a repository and runs mneme doctor in it has not allowed it anything.
func TestWhatAProjectsSettingsNameIsNeitherRunNorCalled(t *testing.T) {
	m := newMachine(t)
	t.Setenv("PATH", filepath.Dir(m.hook))
	i := up(t, t.TempDir())
	asked := make(chan string, 10)
	theirs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	defer theirs.Close()
	secret, project := filepath.Join(m.home, "secret"), t.TempDir()
	require.NoError(t, os.WriteFile(secret, []byte("of mine"), 0o600))
	ran, program := filepath.Join(project, "ran"), filepath.Join(project, "bin", "mneme-hook")
	require.NoError(t, os.Mkdir(filepath.Dir(program), 0o700))
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n: > "+ran+"\n"), 0o700))
	doctor := func(hook, url string) Finding {
		_, err := connect.Connect(t.Context(), connect.Options{
			Agent: connect.ClaudeCode, ProjectDir: project, Mneme: filepath.Join(m.home, "mneme"), Hook: hook, Flags: []string{"--url", url, "--token-file", secret},
		})
		require.NoError(t, err)
		list := Run(t.Context(), Options{Client: settings.Client{URL: i.HTTPURL(), NATSURL: i.NATSURL()}, Project: project})
		at := slices.IndexFunc(list, func(f Finding) bool { return f.Check == "agent claude-code" })
		require.NotEqual(t, -1, at)
		return list[at]
	}
	f := doctor(program, theirs.URL)
	require.Equal(t, Warning, f.Level, "%+v", f)
	require.Contains(t, f.Detail, program+", which is not the mneme-hook of this machine")
	require.NoFileExists(t, ran)
	f = doctor(m.hook, theirs.URL)
	require.Contains(t, f.Detail, "its hooks call "+theirs.URL)
	require.Empty(t, asked, "the server of the project's settings got a token")
	require.NotContains(t, doctor(m.hook, i.HTTPURL()).Detail, "was not tried", "mneme connect --project-dir wrote these")
}

func TestEventsThatWaitForTheServerAreCounted(t *testing.T) {
	m := newMachine(t)
	m.connect(connect.ClaudeCode, "--url", "http://"+nowhere)
	require.Equal(t, OK, examine(t, "http://"+nowhere, "nats://"+nowhere, "")["hooks"].Level)
	m.fire(connect.ClaudeCode, "http://"+nowhere, "a")
	m.fire(connect.ClaudeCode, "http://"+nowhere, "b")
	findings := examine(t, "http://"+nowhere, "nats://"+nowhere, "")
	require.Equal(t, Warning, findings["hooks"].Level)
	require.Contains(t, findings["hooks"].Detail, "in time: 2, in "+filepath.Join(m.home, ".local", "state", "mneme", "hooks-"))
	require.Contains(t, findings["hooks"].Remedy, "can be deleted", "nothing sends it if no agent calls that server any more")
	require.Equal(t, OK, findings["agent claude-code"].Level, "its settings are right: the server is missing")
	require.Contains(t, findings["agent claude-code"].Detail, "the server does not answer")
}

func TestHooksWhoseTokenMayNotWriteAreAFailure(t *testing.T) {
	m := newMachine(t)
	file := filepath.Join(t.TempDir(), "tokens.jsonl")
	issue := func(role access.Role) string {
		token, record, err := access.Issue(access.Rights{Tenant: "default", Role: role}, "test", time.Now(), 0)
		require.NoError(t, err)
		require.NoError(t, access.NewFile(file).Add(t.Context(), record))
		path := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(path, []byte(token), 0o600))
		return path
	}
	reads, writes := issue(access.Read), issue(access.Write)
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{TokensFile: file},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	invalid := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(invalid, []byte(access.NewToken()), 0o600))
	for path, why := range map[string]string{reads: "role write", invalid: "token"} {
		m.connect(connect.ClaudeCode, "--url", i.HTTPURL(), "--token-file", path)
		f := examine(t, i.HTTPURL(), i.NATSURL(), "")["agent claude-code"]
		require.Equal(t, Failed, f.Level, "%+v", f)
		require.Contains(t, f.Detail, "the server takes no event of its hooks")
		require.Contains(t, f.Detail, why)
		require.Contains(t, f.Remedy, "--token-file")
	}
	m.connect(connect.ClaudeCode, "--url", i.HTTPURL(), "--token-file", writes)
	require.NotEqual(t, Failed, examine(t, i.HTTPURL(), i.NATSURL(), "")["agent claude-code"].Level)
}

func TestAnAgentWhoseHooksCannotWorkIsAFailure(t *testing.T) {
	m := newMachine(t)
	i := up(t, t.TempDir())
	of := func() Finding {
		t.Helper()
		return examine(t, i.HTTPURL(), i.NATSURL(), "")["agent claude-code"]
	}
	m.connect(connect.ClaudeCode, "--url", "http://127.0.0.1:2")
	f := of()
	require.Equal(t, Warning, f.Level)
	require.Contains(t, f.Detail, "its hooks call http://127.0.0.1:2, and this examines "+i.HTTPURL())
	require.Contains(t, f.Remedy, "--url")

	m.connect(connect.ClaudeCode, "--url", i.HTTPURL(), "--token-file", filepath.Join(m.home, "gone"))
	f = of()
	require.Equal(t, Failed, f.Level)
	require.Contains(t, f.Detail, "gone")

	m.connect(connect.ClaudeCode, "--url", i.HTTPURL())
	require.NoError(t, os.Remove(m.hook))
	require.NoError(t, os.WriteFile(m.hook, []byte("of another machine"), 0o700))
	f = of()
	require.Equal(t, Failed, f.Level)
	require.Contains(t, f.Detail, m.hook+" does not run")

	require.NoError(t, os.Remove(m.hook))
	f = of()
	require.Equal(t, Failed, f.Level)
	require.Contains(t, f.Detail, "is not there")
	require.Equal(t, "mneme connect claude-code", f.Remedy)

	require.NoError(t, os.WriteFile(filepath.Join(m.home, ".claude", "settings.json"), []byte("{"), 0o600))
	f = of()
	require.Equal(t, Warning, f.Level, "whether it ran the hook can't be seen")
	require.Contains(t, f.Remedy, "correct the file")
}

func TestWhatOfTranscriptsCouldNotBeReadIsFound(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", folder)
	projects := filepath.Join(folder, "projects")
	require.NoError(t, os.Mkdir(projects, 0o700))
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Capture: []string{connect.ClaudeCode}, Logger: settings.Logger(os.Stderr, "error", "text"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = i.Close() })
	require.Equal(t, OK, examine(t, i.HTTPURL(), i.NATSURL(), "")["transcripts"].Level)

	call := func(path string) {
		body, err := json.Marshal(map[string]string{"hook_event_name": "Stop", "session_id": "s", "transcript_path": path})
		require.NoError(t, err)
		response, err := http.Post(i.HTTPURL()+"/v1/hooks/claude-code", "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.jsonl")
	require.NoError(t, os.WriteFile(elsewhere, nil, 0o600))
	call(elsewhere)
	require.Eventually(t, func() bool {
		f := examine(t, i.HTTPURL(), i.NATSURL(), "")["transcripts"]
		return f.Level == Warning && strings.Contains(f.Detail, elsewhere) && strings.Contains(f.Remedy, "CLAUDE_CONFIG_DIR")
	}, mnemetest.Patience, time.Millisecond)
}

func TestAProblemWithATranscriptIsOverAfterADay(t *testing.T) {
	now := time.Now()
	c := &httpapi.Captured{LastError: "no answer", LastErrorTime: now.Add(-time.Hour)}
	what, remedy := JudgeTranscripts(c, now)
	require.Contains(t, what, "no answer")
	require.NotEmpty(t, remedy)
	what, _ = JudgeTranscripts(c, now.Add(recent))
	require.Empty(t, what)
	c.RefusedLines = 3
	what, remedy = JudgeTranscripts(c, now.Add(recent))
	require.Contains(t, what, "refused: 3")
	require.Contains(t, remedy, "mneme import")
	what, _ = JudgeTranscripts(nil, now)
	require.Empty(t, what)
}

func TestWhatExportersWereRefusedIsAWarningForADay(t *testing.T) {
	now := time.Now()
	s := &httpapi.Exported{Refused: 3, LastError: "chat: cut", LastErrorTime: now.Add(-time.Hour)}
	what, remedy := JudgeOTLP(s, now)
	require.Contains(t, what, "were not recorded: 3; the last one at")
	require.Contains(t, what, "chat: cut")
	require.NotEmpty(t, remedy)
	what, _ = JudgeOTLP(s, now.Add(recent))
	require.Empty(t, what)
	what, remedy = JudgeOTLP(&httpapi.Exported{Waits: "the log does not answer", WaitsSince: now.Add(-time.Minute)}, now)
	require.Contains(t, what, "the log does not answer")
	require.NotContains(t, what, "not recorded: 0")
	require.Contains(t, remedy, "nothing is lost")
	what, _ = JudgeOTLP(nil, now)
	require.Empty(t, what)
	require.Contains(t, told(&httpapi.Exported{Listen: []string{"http://127.0.0.1:4318"}, Recorded: 2, Known: 1, LeftOut: map[string]uint64{"unknown": 4, "side call": 1}}),
		"at http://127.0.0.1:4318; spans and log records since the server started: 2 new, 1 known, 5 without")
}
