package ring_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/hook/ring"
	"mneme.dev/mneme/internal/mnemetest"
)

const stop = `{"hook_event_name":"Stop","session_id":"s","transcript_path":"/t.jsonl","prompt":null,"new":[1]}`

// hears is a server that keeps the events it gets.
type hears struct {
	*httptest.Server
	mu     sync.Mutex
	events []ring.Event
	late   int
}

func listen(t *testing.T, answer string) *hears {
	h := &hears{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e ring.Event
		if json.NewDecoder(r.Body).Decode(&e) != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, e)
		if r.URL.Query().Get("late") != "" {
			h.late++
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(h.Close)
	return h
}

// run runs a hook that has far more time than [ring.Patience], because a busy machine may need it.
func run(o ring.Options, event string) string { return runWithin(time.Minute, o, event) }

func runWithin(patience time.Duration, o ring.Options, event string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out bytes.Buffer
	ring.Run(ctx, o, "claude-code", strings.NewReader(event), &out)
	return out.String()
}

func spoolIn(t *testing.T) ring.Spool {
	return ring.Spool(filepath.Join(t.TempDir(), "state", "hooks.jsonl"))
}

func TestAPersonWhoAsksForHelpGetsIt(t *testing.T) {
	var out strings.Builder
	ring.Main([]string{"--help"}, strings.NewReader(""), &out)
	require.Contains(t, out.String(), "mneme-hook [--url URL]")
}

func TestTheServersAnswerIsPassedOn(t *testing.T) {
	h := listen(t, `{"a":1}`)
	require.JSONEq(t, `{"a":1}`, run(ring.Options{URL: h.URL, Spool: spoolIn(t)}, stop))
	require.Equal(t, []ring.Event{{Name: "Stop", Session: "s", Transcript: "/t.jsonl"}}, h.events)
}

func TestWhatTheServerMissedIsSentWithTheNextEvent(t *testing.T) {
	spool := spoolIn(t)
	for i := range 3 { // two of one session
		require.Empty(t, run(ring.Options{URL: "http://127.0.0.1:1", Spool: spool}, fmt.Sprintf(`{"hook_event_name":"UserPromptSubmit","session_id":"s%d","prompt":"secret"}`, i/2)))
	}
	raw, err := os.ReadFile(string(spool))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "secret")
	waiting, err := spool.Waiting()
	require.NoError(t, err)
	require.Equal(t, 3, waiting)
	h := listen(t, "")
	require.Empty(t, run(ring.Options{URL: h.URL, Spool: spool}, stop))
	require.Len(t, h.events, 3)
	require.Equal(t, 2, h.late)
	left, err := os.ReadDir(filepath.Dir(string(spool)))
	require.NoError(t, err)
	require.Empty(t, left)
	waiting, err = spool.Waiting()
	require.NoError(t, err)
	require.Zero(t, waiting)
}

func TestWhatWaitsForOneServerOrTenantIsNotSentToAnother(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", "")
	h := listen(t, "")
	gone, _ := ring.FromArguments([]string{"--url", "http://127.0.0.1:1", "--tenant", "customer"})
	require.Empty(t, run(gone, `{"hook_event_name":"Stop","session_id":"secret"}`))
	for _, tenant := range []string{"other", "customer", ""} {
		there, agent := ring.FromArguments([]string{"--url=" + h.URL, "--tenant", tenant, "claude-code"})
		require.Equal(t, "claude-code", agent)
		require.Empty(t, run(there, stop))
	}
	require.Len(t, h.events, 3)
	require.Zero(t, h.late)
	list := ring.UserSpools()
	require.Equal(t, []ring.Spool{gone.Spool}, list)
	waiting, err := list[0].Waiting()
	require.NoError(t, err)
	require.Equal(t, 1, waiting)
}

func TestHooksAtOnceLoseNoEvent(t *testing.T) {
	spool := spoolIn(t)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			run(ring.Options{URL: "http://127.0.0.1:1", Spool: spool}, fmt.Sprintf(`{"hook_event_name":"Stop","session_id":"s%d"}`, i))
		})
	}
	all.Wait()
	raw, err := os.ReadFile(string(spool))
	require.NoError(t, err)
	require.Equal(t, 40, bytes.Count(raw, []byte("\n")))
}

func TestAHookThatWasKilledBeforeTheClockWasSetBackHoldsUpNothing(t *testing.T) {
	spool := spoolIn(t)
	run(ring.Options{URL: "http://127.0.0.1:1", Spool: spool}, `{"hook_event_name":"Stop","session_id":"early"}`)
	taken := string(spool) + ".sending"
	require.NoError(t, os.Rename(string(spool), taken))
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(taken, later, later))
	h := listen(t, "")
	run(ring.Options{URL: h.URL, Spool: spool}, stop)
	require.Len(t, h.events, 2)
	require.NoFileExists(t, taken)
}

// A hook may have opened the spool before another one took it over, and write after that one has read it.
func TestWhatIsAddedToASpoolThatIsBeingSentWaits(t *testing.T) {
	spool := spoolIn(t)
	run(ring.Options{URL: "http://127.0.0.1:1", Spool: spool}, `{"hook_event_name":"Stop","session_id":"early"}`)
	opened, err := os.OpenFile(string(spool), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer opened.Close()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("late") != "" {
			_, _ = io.WriteString(opened, `{"agent":"claude-code","event":{"session_id":"late"}}`+"\n")
		}
	}))
	defer server.Close()
	run(ring.Options{URL: server.URL, Spool: spool}, stop)
	raw, err := os.ReadFile(string(spool))
	require.NoError(t, err)
	require.Contains(t, string(raw), `"late"`)
	require.NotContains(t, string(raw), `"early"`)
}

func TestAFullOrUnwritableSpoolIsNoTrouble(t *testing.T) {
	spool := spoolIn(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(string(spool)), 0o700))
	require.NoError(t, os.WriteFile(string(spool), bytes.Repeat([]byte("x\n"), 128<<10), 0o600))
	away := ring.Options{URL: "http://127.0.0.1:1", Spool: spool}
	require.Empty(t, run(away, stop))
	info, err := os.Stat(string(spool))
	require.NoError(t, err)
	require.EqualValues(t, 256<<10, info.Size())
	away.Spool = ring.Spool("/dev/null/no/folder")
	require.Empty(t, run(away, stop))
	away.Spool = ""
	require.Empty(t, run(away, stop))
}

func TestALineThatAFullDiskCutCostsNoOtherEvent(t *testing.T) {
	spool := spoolIn(t)
	away := ring.Options{URL: "http://127.0.0.1:1", Spool: spool}
	run(away, `{"hook_event_name":"Stop","session_id":"cut"}`)
	info, err := os.Stat(string(spool))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(string(spool), info.Size()-9))
	run(away, `{"hook_event_name":"Stop","session_id":"whole"}`)
	h := listen(t, "")
	run(ring.Options{URL: h.URL, Spool: spool}, stop)
	require.Len(t, h.events, 2)
	require.Equal(t, "whole", h.events[1].Session)
	left, err := os.ReadDir(filepath.Dir(string(spool)))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestASlowServerIsNotWaitedFor(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	spool := spoolIn(t)
	ended := make(chan string)
	go func() { ended <- runWithin(ring.Patience, ring.Options{URL: s.URL, Spool: spool}, stop) }()
	select {
	case answer := <-ended:
		require.Empty(t, answer)
	case <-time.After(mnemetest.Patience):
		require.Fail(t, "it waits for the server")
	}
	require.FileExists(t, string(spool))
}

func TestUnusableInputIsIgnored(t *testing.T) {
	h := listen(t, "answer")
	for _, in := range []string{"", "{", "[]", "null", `{"hook_event_name":"Stop"}`, `{"session_id":7,"hook_event_name":"Stop"}`, strings.Repeat(" ", ring.MaxInput+1)} {
		require.Empty(t, run(ring.Options{URL: h.URL}, in))
	}
	require.Empty(t, h.events)
}

func TestOfALongPromptTheServerGetsTheHead(t *testing.T) {
	e, err := ring.Read(strings.NewReader(`{"hook_event_name":"Stop","session_id":"s","prompt":"` + strings.Repeat("é", 5<<20) + `"}`))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("é", ring.MaxPrompt), e.Prompt)
}

func TestTheEventsOfAllAgentsAreUnderstood(t *testing.T) {
	for raw, want := range map[string]ring.Event{
		// Copilot CLI 1.0.102
		`{"hook_event_name":"SessionStart","session_id":"31be-5f","timestamp":"2026-11-26T02:58:32.541Z","cwd":"/shop","source":"new","initial_prompt":"hello"}`: {
			Name: "SessionStart", Session: "31be-5f", Folder: "/shop", Source: "new",
		},
		// Cursor
		`{"conversation_id":"c","generation_id":"g","hook_event_name":"beforeSubmitPrompt","workspace_roots":["/shop","/other"],"transcript_path":null,"prompt":"hello","attachments":[]}`: {
			Name: "beforeSubmitPrompt", Session: "c", Folder: "/shop", Prompt: "hello",
		},
		// OpenHands 1.58
		`{"event_type":"UserPromptSubmit","tool_name":null,"message":"hello","session_id":"0123-ab","working_dir":"/shop","metadata":{}}`: {
			Name: "UserPromptSubmit", Session: "0123-ab", Folder: "/shop", Prompt: "hello",
		},
		// Kimi Code 2.1
		`{"hook_event_name":"UserPromptSubmit","session_id":"session_01","cwd":"/shop","client_type":"kimi_code_cli","prompt":[{"type":"text","text":"hello"},{"type":"image_url","imageUrl":{}}],"is_steer":false}`: {
			Name: "UserPromptSubmit", Session: "session_01", Folder: "/shop", Prompt: "hello\n",
		},
		// Hermes Agent 0.19
		`{"hook_event_name":"pre_llm_call","tool_name":null,"tool_input":null,"session_id":"20261130_005510_a43d91","cwd":"/shop","extra":{"task_id":"t","user_message":"hello","conversation_history":[{"role":"user","content":"hello"}],"is_first_turn":true,"model":"m","platform":"cli"}}`: {
			Name: "pre_llm_call", Session: "20261130_005510_a43d91", Folder: "/shop", Prompt: "hello",
		},
		`{"hook_event_name":"on_session_start","session_id":"20261130_005621_82e85e","cwd":"/shop","extra":{"model":"m","platform":"subagent"}}`: {
			Name: "on_session_start", Session: "20261130_005621_82e85e", Folder: "/shop", Subagent: "subagent",
		},
		// Factory Droid 0.225
		`{"session_id":"s","transcript_path":"/home/ada/.factory/sessions/-shop/s.jsonl","cwd":"/shop","permission_mode":"off","hook_event_name":"SessionStart","source":"compact","previous_session_id":"r"}`: {
			Name: "SessionStart", Session: "s", Transcript: "/home/ada/.factory/sessions/-shop/s.jsonl", Folder: "/shop", Source: "compact", Previous: "r",
		},
		`{"session_id":"s","cwd":"/shop","hook_event_name":"SessionStart","source":"startup","calling_session_id":"r"}`: {
			Name: "SessionStart", Session: "s", Folder: "/shop", Source: "startup", Subagent: "r",
		},
	} {
		e, err := ring.Decode([]byte(raw))
		require.NoError(t, err)
		require.Equal(t, want, e)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(stop))
	f.Add([]byte(`{"event_type":"Stop","conversation_id":"c","workspace_roots":["/shop"],"message":"m"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := ring.Decode(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(e)
		require.NoError(t, err)
		same, err := ring.Decode(again)
		require.NoError(t, err)
		require.Equal(t, e, same)
	})
}
