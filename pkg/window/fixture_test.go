package window_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window"
)

// store holds real read models in SQLite and the events that were put into them.
type store struct {
	t      testing.TB
	graph  *sqlitestore.Graph
	files  *sqlitestore.Files
	graphP projection.Projection[*graph.Unit]
	filesP projection.Projection[*graph.FilesUnit]
	graphC projection.Checkpoint
	filesC projection.Checkpoint
	seq    uint64

	indexes *view.Cache
}

func newStore(t testing.TB) *store {
	t.Helper()
	s := &store{t: t, graphP: graph.Projection(), indexes: view.NewCache(64<<20, view.BuiltIn{})}
	s.filesP = graph.FilesProjection(files.NewTable(files.DefaultRules()))
	dir := t.TempDir()
	var err error
	s.graph, err = sqlitestore.OpenGraph(t.Context(), filepath.Join(dir, "graph-1.db"))
	require.NoError(t, err)
	s.files, err = sqlitestore.OpenFiles(t.Context(), filepath.Join(dir, "files-1.db"))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = s.graph.Close()
		_ = s.files.Close()
	})
	s.graphC, err = s.graph.Acquire(t.Context(), 0, s.graphP.Fingerprint())
	require.NoError(t, err)
	s.filesC, err = s.files.Acquire(t.Context(), 0, s.filesP.Fingerprint())
	require.NoError(t, err)
	return s
}

func (s *store) source() window.Source {
	return window.Source{Graph: s.indexes.Graph(s.graph, ""), Files: s.files, Recall: s.indexes.Of(view.Source{Messages: s.graph})}
}

// apply applies events to both read models, in order, and returns their sequences.
func (s *store) apply(list []events.Event) (first uint64) {
	s.t.Helper()
	first = s.seq + 1
	var messages []eventlog.Message
	for _, e := range list {
		subject, err := events.Address{Tenant: tenant, Conversation: e.Subject, Kind: events.Kind(e.Type)}.Subject()
		require.NoError(s.t, err)
		header, body := events.EncodeMessage(e)
		s.seq++
		messages = append(messages, eventlog.Message{Seq: s.seq, Subject: subject, Header: nats.Header(header), Data: body})
	}
	var err error
	s.graphC, err = s.graphP.Apply(s.t.Context(), s.graph, s.graphC, messages)
	require.NoError(s.t, err)
	s.filesC, err = s.filesP.Apply(s.t.Context(), s.files, s.filesC, messages)
	require.NoError(s.t, err)
	return first
}

const tenant = "default"

func idOf(conversation string) events.ConversationID {
	return events.ConversationID{Tenant: tenant, ID: conversation}
}

// talk writes the events of a conversation.
type talk struct {
	t      testing.TB
	id     string
	n      int
	events []events.Event
	last   string // id of the newest assistant message
}

func newTalk(t testing.TB, id string) *talk { return &talk{t: t, id: id} }

func (c *talk) add(p events.Payload) *talk {
	c.t.Helper()
	c.n++
	e, err := events.New(c.id, "test", fmt.Sprintf("e%d", c.n), p)
	require.NoError(c.t, err)
	c.events = append(c.events, e)
	return c
}

func (c *talk) say(role, text string) *talk {
	c.t.Helper()
	id := fmt.Sprintf("m%d", c.n+1)
	if role == "assistant" {
		c.last = id
	}
	return c.add(&events.MessageCreated{MessageID: id, Role: role, Content: text})
}

func (c *talk) user(text string) *talk      { c.t.Helper(); return c.say("user", text) }
func (c *talk) assistant(text string) *talk { c.t.Helper(); return c.say("assistant", text) }

// call adds a call of the newest assistant message.
func (c *talk) call(id, tool string, arguments any) *talk {
	c.t.Helper()
	return c.add(&events.ToolCalled{ToolCallID: id, MessageID: c.last, ToolName: tool, Arguments: quoted(c.t, arguments)})
}

func (c *talk) result(id string, ok bool, result any) *talk {
	c.t.Helper()
	return c.add(&events.ToolReturned{ToolCallID: id, Success: &ok, Result: events.JSONResult(quoted(c.t, result))})
}

func quoted(t testing.TB, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

type args map[string]any

// build builds a context from one conversation of a store.
func (c *talk) build(req window.Request) *window.Context {
	c.t.Helper()
	s := newStore(c.t)
	s.apply(c.events)
	req.Conversation = idOf(c.id)
	got, err := window.Build(c.t.Context(), s.source(), req)
	require.NoError(c.t, err)
	return got
}
