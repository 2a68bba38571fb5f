// Package examples tests the clients in other languages with the real packages of those
// languages, which `make test` installs.
package examples

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// client is an example in another language.
type client struct {
	folder, program string
	command         []string // relative to the folder with its packages
	binary, other   string   // the program's names for the modes
}

var clients = []client{
	{"python", "client.py", []string{"bin/python"}, "to_binary_event(", "to_structured_event("},
	{"javascript", "client.mjs", []string{"node"}, "HTTP.binary(", "HTTP.structured("},
}

// The second conversation needs every kind of escaping: in a subject, a header and a path.
var conversations = []string{"plain", `a/b.c *> 🦊 50%41 "é" `}

func TestEveryClientModeStoresEventsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range clients {
		t.Run(c.folder, func(t *testing.T) {
			t.Parallel()
			c.installed(t)
			s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
			raw, err := os.ReadFile(filepath.Join(c.folder, c.program))
			require.NoError(t, err)
			program := string(raw)
			require.Less(t, strings.Count(program, "\n"), 40, "it is an example")
			swapped := strings.NewReplacer(c.binary, c.other, c.other, c.binary).Replace(program)
			require.NotEqual(t, program, swapped)

			for _, conversation := range conversations {
				context := c.run(t, s, program, conversation)
				for _, text := range []string{"Où est le café ? ☕", "Tool used: grep", "menu.txt:3: café crème", "À la ligne 3 du menu."} {
					require.Contains(t, context, text)
				}
				require.Equal(t, context, c.run(t, s, swapped, conversation), "each event again, in the other mode")
			}
			c.checkLog(t, s)
			checkReadModels(t, s)
		})
	}
}

// checkLog reads every event from the log. Events published over NATS are there twice,
// because the program sets no Nats-Msg-Id; over HTTP the log recognized the repeats.
func (c client) checkLog(t *testing.T, s *mnemetest.Server) {
	t.Helper()
	conn, err := nats.Connect(s.NATS, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	log, err := eventlog.Open(t.Context(), conn)
	require.NoError(t, err)
	state, err := log.State(mnemetest.Context(t))
	require.NoError(t, err)

	type stored struct {
		ID, Type string
		Data     map[string]any
		Times    int
	}
	var got, want []stored
	for _, conversation := range conversations {
		want = append(want,
			stored{conversation + "/m1", events.TypeMessageCreated, map[string]any{"message_id": "m1", "role": "user", "content": "Où est le café ? ☕"}, 2},
			stored{conversation + "/t1", events.TypeToolCalled, map[string]any{"tool_call_id": "t1", "tool_name": "grep", "arguments": map[string]any{"pattern": "café"}}, 2},
			stored{conversation + "/r1", events.TypeToolReturned, map[string]any{"tool_call_id": "t1", "success": true, "result": "menu.txt:3: café crème"}, 1},
			stored{conversation + "/m2", events.TypeMessageCreated, map[string]any{"message_id": "m2", "role": "assistant", "content": "À la ligne 3 du menu."}, 1})
	}
	first := map[events.Digest]int{}
	content := map[events.Digest]events.Digest{}
	for seq := uint64(1); seq <= state.Head; seq++ {
		m, err := log.Get(t.Context(), seq)
		require.NoError(t, err)
		e, err := events.RecordMessage(m.Header, m.Data)
		require.NoError(t, err)
		address, err := events.ParseSubject(m.Subject)
		require.NoError(t, err)
		require.Equal(t, events.Address{Tenant: "default", Conversation: e.Subject, Kind: events.Kind(e.Type)}, address)
		require.Equal(t, "examples/"+c.folder, e.Source)
		require.False(t, e.Time.IsZero())

		identity := e.Identity("default")
		if at, again := first[identity]; again {
			got[at].Times++
			require.Equal(t, content[identity], e.Content(), "both modes say the same")
			continue
		}
		first[identity], content[identity] = len(got), e.Content()
		one := stored{ID: e.ID, Type: e.Type, Times: 1}
		require.NoError(t, json.Unmarshal(e.Data, &one.Data))
		got = append(got, one)
	}
	require.Equal(t, want, got)
}

type conversationCounts struct {
	ID          string
	Messages    int `json:"message_count"`
	ToolCalls   int `json:"tool_call_count"`
	ToolResults int `json:"tool_result_count"`
}

// checkReadModels waits until everything is applied.
func checkReadModels(t *testing.T, s *mnemetest.Server) {
	t.Helper()
	head := read[mnemetest.Status](t, http.MethodGet, s.HTTP+"/v1/status").Stream.Head
	for _, conversation := range conversations {
		shown := read[conversationCounts](t, http.MethodGet, fmt.Sprintf("%s/v1/conversations/%s?at_least=%d", s.HTTP, url.PathEscape(conversation), head))
		require.Equal(t, conversationCounts{conversation, 2, 1, 1}, shown)
	}
	for _, p := range read[mnemetest.Status](t, http.MethodGet, s.HTTP+"/v1/status").Projections {
		require.Zero(t, p.Failed, p.Name)
		if p.Name == "graph" {
			require.EqualValues(t, 4*len(conversations), p.Applied)
			require.EqualValues(t, 2*len(conversations), p.Duplicates, "those published over NATS")
		}
	}
	require.True(t, read[struct{ Equal bool }](t, http.MethodPost, s.HTTP+"/v1/verify").Equal)
}

func read[T any](t *testing.T, method, url string) (answer T) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer
}

// cache is the folder where make installs the client's packages.
func (c client) cache(t *testing.T) string {
	dir, err := filepath.Abs(filepath.Join("..", ".cache", c.folder))
	require.NoError(t, err)
	return dir
}

func (c client) installed(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(c.cache(t), "installed")); err != nil {
		t.Skipf("the packages of the %s client are not installed: make .cache/%s/installed", c.folder, c.folder)
	}
}

// run runs the program in the folder of its packages and returns its output.
func (c client) run(t *testing.T, s *mnemetest.Server, program, conversation string) string {
	t.Helper()
	dir, err := os.MkdirTemp(c.cache(t), "run-")
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, c.program)
	require.NoError(t, os.WriteFile(file, []byte(program), 0o644))

	command := c.command[0]
	if strings.Contains(command, "/") {
		command = filepath.Join(c.cache(t), command)
	}
	cmd := exec.CommandContext(t.Context(), command, file, conversation)
	cmd.Env = append(os.Environ(), "MNEME_URL="+s.HTTP, "MNEME_NATS_URL="+s.NATS)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	return string(out)
}
