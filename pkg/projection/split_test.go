package projection_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// split gives the log more partitions and opens it again.
func (b *bench) split(partitions int) {
	b.t.Helper()
	require.NoError(b.t, eventlog.Split(mnemetest.Context(b.t), b.conn, partitions, nil))
	b.reopen()
}

func (b *bench) reopen() {
	b.t.Helper()
	var err error
	b.log, err = eventlog.Open(mnemetest.Context(b.t), b.conn)
	require.NoError(b.t, err)
}

// inOrder requires that the read model holds these messages, in this order and each once.
func (b *bench) inOrder(conversation string, want []string) {
	b.t.Helper()
	list, err := b.store.Messages(b.t.Context(), events.ConversationID{Tenant: "t", ID: conversation}, graph.MessageQuery{Limit: len(want) + 10, OldestFirst: true})
	require.NoError(b.t, err)
	var got []string
	for _, m := range list {
		got = append(got, m.MessageID)
	}
	require.Equal(b.t, want, got, conversation)
}

func TestALogIsSplitWhileAgentsPublishAndAProjectorApplies(t *testing.T) {
	t.Parallel()
	b := setup(t, 8)
	pr := b.start(graph.Projection())
	const conversations = 40
	sent := make([][]string, conversations)
	var publishers sync.WaitGroup
	stop := make(chan struct{})
	for p := range 4 {
		publishers.Go(func() {
			for n := 0; ; n++ {
				c := p + 4*(n%(conversations/4)) // each conversation has one publisher
				id := fmt.Sprintf("m%d", n)
				e, err := events.New(fmt.Sprint("c", c), "live", id, &events.MessageCreated{MessageID: id, Role: "user", Content: "hello"})
				if err == nil {
					_, err = b.log.Publish(context.Background(), "t", e) // by a process that knows nothing of the split
				}
				if err != nil {
					t.Error(err)
					return
				}
				sent[c] = append(sent[c], id)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	published := func(n uint64) {
		require.Eventually(t, func() bool {
			info, err := natsdeploy.Inspect(t.Context(), b.jetstream())
			return err == nil && info.Head >= n
		}, mnemetest.Patience, time.Millisecond)
	}
	published(500)
	old := b.log
	require.NoError(t, eventlog.Split(mnemetest.Context(t), b.conn, 32, nil))
	require.ErrorIs(t, old.AwaitSplit(t.Context()), eventlog.ErrPartitions, "a running process notices")
	info, err := natsdeploy.Inspect(mnemetest.Context(t), b.jetstream())
	require.NoError(t, err)
	published(info.Head + 500)
	pr.Stop() // it went on with the old partitions until now, which must do no harm
	close(stop)
	publishers.Wait()

	b.reopen()
	require.Equal(t, 32, b.log.Partitions())
	pr = b.start(graph.Projection())
	b.awaitAll(pr)
	await(t, pr, "is live", isLive)
	for c, want := range sent {
		b.inOrder(fmt.Sprint("c", c), want)
	}
	v := b.verify(graph.Projection())
	require.True(t, v.Equal(), "%+v", v.Differences)
	require.Zero(t, v.Behind)

	rebuilt, err := sqlitestore.OpenGraph(t.Context(), sqlitestore.Path(t.TempDir(), "graph", 1))
	require.NoError(t, err)
	defer rebuilt.Close()
	pr.Stop()
	_ = b.store.Close()
	b.store = rebuilt
	pr = b.start(graph.Projection())
	b.awaitAll(pr)
	await(t, pr, "is live", isLive)
	for c, want := range sent {
		b.inOrder(fmt.Sprint("c", c), want)
	}
	pr.Stop()
}

func TestVerifyingEndsIfTheLogIsSplitMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	p := graph.Projection()
	b.many(1, 5)
	pr := b.start(p)
	b.awaitAll(pr)
	pr.Stop()
	verify := func(progress func(done, total uint64)) error {
		scratch, err := sqlitestore.OpenGraph(t.Context(), sqlitestore.Path(t.TempDir(), "graph", 1))
		require.NoError(t, err)
		defer scratch.Close()
		_, err = projection.Verify(mnemetest.Context(t), p, b.log, b.store, scratch, progress)
		return err
	}
	split := sync.OnceFunc(func() { // by another process, which goes on with the new partitions
		require.NoError(t, eventlog.Split(mnemetest.Context(t), b.conn, 2, nil))
		_, err := b.store.Acquire(t.Context(), 1, p.Fingerprint())
		require.NoError(t, err)
	})
	require.NoError(t, verify(nil))
	require.ErrorIs(t, verify(func(_, _ uint64) { split() }), eventlog.ErrPartitions)
	require.ErrorIs(t, verify(nil), eventlog.ErrPartitions)
}

func TestANewPartitionWaitsForTheOneThatItContinues(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	s := &switchable{fail: map[string]bool{}}
	b.many(60, 20) // nothing is applied before the split
	b.split(2)
	b.many(60, 20)
	b.split(8)
	b.many(60, 20)
	for n := range 8 {
		parent, upTo, ok := b.log.Parent(n)
		require.Equal(t, n > 0, ok)
		if ok {
			require.Equal(t, []int{0, 0, 0, 1, 0, 1, 0, 1}[n], parent)
			require.Equal(t, map[bool]uint64{true: 60, false: 120}[n == 1], upTo)
		}
	}
	pr := b.start(s.projection())
	b.awaitAll(pr)
	await(t, pr, "is live", isLive)
	v := b.verify(s.projection())
	require.True(t, v.Equal(), "%+v", v.Differences)
	require.Equal(t, uint64(180), v.Events)

	// The history of a conversation is in up to three partitions, and is repaired as a whole.
	for n := range 20 {
		applied, failed, err := pr.Repair(t.Context(), events.ConversationID{Tenant: "t", ID: fmt.Sprint("c", n)})
		require.NoError(t, err)
		require.Equal(t, []int{9, 0}, []int{applied, failed})
	}
	v = b.verify(s.projection())
	require.True(t, v.Equal(), "%+v", v.Differences)
	pr.Stop()
}

func TestAnEventFromBeforeTheSplitIsADuplicateAfterIt(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	e, err := events.New("c", "test", "once", &events.MessageCreated{MessageID: "m", Role: "user", Content: "hello"})
	require.NoError(t, err)
	_, err = b.log.Publish(mnemetest.Context(t), "t", e)
	require.NoError(t, err)
	b.split(32)
	msg, err := eventlog.NewMsg("t", e)
	require.NoError(t, err)
	msg.Header.Del(events.HeaderMsgID) // as after the server's duplicate window
	_, err = b.jetstream().PublishMsg(mnemetest.Context(t), msg)
	require.NoError(t, err)
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	await(t, pr, "is live", isLive)
	b.inOrder("c", []string{"m"})
	duplicates := uint64(0)
	for _, s := range pr.Status() {
		duplicates += s.Checkpoint.Duplicates
	}
	require.Equal(t, uint64(1), duplicates)
	pr.Stop()
}

func TestErasedEventsStayErasedAfterASplit(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	for range 10 {
		b.message("kept")
	}
	gone := []uint64{b.message("gone"), b.message("gone")}
	require.NoError(t, b.log.Erase(mnemetest.Context(t), 1, gone, nil))
	b.split(16)
	last := b.message("gone")
	require.NoError(t, b.log.Erase(mnemetest.Context(t), 2, []uint64{last}, nil))
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Zero(t, state.Missing, "what was erased is no loss")
	for _, seq := range append(gone, last) {
		_, err := b.log.Get(mnemetest.Context(t), seq)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
	}
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	await(t, pr, "is live", isLive)
	_, err = b.store.Conversation(t.Context(), events.ConversationID{Tenant: "t", ID: "gone"}, graph.Latest)
	require.ErrorIs(t, err, graph.ErrNotFound)
	require.True(t, func() bool { v := b.verify(graph.Projection()); return v.Equal() }())
	pr.Stop()
}

func TestAProjectorOfOnePartitionStopsAtTheSplit(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	pr := b.start(graph.Projection())
	b.many(20, 10)
	b.awaitAll(pr)
	old := b.log
	b.split(4)
	b.many(40, 10)
	require.ErrorIs(t, old.AwaitSplit(t.Context()), eventlog.ErrPartitions)
	// This projector reads the log without a filter, so it would take the events of all partitions.
	require.Eventually(t, func() bool { return strings.Contains(pr.Status()[0].Error, "open it again") }, mnemetest.Patience, time.Millisecond)
	pr.Stop()
	pr = b.start(graph.Projection())
	b.awaitAll(pr)
	await(t, pr, "is live", isLive)
	v := b.verify(graph.Projection())
	require.True(t, v.Equal(), "%+v", v.Differences)
	require.Equal(t, uint64(60), v.Events)
	pr.Stop()
}
