package sdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// A contract is what every client must do.
type contract struct {
	Name         string
	Conversation string         // its id; the name if it is empty
	Memory       map[string]any // options of the client
	Faults       []string       // what happens to its requests, one after the other; see [faults]
	Calls        []call
	Log          []map[string]any // the events of the conversation; nil if they are not compared
}

// A call is a method call. The answer and the members of the error that are named must match.
type call struct {
	Call    string
	Args    []any
	Options map[string]any
	Take    int // how many rows to read of an endless iterator
	Answer  any
	Error   map[string]any
}

// A result is what a call returned.
type result struct {
	Answer any
	Error  map[string]any
}

func contracts(t *testing.T) []contract {
	t.Helper()
	text, err := os.ReadFile("contract.json")
	require.NoError(t, err)
	var all []contract
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&all))
	for i := range all {
		if all[i].Conversation == "" {
			all[i].Conversation = all[i].Name
		}
	}
	return all
}

// A client is a program that makes the calls of the contract and prints the results of each case on a line.
type client struct {
	name    string // also its tenant
	install string // how to get it
	command []string
}

var clients = []client{
	{"python", "make .cache/sdk/installed", []string{"../.cache/sdk/bin/python", "python/tests/contract.py", "sync"}},
	{"python-async", "make .cache/sdk/installed", []string{"../.cache/sdk/bin/python", "python/tests/contract.py", "async"}},
	{"typescript", "install Node 20 or later", []string{"node", "typescript/test/contract.js"}},
}

func TestEveryClientKeepsTheContract(t *testing.T) {
	t.Parallel()
	all := contracts(t)
	file, tokens := filepath.Join(t.TempDir(), "tokens.jsonl"), map[string]string{}
	tokens[elsewhere] = token(t, file, "--all-tenants")
	for _, tenant := range []string{"python", "python-async", "typescript", "go"} {
		tokens[tenant] = token(t, file, "--tenant", tenant)
	}
	s := mnemetest.UpWith(t, "--data", filepath.Join(t.TempDir(), "data"), "--tokens-file", file)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.installed(t)
			url := between(t, s.HTTP, all)
			env := []string{"PYTHONPATH=python/src", "MNEME_TOKEN=" + tokens[c.name], "ELSEWHERE_TOKEN=" + tokens[elsewhere], "HTTP_PROXY=http://127.0.0.1:9"} // which leads nowhere, but this machine needs none
			results := c.run(t, env, "contract.json", url, c.name)
			require.Len(t, results, len(all))
			for i, want := range all {
				want.check(t, results[i])
			}
			checkLog(t, s.NATS, c.name, all)
		})
	}
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		g := newGoClient(t, s, "go", tokens)
		var kept []contract
		for _, c := range all {
			if len(c.Faults) > 0 || c.Memory != nil {
				continue // trying again, choosing a token and making addresses are the caller's, in Go
			}
			kept = append(kept, c)
			c.check(t, g.run(c))
		}
		require.Greater(t, len(kept), 5)
		checkLog(t, s.NATS, "go", kept)
	})
}

// elsewhere names the token of all tenants.
const elsewhere = "*"

// token makes a token and writes its hash into the file that the server reads.
func token(t *testing.T, file string, whose ...string) string {
	t.Helper()
	stdout, stderr, code := mnemetest.Run(t, nil, append([]string{"tokens", "create", "--tokens-file", file, "--role", "write"}, whose...)...)
	require.Zero(t, code, stderr)
	return strings.TrimSpace(stdout)
}

func (c client) installed(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath(c.command[0])
	if err != nil {
		t.Skipf("NOT RUN: the client %s is not tested: %s", c.name, c.install)
	}
}

func (c client) run(t *testing.T, env []string, args ...string) [][]result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.command[0], append(c.command[1:], args...)...)
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", &stderr, out)
	require.Empty(t, stderr.String())
	var all [][]result
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		var one []result
		require.NoError(t, json.Unmarshal(lines.Bytes(), &one), lines.Text())
		all = append(all, one)
	}
	return all
}

func (c *contract) check(t *testing.T, results []result) {
	t.Helper()
	require.Len(t, results, len(c.Calls), c.Name)
	for i, want := range c.Calls {
		got, where := results[i], fmt.Sprintf("%s, call %d (%s)", c.Name, i+1, want.Call)
		switch {
		case want.Error != nil:
			require.NotNil(t, got.Error, "%s: there is no error, but %v", where, got.Answer)
			requireMatch(t, want.Error, got.Error, where)
		default:
			require.Nil(t, got.Error, where)
			if want.Answer != nil {
				requireMatch(t, want.Answer, got.Answer, where)
			}
		}
	}
}

// requireMatch requires that a JSON value has everything that is wanted: in an object the named
// members, in a list each element, in a text with $contains these parts; with $positive it is a
// number above 0.
func requireMatch(t *testing.T, want, got any, where string) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		if parts, ok := want["$contains"].([]any); ok {
			for _, part := range parts {
				require.Contains(t, got, part, where)
			}
			return
		}
		if want["$positive"] == true {
			require.Positive(t, got, where)
			return
		}
		object, ok := got.(map[string]any)
		require.True(t, ok, "%s: %v is no object", where, got)
		for name, value := range want {
			if reflect.DeepEqual(value, map[string]any{"$absent": true}) {
				require.NotContains(t, object, name, where)
				continue
			}
			require.Contains(t, object, name, where)
			requireMatch(t, value, object[name], where+"."+name)
		}
	case []any:
		list, ok := got.([]any)
		require.True(t, ok, "%s: %v is no list", where, got)
		require.Len(t, list, len(want), "%s: %v", where, list)
		for i := range want {
			requireMatch(t, want[i], list[i], fmt.Sprintf("%s[%d]", where, i))
		}
	default:
		require.Equal(t, want, got, where)
	}
}

// checkLog compares what the log holds of a tenant with the contract.
func checkLog(t *testing.T, natsURL, tenant string, all []contract) {
	t.Helper()
	conn, err := nats.Connect(natsURL, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	for _, c := range all {
		if c.Log == nil {
			continue
		}
		last, _, err := log.Last(mnemetest.Context(t), tenant, c.Conversation)
		require.NoError(t, err)
		got := []any{}
		if last > 0 {
			require.NoError(t, log.Conversation(mnemetest.Context(t), tenant, c.Conversation, last, func(m eventlog.Message) error {
				e, err := events.RecordMessage(m.Header, m.Data)
				require.NoError(t, err)
				require.Equal(t, c.Conversation, e.Subject)
				var data any
				require.NoError(t, json.Unmarshal(e.Data, &data))
				got = append(got, map[string]any{"id": e.ID, "data": data, "type": strings.TrimSuffix(strings.TrimPrefix(e.Type, "dev.mneme."), ".v1")})
				return nil
			}))
		}
		want := []any{}
		for _, e := range c.Log {
			want = append(want, e)
		}
		requireMatch(t, want, got, c.Name+": log")
	}
}

func TestAnEmptyIdIsRefused(t *testing.T) {
	t.Parallel()
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	for name, program := range map[string][]string{
		"python":     {"../.cache/sdk/bin/python", "-c", "import mneme; mneme.Memory().conversation('').user('Hello')"},
		"typescript": {"node", "--input-type=module", "-e", "import { Memory } from './typescript/src/index.js'; await new Memory().conversation('').user('Hello')"},
	} {
		t.Run(name, func(t *testing.T) {
			client{name: name, install: "see the contract", command: program}.installed(t)
			cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
			cmd.Env = append(os.Environ(), "PYTHONPATH=python/src", "MNEME_URL="+s.HTTP)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "a new conversation would take what belongs to another one: %s", out)
			require.Contains(t, string(out), "InvalidError")
		})
	}
}
