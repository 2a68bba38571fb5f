package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// report is what a client in another language has seen.
type report struct {
	Tools    []string
	Protocol string
	Seen     map[string]struct {
		Failed bool
		Text   string
	}
	Noted struct{ Project, Ref string }
}

// publish stores an event of the conversation cart.
func publish(t *testing.T, url, kind, id, data string) (seq uint64) {
	t.Helper()
	body := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.%s.v1","source":"test","id":%q,"subject":"cart","data":%s}`, kind, id, data)
	response, err := http.Post(url+"/v1/events", "application/cloudevents+json", strings.NewReader(body)) //nolint:noctx // it ends with the server
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusCreated, response.StatusCode)
	var answer struct{ Seq uint64 }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer.Seq
}

// The clients are those of the protocol's own SDKs: whoever builds an agent uses one of them.
func TestTheSDKsOfOtherLanguagesUseEveryToolOnBothRoads(t *testing.T) {
	t.Parallel()
	dir := installed(t)
	binary, err := mnemetest.Binary()
	require.NoError(t, err)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	publish(t, s.HTTP, "conversation.started", "start", `{"project":"shop"}`)
	publish(t, s.HTTP, "message.created", "m1", `{"message_id":"m1","role":"user","content":"The voucher is subtracted twice"}`)
	publish(t, s.HTTP, "tool.called", "t1", `{"tool_call_id":"t1","tool_name":"Edit","arguments":{"file_path":"/w/shop/cart.go","old_string":"a","new_string":"b"}}`)
	seq := publish(t, s.HTTP, "message.created", "m2", `{"message_id":"m2","role":"assistant","content":"Fixed"}`)
	for _, path := range []string{"/v1/projects/shop?", "/v1/code/conversations?name=x&"} {
		response, err := http.Get(fmt.Sprintf("%s%sat_least=%d&wait_ms=30000", s.HTTP, path, seq)) //nolint:noctx // as above
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	programs := map[string][]string{
		"Python":     {filepath.Join(dir, "bin", "python"), "clients/client.py"},
		"TypeScript": {node(t, dir), filepath.Join(dir, "client.mjs")}, // packages are looked for beside the program
	}
	raw, err := os.ReadFile("clients/client.mjs")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(programs["TypeScript"][1], raw, 0o644))
	roads := map[string][]string{
		"http":  {"http", s.HTTP + "/mcp?project=shop"},
		"stdio": {"stdio", binary, "mcp", "--project", "shop"},
	}
	for language, program := range programs {
		for road, args := range roads {
			t.Run(language+" over "+road, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], args...)...)
				cmd.Env = append(os.Environ(), "MNEME_URL="+s.HTTP)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				lines := bufio.NewScanner(out)
				lines.Buffer(nil, 1<<20)
				if !lines.Scan() {
					t.Fatalf("it ended: %v\n%s", cmd.Wait(), &stderr)
				}
				var r report
				require.NoError(t, json.Unmarshal(lines.Bytes(), &r), lines.Text())
				require.Equal(t, "2026-07-28", r.Protocol)
				require.Equal(t, "shop", r.Noted.Project)
				for tool, contains := range map[string]string{
					"memory_context": "voucher", "memory_search": "subtracted twice", "memory_read": "call of Edit",
					"memory_file_history": `"conversation":"cart"`, "memory_remember": `"ref":"notes:shop#seq=`,
				} {
					require.Contains(t, r.Tools, tool)
					require.False(t, r.Seen[tool].Failed, "%s: %s", tool, r.Seen[tool].Text)
					require.Contains(t, r.Seen[tool].Text, contains, tool)
				}
				changed := make(chan string, 1)
				go func() {
					lines.Scan()
					changed <- lines.Text()
				}()
				for i := 0; ; i++ { // on stdio the subscription may begin only after its acknowledgement
					publish(t, s.HTTP, "message.created", fmt.Sprint(language, road, i), fmt.Sprintf(`{"message_id":"%s%s%d","role":"user","content":"more"}`, language, road, i))
					select {
					case text := <-changed:
						require.JSONEq(t, `{"changed":"mneme://conversations/cart/context"}`, text, "%s", &stderr)
						require.NoError(t, cmd.Wait(), "%s", &stderr)
						return
					case <-time.After(200 * time.Millisecond):
					}
				}
			})
		}
	}
}
