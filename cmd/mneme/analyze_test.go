package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
)

const insightAnswer = `{"main_topic":"Parsers.","key_findings":["The cache lies."],"action_items":["Fix it."]}`

// analyzing starts a server with three conversations, and a model that answers what a test says.
func analyzing(t *testing.T) (*server, *llmtest.Endpoint, func(args ...string) (string, string, int)) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.jsonl")
	recording(t, file, 1, 3, 4)
	program := mnemetest.UpWith(t, "--data", filepath.Join(dir, "data"), "--summary-writer", "off")
	s := &server{program, t, ready{HTTP: program.HTTP, NATS: program.NATS, Data: program.Data}}
	_, stderr, code := s.mneme("import", file, "--wait")
	require.Zero(t, code, stderr)
	e := llmtest.New(t)
	return s, e, func(args ...string) (string, string, int) {
		return s.mneme(append([]string{"analyze", "--summary-writer", "openai", "--llm-url", e.URL(), "--llm-model", "canned", "--parallel", "1"}, args...)...)
	}
}

func TestAnalyzeAsksAboutEachConversationOnce(t *testing.T) {
	t.Parallel()
	s, e, analyze := analyzing(t)
	e.Reply(llmtest.Chat(insightAnswer))
	_, stderr, code := analyze()
	require.Equal(t, exitUsage, code, "there is no terminal to ask")
	require.Contains(t, stderr, "--yes")
	require.Zero(t, e.Calls())

	out, stderr, code := analyze("--yes")
	require.Zero(t, code, stderr)
	require.Equal(t, 3, strings.Count(out, "main_topic: Parsers.\nkey_findings:\n  - The cache lies.\naction_items:\n  - Fix it.\n"))
	require.Contains(t, stderr, "3 conversations; 3 calls to canned")
	require.Equal(t, 3, e.Calls())
	require.Contains(t, e.Requests()[0].Text, "\\u003crecord\\u003e")

	// The answers are events, so nothing is asked again.
	out, stderr, code = analyze("--json")
	require.Zero(t, code, stderr)
	require.Equal(t, 3, strings.Count(out, `"known": true`)+strings.Count(out, `"known":true`))
	require.Equal(t, 3, e.Calls())
	// A conversation that has grown is asked about again.
	s.publish("testagent:1", userMessage("more", "What else?"))
	require.Eventually(t, func() bool {
		_, stderr, code = analyze("--yes")
		require.Zero(t, code, stderr)
		return e.Calls() == 4
	}, mnemetest.Patience, 100*time.Millisecond)
}

func TestAnalyzeListsConversationsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	_, e, analyze := analyzing(t)
	e.Reply(llmtest.Chat(insightAnswer), llmtest.Chat("It was about parsers."), llmtest.Chat(`{"main_topic": 5}`), llmtest.Chat(insightAnswer))
	out, stderr, code := analyze("--yes")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "no answer: ")
	require.Contains(t, out, "the answer does not fit the schema")
	require.Contains(t, stderr, "1 of 3 conversations without an answer")
	require.Contains(t, e.Requests()[2].Text, "could not be used: the answer is not a JSON object")
	require.Equal(t, 4, e.Calls())
	_, stderr, code = analyze("--yes")
	require.Zero(t, code, stderr)
	require.Equal(t, 5, e.Calls(), "only the one that failed is asked about again")
}

func TestAnalyzeStopsAtItsCap(t *testing.T) {
	t.Parallel()
	_, e, analyze := analyzing(t)
	e.Reply(llmtest.Chat(insightAnswer))
	out, stderr, code := analyze("--yes", "--llm-max-calls-per-hour", "1")
	require.Equal(t, exitFailed, code)
	require.Equal(t, 1, e.Calls())
	require.Contains(t, out, "cap")
	require.Contains(t, out, "no answer: not asked: ")
	require.Contains(t, stderr, "2 of 3 conversations without an answer")
}

func TestAnalyzeDoesTasksInTheFormOfASchema(t *testing.T) {
	t.Parallel()
	s, e, analyze := analyzing(t)
	schema := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(schema, []byte(`{"topic": {"type": "string"}, "count": {"type": "integer"}}`), 0o600))
	e.Reply(llmtest.Chat(`{"topic":"caches","count":2}`))
	out, stderr, code := analyze("--yes", "--task", "Count the caches.", "--schema", schema, "--map-reduce", "--conversation", "testagent:0", "--conversation", "testagent:2")
	require.Zero(t, code, stderr)
	require.Equal(t, 3, strings.Count(out, "topic: caches\ncount: 2\n"), "of two conversations, and over all: %s", out)
	require.Equal(t, 3, e.Calls())
	require.Contains(t, e.Requests()[0].Text, "Count the caches.")
	require.Contains(t, e.Requests()[2].Text, "testagent:2: {")

	out, stderr, code = analyze("--yes", "--task", "Count the caches.")
	require.Equal(t, exitFailed, code, "an answer in words has another form")
	require.Contains(t, out, "no answer")
	require.NotEmpty(t, stderr)

	response, err := http.Get(s.HTTP + "/v1/conversations/testagent:0/analyses")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var stored httpapi.Analyses
	require.NoError(t, json.NewDecoder(response.Body).Decode(&stored))
	require.Len(t, stored.Analyses, 1)
	require.Equal(t, "Count the caches.", stored.Analyses[0].Task)
	require.Equal(t, [2]int{stored.Turns, stored.Chars}, [2]int{stored.Analyses[0].Turns, stored.Analyses[0].Chars})

	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--schema", schema}, "--schema belongs to --task"},
		{[]string{"--task", strings.Repeat("x", 501)}, "not 1 to 500"},
		{[]string{"--conversation", "nobody"}, "not found"},
		{[]string{"--project", "/nowhere"}, ""},
		{[]string{"--tag", "none"}, "no conversation to analyze"},
		{[]string{"--parallel", "0"}, "--parallel 0: must be at least 1"},
	} {
		_, stderr, code := analyze(append(c.args, "--yes")...)
		require.NotZero(t, code, c.args)
		require.Contains(t, stderr, c.says)
	}
	for _, text := range []string{`[]`, `{`, `{"type":"array"}`, `{"type":"object"}`, `{"type":"object","properties":{"a":{"type":"nonsense"}}}`, `"x"`} {
		require.NoError(t, os.WriteFile(schema, []byte(text), 0o600))
		_, stderr, code := analyze("--yes", "--task", "x", "--schema", schema)
		require.Equal(t, exitUsage, code, text)
		require.Contains(t, stderr, "the schema", text)
	}
	_, stderr, code = s.mneme("analyze")
	require.Equal(t, exitFailed, code, "as condense")
	require.Contains(t, stderr, "no model is configured: set MNEME_SUMMARY_WRITER")
}

func TestAnswersOfAnalyzeStandInTheContextOfTheirProject(t *testing.T) {
	t.Parallel()
	s, e, analyze := analyzing(t)
	e.Reply(llmtest.Chat(insightAnswer))
	_, stderr, code := s.mneme("conversations", "create", "--id", "mine", "--project", "acme", "--cwd", "/w/acme")
	require.Zero(t, code, stderr)
	s.publish("mine", userMessage("m", "Write a parser."))
	require.Eventually(t, func() bool {
		_, _, code := analyze("--yes", "--conversation", "mine")
		return code == 0 && e.Calls() == 1
	}, mnemetest.Patience, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		out, _, _ := s.mneme("context", "--project", "acme")
		return strings.Contains(out, "Found: The cache lies.") && strings.Contains(out, "left to do: Fix it.")
	}, mnemetest.Patience, 100*time.Millisecond)
}
