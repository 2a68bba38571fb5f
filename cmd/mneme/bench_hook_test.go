package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/mnemetest/programs"
)

// sessions is a recording of sessions in one project, in the neutral format.
type sessions struct {
	t     *testing.T
	lines []string
}

func (s *sessions) line(id string, minute int, more map[string]any) {
	more["conversation_id"], more["id"], more["seq"] = id, fmt.Sprint("e", len(s.lines)), len(s.lines)
	more["time"] = time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC).Format(time.RFC3339)
	raw, err := json.Marshal(more)
	require.NoError(s.t, err)
	s.lines = append(s.lines, string(raw))
}

func (s *sessions) begin(id string, minute int) {
	s.line(id, minute, map[string]any{"kind": "conversation", "meta": map[string]any{"cwd": "/src/app"}})
}

// turn is a prompt, an answer, and the reading of a file, if there is one.
func (s *sessions) turn(id string, minute int, prompt, answer, file string) {
	s.line(id, minute, map[string]any{"kind": "message", "role": "user", "content": prompt})
	s.line(id, minute, map[string]any{"kind": "message", "role": "assistant", "content": answer})
	if file != "" {
		s.line(id, minute, map[string]any{"kind": "tool_call", "tool_name": "Read", "arguments": map[string]any{"file_path": "/src/app/" + file}})
	}
}

func (s *sessions) measure() (r bench.Hook) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "sessions.jsonl")
	require.NoError(s.t, os.WriteFile(path, []byte(strings.Join(s.lines, "\n")+"\n"), 0o600))
	_, err := programs.Build("mneme.dev/mneme/cmd/mneme-hook") // beside mneme
	require.NoError(s.t, err)
	out, stderr, code := mneme(s.t, "bench", "hook", "--events", path, "--json")
	require.Zero(s.t, code, stderr)
	require.NoError(s.t, json.Unmarshal([]byte(out), &r))
	return r
}

// history returns five earlier sessions, which are not measured. One is about retries in an upload.
func history(t *testing.T) *sessions {
	s := &sessions{t: t}
	for n, about := range []string{"colours of the buttons", "a typo on the welcome page", "names of the columns", "the licence text"} {
		id := fmt.Sprint("claude_code:old", n)
		s.begin(id, n)
		s.turn(id, n, "Please change "+about, "I have changed "+about, fmt.Sprintf("other/part%d.go", n))
	}
	s.begin("claude_code:upload", 10)
	s.turn("claude_code:upload", 10, "The retry in uploadQueue.go loses the last part when the lease expires", "The lease was renewed too late in uploadQueue.go", "queue/uploadQueue.go")
	return s
}

func TestBenchHookCountsWhatFitsAPromptAndIsTouchedThen(t *testing.T) {
	s := history(t)
	s.begin("claude_code:new", 20)
	s.turn("claude_code:new", 20, "go on", "Yes.", "queue/uploadQueue.go")
	s.turn("claude_code:new", 21, "what time is it in Lisbon today?", "Noon.", "")
	s.turn("claude_code:new", 22, "uploadQueue.go loses the last part when the lease expires", "I look at it.", "queue/uploadQueue.go")
	s.begin("claude_code:miss", 30)
	s.turn("claude_code:miss", 30, "uploadQueue.go loses the last part when the lease expires", "I look elsewhere.", "unrelated.go")
	s.begin("aider:other", 40) // of an agent without hooks
	s.turn("aider:other", 40, "uploadQueue.go loses the last part when the lease expires", "I look at it.", "queue/uploadQueue.go")

	r := s.measure()
	require.Equal(t, []int{8, 2}, []int{r.Sessions, r.Asked})
	require.Equal(t, []int{4, 2, 3, 1, 1, 1}, []int{r.All.Prompts, r.All.Spoke, r.Earlier.Prompts, r.Earlier.Spoke, r.Later.Prompts, r.Later.Spoke})
	require.Equal(t, []float64{0.5, 0.5, 1, 0}, []float64{r.All.Share, r.All.Hits, r.Earlier.Hits, r.Later.Hits})
	require.Zero(t, r.All.News, "the prompts name the file")
	require.InDelta(t, 1, r.All.Touching, 0)
	require.Positive(t, r.All.Chars)
	require.Equal(t, 4, r.Answer.Count)
	require.Equal(t, 4+5, r.Process.Count, "the first five sessions too")
	require.Positive(t, r.Process.P50)
}

func TestBenchHookShowsNothingOfLaterOrOfTheSessionItself(t *testing.T) {
	s := history(t)
	s.begin("claude_code:beside", 15)
	s.begin("claude_code:new", 20)
	s.turn("claude_code:new", 20, "why is readCache.go slow with cold pages?", "It reads each page of readCache.go twice.", "readCache.go")
	s.turn("claude_code:new", 21, "so why is readCache.go slow with cold pages?", "As I said.", "readCache.go")
	s.turn("claude_code:beside", 30, "make readCache.go fast with cold pages", "I read each page of readCache.go once.", "readCache.go") // this session began earlier and said it later

	r := s.measure()
	require.Equal(t, 3, r.All.Prompts)
	require.Equal(t, 1, r.All.Spoke, "only the last prompt has a past")
}

func TestBenchHookCountsAPromptThatAContinuationRepeatsOnce(t *testing.T) {
	s := history(t)
	for _, id := range []string{"claude_code:first", "claude_code:resumed"} {
		s.begin(id, 20)
		s.turn(id, 20, "uploadQueue.go loses the last part when the lease expires", "I look at it.", "queue/uploadQueue.go")
	}
	r := s.measure()
	require.Equal(t, []int{1, 1}, []int{r.Asked, r.All.Prompts})
}

func TestBenchHookNeedsSessionsOfAgentsWithHooks(t *testing.T) {
	s := history(t)
	path := filepath.Join(t.TempDir(), "sessions.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(s.lines, "\n")+"\n"), 0o600))
	_, stderr, code := mneme(t, "bench", "hook", "--events", path)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "no session after the first five")
}
