package instance_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/projection"
)

// patience is for what takes milliseconds on an idle machine.
const patience = mnemetest.Patience

// running is an instance that reads Claude Code's transcripts in a folder.
type running struct {
	*testing.T
	*instance.Instance
	folder string
	data   string
	agents []string
}

func start(t *testing.T, agents ...string) *running {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", dir)
	r := &running{T: t, folder: filepath.Join(dir, "projects", "-repo"), data: t.TempDir(), agents: agents}
	require.NoError(t, os.MkdirAll(r.folder, 0o700))
	r.up()
	return r
}

// up starts the instance.
func (r *running) up() {
	r.Helper()
	i, err := instance.Start(r.Context(), instance.Config{
		Data: r.data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Capture: r.agents, Redact: redact.Default(), Logger: settings.Logger(os.Stderr, "error", "text"),
	})
	require.NoError(r, err)
	r.Instance = i
	r.Cleanup(func() { require.NoError(r, i.Close()) })
}

// session writes a transcript in which a user says something.
func (r *running) session(folder, id, text string) (path string) {
	r.Helper()
	path = filepath.Join(folder, id+".jsonl")
	line := `{"type":%q,"uuid":"%s-%d","sessionId":%q,"cwd":"/repo","timestamp":"2026-01-05T09:00:0%dZ","message":{"role":%q,"content":%q}}` + "\n"
	lines := fmt.Sprintf(line, "user", id, 1, id, 1, "user", text) + fmt.Sprintf(line, "user", id, 2, id, 2, "user", "Go on.")
	require.NoError(r, os.WriteFile(path, []byte(lines), 0o600))
	return path
}

// hook sends the event of a hook.
func (r *running) hook(session, path string) {
	r.Helper()
	body := fmt.Sprintf(`{"hook_event_name":"Stop","session_id":%q,"cwd":"/repo","transcript_path":%q}`, session, path)
	answer, err := http.Post(r.HTTPURL()+"/v1/hooks/claude-code", "application/json", strings.NewReader(body))
	require.NoError(r, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(r, http.StatusOK, answer.StatusCode)
}

func (r *running) get(path string) (int, string) {
	r.Helper()
	answer, err := http.Get(r.HTTPURL() + path)
	require.NoError(r, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	return answer.StatusCode, string(body)
}

func TestAHookBringsItsTranscriptIntoTheLogWithoutSecrets(t *testing.T) {
	r := start(t, "claude-code")
	elsewhere := r.session(t.TempDir(), "elsewhere", "Not in a folder of transcripts.")
	r.hook("elsewhere", elsewhere)
	r.hook("s1", r.session(r.folder, "s1", "Deploy with ghp"+"_x7Q2mR9tLw4ZkV8nBc3Yd6HfJs1PaEoU5iGq please."))
	require.Eventually(t, func() bool {
		status, body := r.get("/v1/conversations/claude_code:s1/messages")
		return status == http.StatusOK && strings.Contains(body, "Deploy with [redacted:github-token] please.")
	}, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { // an import is counted at its end, when its events may have been applied
		_, hooks := r.get("/v1/hooks")
		return strings.Contains(hooks, `"published":3`) && strings.Contains(hooks, "elsewhere.jsonl: this is not a transcript that may be read")
	}, patience, 10*time.Millisecond)
	status, _ := r.get("/v1/conversations/claude_code:elsewhere")
	require.Equal(t, http.StatusNotFound, status)
}

func TestTheAnswerOfATurnIsThereSoonAfterItsHook(t *testing.T) {
	r := start(t, "claude-code")
	path := r.session(r.folder, "s1", "Where is it?")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"type":"assistant","uuid":"a","sessionId":"s1","message":{"id":"m","content":[{"type":"text","text":"In main.go."}]}}` + "\n")
	require.NoError(t, errors.Join(err, file.Close()))
	r.hook("s1", path)
	require.Eventually(t, func() bool {
		_, body := r.get("/v1/conversations/claude_code:s1/messages")
		return strings.Contains(body, "In main.go.")
	}, patience, 10*time.Millisecond)
}

// A graph of an older version whose log has lost an event waits for an operator, and agents go on.
func TestTranscriptsAreReadAlthoughTheGraphHasHalted(t *testing.T) {
	r := start(t, "claude-code")
	say := func(id string) {
		event := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":%q,"subject":"c","data":{"message_id":%q,"role":"user","content":"Hello"}}`, id, id)
		answer, err := http.Post(r.HTTPURL()+"/v1/events", "application/cloudevents+json", strings.NewReader(event))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusCreated, answer.StatusCode)
	}
	say("lost")
	say("kept")
	_, _ = r.get("/v1/conversations/c?at_least=2")
	r.lose(1)
	require.NoError(t, r.Close())
	require.NoError(t, pretendOlder(t, r.data, "graph").Close())

	r.up()
	require.Eventually(t, func() bool { return r.status("graph").State == projection.StateHalted }, patience, 10*time.Millisecond)
	say("new") // the graph never applies it
	r.hook("s1", r.session(r.folder, "s1", "Hello."))
	require.Eventually(t, func() bool {
		_, hooks := r.get("/v1/hooks")
		return strings.Contains(hooks, `"published":3`)
	}, patience, 10*time.Millisecond)
}

func TestWithoutCaptureAHookBringsNothing(t *testing.T) {
	r := start(t)
	r.hook("s1", r.session(r.folder, "s1", "Nobody reads this."))
	// require.Never would not do: its last request can still be running when the test closes the instance.
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		status, _ := r.get("/v1/conversations/claude_code:s1")
		require.Equal(t, http.StatusNotFound, status)
	}
}
