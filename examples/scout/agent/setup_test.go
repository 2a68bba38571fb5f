package agent

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/pkg/eventlog"
)

// bundle is a log and a recorder of one conversation in it.
type bundle struct {
	t      *testing.T
	server *embedded.Server
	log    *eventlog.Log
	rec    *Recorder
}

func setup(t *testing.T) *bundle {
	t.Helper()
	server, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{Partitions: 1})
	log, err := eventlog.Open(t.Context(), conn)
	require.NoError(t, err)
	return &bundle{t: t, server: server, log: log, rec: NewRecorder(log, "default", "")}
}

func (b *bundle) ask(dir, question string) Answer {
	b.t.Helper()
	answer, err := Run(b.t.Context(), Options{Dir: dir, Question: question, Recorder: b.rec})
	require.NoError(b.t, err)
	return answer
}

// recorded returns the conversation's events; each must be valid.
func (b *bundle) recorded() []events.Recorded {
	b.t.Helper()
	state, err := b.log.State(mnemetest.Context(b.t))
	require.NoError(b.t, err)
	var list []events.Recorded
	require.NoError(b.t, b.log.Conversation(b.t.Context(), b.rec.Tenant, b.rec.Conversation, state.Head, func(m eventlog.Message) error {
		e, _, err := m.Decode()
		list = append(list, e)
		return err
	}))
	return list
}

// lines formats each event as one line.
func lines(list []events.Recorded) []string {
	var out []string
	for _, e := range list {
		switch p := e.Payload.(type) {
		case *events.ConversationStarted:
			out = append(out, "started: "+p.Title)
		case *events.MessageCreated:
			out = append(out, p.Role+": "+p.Content)
		case *events.ToolCalled:
			out = append(out, fmt.Sprintf("%s %s", p.ToolName, p.Arguments))
		case *events.ToolReturned:
			out = append(out, fmt.Sprintf("→ %t", *p.Success))
		}
	}
	return out
}

// requirePaired checks that every call belongs to a message and has exactly one result,
// directly after it.
func requirePaired(t *testing.T, list []events.Recorded) {
	t.Helper()
	message, open := "", ""
	for _, e := range list {
		switch p := e.Payload.(type) {
		case *events.MessageCreated:
			require.Empty(t, open, "a message comes between a call and its result")
			message = p.MessageID
		case *events.ToolCalled:
			require.Empty(t, open, "two calls at once")
			require.Equal(t, message, p.MessageID)
			open = p.ToolCallID
		case *events.ToolReturned:
			require.Equal(t, open, p.ToolCallID)
			require.NotNil(t, p.DurationMS)
			require.NotNil(t, p.Success)
			require.Equal(t, *p.Success, p.Error == "", "a failure has its error, a success has none")
			open = ""
		}
	}
	require.Empty(t, open, "a call without a result")
}

func results(list []events.Recorded, tool string) []*events.ToolReturned {
	called := map[string]bool{}
	var found []*events.ToolReturned
	for _, e := range list {
		switch p := e.Payload.(type) {
		case *events.ToolCalled:
			called[p.ToolCallID] = p.ToolName == tool
		case *events.ToolReturned:
			if called[p.ToolCallID] {
				found = append(found, p)
			}
		}
	}
	return found
}

// folder writes files into a temporary folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(files[name]), 0o644))
	}
	return dir
}

// repository is a small Go module in which one line is the answer to question.
func repository() map[string]string {
	return map[string]string{
		"go.mod":    "module fixture\n\ngo 1.21\n",
		"README.md": "# Fixture\n\nIt keeps a lantern.\n",
		"main.go":   "package main\n\nfunc main() {}\n",
		"store/position.go": `package store

// File is where things are kept.
type File struct{ content []byte }

// KeepLantern keeps how far we are.
func (f *File) KeepLantern(seq byte) {
	f.content = append(f.content, seq) // painted at the end
}
`,
		"store/use.go": `package store

func apply(f *File) {
	for seq := byte(0); seq < 10; seq++ {
		f.KeepLantern(seq)
	}
}
`,
		"store/other.go":              "package store\n\n// Unpainted holds nothing.\nvar Unpainted int\n",
		"node_modules/lantern/a.js":   "// the lantern is painted here, but by others\n",
		"vendor/example.org/x/x.go":   "package x\n\n// the lantern is painted here, but by others\n",
		".git/lantern":                "the lantern is painted\n",
		"store/testdata/lantern.bin":  "lantern painted\x00\x01\n",
		"store/testdata/lantern.huge": strings.Repeat("lantern painted\n", MaxFileBytes/16+1),
	}
}

const question = "where is the lantern painted?"
