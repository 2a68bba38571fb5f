package view_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/view/viewtest"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// bundle is a log in a server of its own, with the read models "graph" and "files", which apply
// an event when the test says so.
type bundle struct {
	t      *testing.T
	log    *eventlog.Log
	graph  *sqlitestore.Graph
	files  *sqlitestore.Files
	reader *reader
	models *viewtest.Models
	views  *view.Views

	waiting atomic.Int64 // waits that have begun
}

// reader is a graph that counts the reads of its checkpoints, and calls a hook before each read.
type reader struct {
	graph.Reader
	checkpoints atomic.Int64
	before      func(ctx context.Context, what string) error // nil for nothing
}

func (r *reader) read(ctx context.Context, what string) error {
	if r.before == nil {
		return nil
	}
	return r.before(ctx, what)
}

func (r *reader) Checkpoints(ctx context.Context) ([]projection.Checkpoint, error) {
	r.checkpoints.Add(1)
	if err := r.read(ctx, "checkpoints"); err != nil {
		return nil, err
	}
	return r.Reader.Checkpoints(ctx)
}

func (r *reader) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error) {
	if err := r.read(ctx, "conversation"); err != nil {
		return graph.Conversation{}, err
	}
	return r.Reader.Conversation(ctx, id, asOf)
}

func (r *reader) Bags(ctx context.Context, id events.ConversationID, q graph.BagQuery) ([]graph.Bag, error) {
	if err := r.read(ctx, "bags of "+id.ID); err != nil {
		return nil, err
	}
	return r.Reader.Bags(ctx, id, q)
}

// served are the read models of a bundle.
type served struct{ *bundle }

func (s served) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	return view.Pinned[graph.Reader]{Model: s.reader, Generation: 1, Release: func() {}}, ctx.Err()
}

func (s served) Files(ctx context.Context) (view.Pinned[graph.FilesReader], error) {
	return view.Pinned[graph.FilesReader]{Model: s.files, Generation: 1, Release: func() {}}, ctx.Err()
}

func (served) Summaries(context.Context) (view.Pinned[summary.Reader], error) {
	return view.Pinned[summary.Reader]{}, errors.New("no summaries")
}

func (served) Insight(context.Context) (view.Pinned[insight.Reader], error) {
	return view.Pinned[insight.Reader]{}, errors.New("no insight")
}

func (served) Projects(context.Context) (view.Pinned[project.Reader], error) {
	return view.Pinned[project.Reader]{}, errors.New("no projects")
}

func (served) Code(context.Context) (view.Pinned[codebase.Reader], error) {
	return view.Pinned[codebase.Reader]{}, errors.New("no code")
}

func (served) Embeddings(context.Context) (view.Pinned[graph.EmbeddingsReader], error) {
	return view.Pinned[graph.EmbeddingsReader]{}, errors.New("no embeddings")
}

func setup(t *testing.T) *bundle { return setupWith(t, natsdeploy.Settings{}) }

func setupWith(t *testing.T, settings natsdeploy.Settings) *bundle {
	t.Helper()
	t.Parallel()
	_, conn := natstest.Alone(t, embedded.Config{MaxBytes: 64 << 20}, settings)
	b := &bundle{t: t}
	var err error
	b.log, err = eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	b.graph, err = sqlitestore.OpenGraph(t.Context(), filepath.Join(t.TempDir(), "graph.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.graph.Close() })
	b.files, err = sqlitestore.OpenFiles(t.Context(), filepath.Join(t.TempDir(), "files.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.files.Close()) })
	b.reader = &reader{Reader: b.graph}
	b.models = viewtest.Watch(served{b})
	b.views = view.New(view.Config{Log: b.log, Models: b.models, Cache: view.NewCache(64<<20, nil), Awaiting: func(ctx context.Context, _ string, _ uint64) (context.Context, func(error)) {
		b.waiting.Add(1)
		return ctx, func(error) {}
	}})
	t.Cleanup(func() { require.Empty(t, b.models.Leaks()) })
	return b
}

// publish appends a message to the log, which no read model applies yet.
func (b *bundle) publish(conversation string) (seq uint64) {
	b.t.Helper()
	state, err := b.log.State(mnemetest.Context(b.t))
	require.NoError(b.t, err)
	name := fmt.Sprint("m", state.Head+1)
	e, err := events.New(conversation, "test", name, &events.MessageCreated{MessageID: name, Role: "user", Content: "The parser fails on paths."})
	require.NoError(b.t, err)
	ack, err := b.log.Publish(mnemetest.Context(b.t), "t", e)
	require.NoError(b.t, err)
	return ack.Seq
}

// apply lets both read models apply the log's event at a sequence, and announces it.
func (b *bundle) apply(seq uint64) {
	b.t.Helper()
	message, err := b.log.Get(mnemetest.Context(b.t), seq)
	require.NoError(b.t, err)
	recorded, _, err := message.Decode()
	require.NoError(b.t, err)
	number := b.log.PartitionOf(recorded.Tenant, recorded.Subject)
	applyTo(b, graph.Projection(), b.graph, number, message)
	applyTo(b, graph.FilesProjection(files.DefaultTable()), b.files, number, message)
	require.NoError(b.t, b.log.Announce("graph", number, seq))
	require.NoError(b.t, b.log.Announce("files", number, seq))
}

func applyTo[U projection.Unit](b *bundle, p projection.Projection[U], store projection.Store[U], number int, m eventlog.Message) {
	b.t.Helper()
	cp, err := store.Acquire(b.t.Context(), number, p.Fingerprint())
	require.NoError(b.t, err)
	_, err = p.Apply(b.t.Context(), store, cp, []eventlog.Message{m})
	require.NoError(b.t, err)
}

// open opens a conversation with its files and begins to read, as a context does.
func (b *bundle) open(ctx context.Context, conversation string, at view.At) (*view.Pins, *view.View, error) {
	pins := b.views.Pin()
	v, err := pins.OpenWithFiles(ctx, id(conversation), at)
	if err == nil {
		_, err = v.Positions(ctx)
	}
	if err == nil {
		err = v.Load(ctx)
	}
	if err == nil {
		err = v.Begin(ctx)
	}
	return pins, v, err
}

const within = mnemetest.Patience
