package projection_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// bench is a real server with a stream, and a real store of the projection "graph".
type bench struct {
	t      *testing.T
	server *embedded.Server
	conn   *nats.Conn
	log    *eventlog.Log
	path   string
	store  *sqlitestore.Graph
	seq    int
}

func setup(t *testing.T, partitions int) *bench {
	t.Helper()
	b := &bench{t: t, path: sqlitestore.Path(t.TempDir(), "graph", 1)}
	var err error
	b.server, err = embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), MaxBytes: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(b.server.Stop)
	b.conn, err = nats.Connect("", b.server.InProcess(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(b.conn.Close)
	b.createStream(partitions)
	b.openStore()
	t.Cleanup(func() { _ = b.store.Close() })
	return b
}

func (b *bench) createStream(partitions int) {
	b.t.Helper()
	_, err := b.server.Apply(mnemetest.Context(b.t), natsdeploy.Settings{Partitions: partitions})
	require.NoError(b.t, err)
	b.log, err = eventlog.Open(mnemetest.Context(b.t), b.conn)
	require.NoError(b.t, err)
}

// anotherStream deletes the stream and makes a new one.
func (b *bench) anotherStream() {
	b.t.Helper()
	partitions := b.log.Partitions()
	require.NoError(b.t, b.jetstream().DeleteStream(mnemetest.Context(b.t), natsdeploy.Stream))
	require.Eventually(b.t, func() bool { // the server answers before it has removed the files
		_, err := b.server.Apply(b.t.Context(), natsdeploy.Settings{Partitions: partitions})
		return err == nil
	}, mnemetest.Patience, 10*time.Millisecond)
	b.createStream(partitions)
}

func (b *bench) jetstream() jetstream.JetStream {
	b.t.Helper()
	js, err := jetstream.New(b.conn)
	require.NoError(b.t, err)
	return js
}

func (b *bench) openStore() {
	b.t.Helper()
	var err error
	b.store, err = sqlitestore.OpenGraph(b.t.Context(), b.path)
	require.NoError(b.t, err)
}

// message publishes a message to a conversation and returns its sequence.
func (b *bench) message(conversation string) uint64 {
	b.t.Helper()
	b.seq++
	return b.publish(conversation, &events.MessageCreated{MessageID: fmt.Sprintf("m%d", b.seq), Role: "user", Content: "hello"})
}

func (b *bench) publish(conversation string, p events.Payload) uint64 {
	b.t.Helper()
	b.seq++
	e, err := events.New(conversation, "test", fmt.Sprintf("e%d", b.seq), p)
	require.NoError(b.t, err)
	ack, err := b.log.Publish(mnemetest.Context(b.t), "t", e)
	require.NoError(b.t, err)
	return ack.Seq
}

// many publishes n messages to some conversations in one go.
func (b *bench) many(n, conversations int) {
	b.t.Helper()
	list := make([]events.Event, n)
	for i := range list {
		b.seq++
		p := &events.MessageCreated{MessageID: fmt.Sprintf("m%d", b.seq), Role: "user", Content: "hello"}
		var err error
		list[i], err = events.New(fmt.Sprintf("c%d", i%conversations), "test", fmt.Sprintf("e%d", b.seq), p)
		require.NoError(b.t, err)
	}
	_, err := b.log.PublishAll(mnemetest.Context(b.t), "t", list)
	require.NoError(b.t, err)
}

// raw publishes a message that need not be an event.
func (b *bench) raw(subject string, header map[string]string, data string) {
	b.t.Helper()
	msg := &nats.Msg{Subject: subject, Data: []byte(data), Header: nats.Header{}}
	for name, value := range header {
		msg.Header[name] = []string{value}
	}
	_, err := b.jetstream().PublishMsg(mnemetest.Context(b.t), msg)
	require.NoError(b.t, err)
}

type projector = projection.Projector[*graph.Unit]

// start drives a projection on the store until the end of the test.
func (b *bench) start(p projection.Projection[*graph.Unit], options ...projection.Option) *projector {
	b.t.Helper()
	pr, err := projection.NewProjector(p, b.log, b.store, slog.New(slog.DiscardHandler), options...)
	require.NoError(b.t, err)
	pr.Start()
	b.t.Cleanup(pr.Stop)
	return pr
}

// await polls until a projector's partitions have the wanted state.
func await(t *testing.T, pr *projector, what string, ok func(s projection.Status) bool) {
	t.Helper()
	deadline := time.Now().Add(mnemetest.Patience)
	for {
		done := true
		for _, s := range pr.Status() {
			done = done && ok(s)
		}
		if done {
			return
		}
		if time.Now().After(deadline) {
			require.Fail(t, "timed out waiting until every partition "+what, "%+v", pr.Status())
		}
		time.Sleep(time.Millisecond)
	}
}

// awaitSeq waits for the announcement that a sequence was applied.
func (b *bench) awaitSeq(pr *projector, partition int, seq uint64) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), mnemetest.Patience)
	defer cancel()
	err := b.log.AwaitProgress(ctx, pr.Status()[partition].Projection, partition, time.Second, func() (bool, error) {
		return pr.Status()[partition].Checkpoint.Seq >= seq, nil
	})
	require.NoError(b.t, err, "%+v", pr.Status())
}

// awaitAll waits until the whole log is applied.
func (b *bench) awaitAll(pr *projector) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), mnemetest.Patience) // without one, a busy server has seconds
	defer cancel()
	for n := range b.log.Partitions() {
		last, err := b.log.LastOf(ctx, n)
		require.NoError(b.t, err)
		b.awaitSeq(pr, n, last)
	}
}

// verify replays the log into a separate store and compares.
func (b *bench) verify(p projection.Projection[*graph.Unit]) projection.Verification {
	b.t.Helper()
	scratch, err := sqlitestore.OpenGraph(b.t.Context(), sqlitestore.Path(b.t.TempDir(), "graph", 1))
	require.NoError(b.t, err)
	defer scratch.Close()
	ctx, cancel := context.WithTimeout(b.t.Context(), mnemetest.Patience)
	defer cancel()
	v, err := projection.Verify(ctx, p, b.log, b.store, scratch, nil)
	require.NoError(b.t, err)
	return v
}

func (b *bench) failed() []projection.Failed {
	b.t.Helper()
	list, err := b.store.Failed(b.t.Context(), projection.FailedQuery{Limit: 1000})
	require.NoError(b.t, err)
	return list
}

func (b *bench) checkpoint() projection.Checkpoint {
	b.t.Helper()
	list, err := b.store.Checkpoints(b.t.Context())
	require.NoError(b.t, err)
	require.Len(b.t, list, 1)
	return list[0]
}

func isLive(s projection.Status) bool   { return s.State == projection.StateLive }
func isHalted(s projection.Status) bool { return s.State == projection.StateHalted }

// switchable is the projection "graph" with a reducer that fails for some events
// while it is told to.
type switchable struct {
	mu   sync.Mutex
	fail map[string]bool // event ids
}

func (s *switchable) set(id string, fail bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[id] = fail
}

func (s *switchable) projection() projection.Projection[*graph.Unit] {
	p := graph.Projection()
	reducers := map[string]projection.Reducer[*graph.Unit]{}
	for eventType, reduce := range p.Reducers {
		reducers[eventType] = func(u *graph.Unit, e *events.Recorded) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.fail[e.ID] {
				return fmt.Errorf("told to fail for %s", e.ID)
			}
			return reduce(u, e)
		}
	}
	p.Reducers = reducers
	return p
}
