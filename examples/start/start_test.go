package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
)

// A program is the agent in one language.
type program struct {
	name    string
	install string // how to get what it needs
	command func(t *testing.T) []string
}

var programs = []program{
	{"go", "", func(t *testing.T) []string { return []string{abs(t, os.Args[0])} }},
	{"python", "make .cache/sdk/installed", func(t *testing.T) []string {
		return []string{abs(t, "../../.cache/sdk/bin/python"), abs(t, "agent.py")}
	}},
	{"typescript", "install Node 20 or later", func(t *testing.T) []string {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "node_modules"), 0o755))
		require.NoError(t, os.Symlink(abs(t, "../../sdk/typescript"), filepath.Join(dir, "node_modules", "mneme")))
		text, err := os.ReadFile("agent.mjs")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "agent.mjs"), text, 0o644))
		return []string{"node", filepath.Join(dir, "agent.mjs")}
	}},
}

// asAgent makes this program the agent instead of its test, which saves building it.
const asAgent = "MNEME_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}

// run asks a question and returns the answer. It skips the test if the language is not there.
func (p program) run(t *testing.T, s *mnemetest.Server, modelURL, dir, question string) string {
	t.Helper()
	command := append(p.command(t), "start-"+p.name, question)
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skipf("NOT RUN: the agent in %s is not tested: %s", p.name, p.install)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asAgent+"=1", "PYTHONPATH="+abs(t, "../../sdk/python/src"), "MNEME_URL="+s.HTTP, "MNEME_NATS_URL="+s.NATS,
		"OPENAI_BASE_URL="+modelURL, "OPENAI_MODEL="+llmtest.ModelName, "OPENAI_API_KEY=secret")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	return strings.TrimSuffix(string(out), "\n")
}

// calling is an answer of the model that calls a tool, without a text.
func calling(tool, arguments string) llmtest.Reply {
	text, _ := json.Marshal(arguments)
	return llmtest.Raw(`{"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [
		{"id": "call_1", "type": "function", "function": {"name": "` + tool + `", "arguments": ` + string(text) + `}}]}}]}`)
}

func TestTheAgentRecordsItselfAndRemembers(t *testing.T) {
	t.Parallel()
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "menu.txt"), nil, 0o644))
			model := llmtest.New(t)

			model.Reply(calling("list_files", `{"folder": "."}`), calling("list_files", `{"folder": ".."}`), calling("bake", `{"cake": 1}`), llmtest.Chat("There is a menu."))
			require.Equal(t, "There is a menu.", p.run(t, s, model.URL(), dir, "What is here?"))
			require.Equal(t, "Bearer secret", model.Requests()[0].Header.Get("Authorization"))
			require.Len(t, model.Requests(), 4)
			last := model.Requests()[3].Text
			for _, seen := range []string{"What is here?", "menu.txt", "there is no tool bake"} {
				require.Contains(t, last, seen, "what the model saw before it answered")
			}
			require.Equal(t, 2, strings.Count(last, `"(failed) `), "a folder above, and an unknown tool")

			model.Reply(llmtest.Chat("I said: a menu."))
			require.Equal(t, "I said: a menu.", p.run(t, s, model.URL(), dir, "What did you find?"))
			next := model.Requests()[4].Text
			for _, seen := range []string{"What is here?", "menu.txt", "There is a menu.", "What did you find?"} {
				require.Contains(t, next, seen, "what a new process of the agent remembers")
			}
			requireRecorded(t, s, "start-"+p.name, 7, 3)
		})
	}
}

// requireRecorded waits until what an agent published is applied, and compares how much it was.
func requireRecorded(t *testing.T, s *mnemetest.Server, conversation string, messages, calls int) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		response, err := http.Get(s.HTTP + "/v1/conversations/" + conversation)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		var got struct {
			Messages int `json:"message_count"`
			Calls    int `json:"tool_call_count"`
			Results  int `json:"tool_result_count"`
		}
		require.NoError(t, json.NewDecoder(response.Body).Decode(&got))
		require.Equal(t, []int{messages, calls, calls}, []int{got.Messages, got.Calls, got.Results})
	}, mnemetest.Patience, 50*time.Millisecond)
}

// One language is enough: they send the model the same. It writes a few words only, because it is slow.
func TestTheAgentSpeaksWithARealModel(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(llmtest.Model(t))
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		short := strings.Replace(string(text), `"max_tokens":400`, `"max_tokens":20`, 1)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(short)), int64(len(short))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(model.Close)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	require.NotEmpty(t, programs[0].run(t, s, model.URL+"/v1", t.TempDir(), "Say hello."))
	requireRecorded(t, s, "start-go", 2, 0)
}

func TestThePageShowsTheProgramsAsTheyAre(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/start/record.md")
	require.NoError(t, err)
	shown := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```(python|js|go)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		shown[block[1]] = block[2]
	}
	for language, file := range map[string]string{"python": "agent.py", "js": "agent.mjs", "go": "main.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEmpty(t, shown[language])
		require.Contains(t, string(text), shown[language], "copy it from the file")
		require.LessOrEqual(t, strings.Count(string(text), "\n"), 80, "%s is an example", file)
	}
	text, err := os.ReadFile("agent.py")
	require.NoError(t, err)
	require.Equal(t, string(text), shown["python"], "the page shows all of it")
}
