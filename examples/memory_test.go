package examples

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// block is a content block of Anthropic's Messages API.
type block struct {
	Type    string         `json:"type"`
	Text    string         `json:"text,omitempty"`
	ID      string         `json:"id,omitempty"`
	Name    string         `json:"name,omitempty"`
	Input   map[string]any `json:"input,omitempty"`
	UseID   string         `json:"tool_use_id,omitempty"`
	Content string         `json:"content,omitempty"`
	IsError bool           `json:"is_error,omitempty"`
}

// scripted is an endpoint whose model gives these commands, one after the other, and then repeats its last result.
func scripted(t *testing.T, commands ...map[string]any) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Tools    []map[string]string
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "secret" || len(request.Tools) != 1 || request.Tools[0]["type"] != "memory_20250818" {
			http.Error(w, "not a request of the example", http.StatusBadRequest)
			return
		}
		done := len(request.Messages) / 2
		var answer block
		if done < len(commands) {
			answer = block{Type: "tool_use", ID: "call", Name: "memory", Input: commands[done]}
		} else {
			var results []block
			if err := json.Unmarshal(request.Messages[len(request.Messages)-1].Content, &results); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			answer = block{Type: "text", Text: results[0].Content}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"role": "assistant", "content": []block{answer}})
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAModelFindsItsNotesInTheNextSession(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT RUN: there is no python3")
	}
	raw, err := os.ReadFile("python/memory.py")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(raw), "\n"), 50, "it is an example")
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	session := func(commands ...map[string]any) (answer, commented string) {
		cmd := exec.CommandContext(t.Context(), python, "python/memory.py", "Go on")
		cmd.Env = append(os.Environ(), "MNEME_URL="+s.HTTP, "ANTHROPIC_BASE_URL="+scripted(t, commands...).URL, "ANTHROPIC_API_KEY=secret", "PROJECT=/w/shop")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "%s", &stderr)
		return string(out), stderr.String()
	}
	_, commented := session(
		map[string]any{"command": "view", "path": "/memories"},
		map[string]any{"command": "create", "path": "/memories/progress.md", "file_text": "Café: closed on Mondays.\n"},
		map[string]any{"command": "create", "path": "/memories/progress.md", "file_text": "again"})
	require.Contains(t, commented, "create: File created successfully at: /memories/progress.md")
	require.Contains(t, commented, "create: Error: File /memories/progress.md already exists", "the model hears of errors")
	answer, _ := session(map[string]any{"command": "view", "path": "/memories/progress.md"})
	require.Contains(t, answer, "     1\tCafé: closed on Mondays.")
}
