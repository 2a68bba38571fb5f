package eventlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestGetOfAMissingEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 2)
	for _, seq := range []uint64{0, 3, 1 << 40} {
		_, err := b.log.Get(mnemetest.Context(t), seq)
		require.ErrorIs(t, err, ErrNotFound, "sequence %d", seq)
	}
	seq, partition, err := b.log.Last(mnemetest.Context(t), "t", "nobody")
	require.NoError(t, err)
	require.Zero(t, seq)
	require.Equal(t, b.log.PartitionOf("t", "nobody"), partition)
	seq, err = b.log.LastOf(mnemetest.Context(t), 7)
	require.NoError(t, err)
	require.Zero(t, seq)
}

func TestOpenWithoutAStream(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	conn, err := nats.Connect("", server.InProcess(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = Open(mnemetest.Context(t), conn)
	require.ErrorIs(t, err, natsdeploy.ErrNoStream)
}

func TestAFollowerDeliversItsPartitionInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 2})
	for _, c := range []string{"c1", "c2", "c3", "c4", "c5"} {
		b.publish(c, 50)
	}
	total := uint64(0)
	for partition := range 2 {
		f, err := b.log.Follow(t.Context(), partition, 11)
		require.NoError(t, err)
		defer f.Stop()
		last, err := b.log.LastOf(mnemetest.Context(t), partition)
		require.NoError(t, err)
		pending := f.Pending()
		for seq := uint64(10); seq < last; total++ {
			m := b.next(f)
			require.Greater(t, m.Seq, seq)
			seq = m.Seq
			_, address, err := m.Decode()
			require.NoError(t, err)
			require.Equal(t, partition, address.Partition)
			pending--
			require.Equal(t, pending, m.Pending)
			got, err := b.log.Get(mnemetest.Context(t), m.Seq)
			require.NoError(t, err)
			require.Equal(t, got.Digest(), m.Digest(), "regardless of how it was read")
		}
		require.Zero(t, pending)
		f.Stop()
		f.Stop()
	}
	require.EqualValues(t, 240, total)
}

func TestTheDigestTellsMessagesApart(t *testing.T) {
	t.Parallel()
	m := Message{Subject: "ev.0.t.c.x", Header: nats.Header{"ce-id": {"1"}, "Nats-Msg-Id": {"a"}}, Data: []byte("x")}
	seen := map[events.Digest]bool{m.Digest(): true}
	for _, other := range []Message{
		{Subject: "ev.0.t.d.x", Header: m.Header, Data: m.Data},
		{Subject: m.Subject, Header: nats.Header{"ce-id": {"2"}, "Nats-Msg-Id": {"a"}}, Data: m.Data},
		{Subject: m.Subject, Header: nats.Header{"ce-id": {"1"}, "Nats-Msg-Id": {"b"}}, Data: m.Data},
		{Subject: m.Subject, Header: m.Header, Data: []byte("y")},
	} {
		require.False(t, seen[other.Digest()])
		seen[other.Digest()] = true
	}
	same := Message{Seq: 9, Subject: m.Subject, Header: nats.Header{"ce-id": {"1"}, "Nats-Msg-Id": {"a"}, "Nats-Sequence": {"9"}}, Data: m.Data, Pending: 4}
	require.Equal(t, m.Digest(), same.Digest())
}

func TestAServerRestartInterruptsAFollower(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 100)
	follow := func(from uint64) *Follower {
		ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
		defer cancel()
		for {
			f, err := b.log.Follow(ctx, 0, from)
			if err == nil {
				return f
			}
			require.NoError(t, ctx.Err(), "%v", err)
		}
	}
	next := uint64(1)
	for range 3 {
		f := follow(next)
		for range 50 {
			require.Equal(t, next, b.next(f).Seq)
			next++
		}
		b.restartServer()
		require.Eventually(t, func() bool {
			_, err := b.log.Publish(t.Context(), "t", b.events("c", 1, "x")[0])
			return err == nil
		}, mnemetest.Patience, time.Millisecond)
		b.publish("c", 100)
		for lost := false; !lost; { // messages on their way still arrive, in order
			select {
			case m := <-f.C():
				require.Equal(t, next, m.Seq)
				next++
			case <-f.Interrupted():
				lost = true
			case <-time.After(mnemetest.Patience):
				require.Fail(t, "neither a message nor an interruption came")
			}
		}
		f.Stop()
	}
	f := follow(next)
	defer f.Stop()
	head, err := b.log.LastOf(mnemetest.Context(t), 0)
	require.NoError(t, err)
	for ; next <= head; next++ {
		require.Equal(t, next, b.next(f).Seq)
	}
}

func TestFollowBeyondTheEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 3)
	_, err := b.log.Follow(t.Context(), 0, 5)
	require.ErrorIs(t, err, ErrBeyondEnd)
	f, err := b.log.Follow(t.Context(), 0, 4)
	require.NoError(t, err)
	defer f.Stop()
	b.publish("c", 1)
	require.EqualValues(t, 4, b.next(f).Seq)
}

func TestConversationReadsUpToASequence(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 3})
	for range 20 {
		b.publish("c", 1)
		b.publish("d", 2)
	}
	for _, few := range []int{0, 5, fewEvents} { // this many are read one by one
		read := func(conversation string, upTo uint64) (n int) {
			t.Helper()
			last := uint64(0)
			require.NoError(t, b.log.conversation(t.Context(), "t", conversation, upTo, few, func(m Message) error {
				require.Greater(t, m.Seq, last)
				last = m.Seq
				n++
				return nil
			}))
			require.LessOrEqual(t, last, upTo)
			return n
		}
		require.Equal(t, 20, read("c", 1<<40))
		require.Equal(t, 40, read("d", 60))
		require.Equal(t, 39, read("d", 59))
		require.Equal(t, 1, read("c", 3))
		require.Equal(t, 0, read("d", 1))
		require.Equal(t, 0, read("c", 0))
		require.Equal(t, 0, read("nobody", 60))
		enough := errors.New("enough")
		require.ErrorIs(t, b.log.conversation(t.Context(), "t", "c", 60, few, func(Message) error { return enough }), enough)
	}
}

func TestAPurgedConversationReadsAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 5)
	stream, err := b.log.js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(mnemetest.Context(t), jetstream.WithPurgeSubject(events.ConversationFilter("t", "c")), jetstream.WithPurgeSequence(5)))
	for _, few := range []int{0, fewEvents} {
		var seqs []uint64
		require.NoError(t, b.log.conversation(t.Context(), "t", "c", 3, few, func(m Message) error { return errors.New("beyond") }))
		require.NoError(t, b.log.conversation(t.Context(), "t", "c", 9, few, func(m Message) error {
			seqs = append(seqs, m.Seq)
			return nil
		}))
		require.Equal(t, []uint64{5}, seqs)
	}
}

func TestAwaitProgressWakesAtAnAnnouncement(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	asked := make(chan int, 1000)
	done := make(chan error)
	n := 0
	go func() {
		done <- b.log.AwaitProgress(t.Context(), "graph", 0, time.Hour, func() (bool, error) {
			n++
			asked <- n
			return n == 3, nil
		})
	}()
	require.Equal(t, 1, <-asked, "only then has it subscribed")
	require.NoError(t, b.log.Announce("files", 0, 1))
	require.NoError(t, b.log.Announce("graph", 1, 1))
	require.NoError(t, b.log.Announce("graph", 0, 1))
	require.Equal(t, 2, <-asked)
	require.NoError(t, b.log.Announce("graph", 0, 2))
	require.Equal(t, 3, <-asked)
	require.NoError(t, <-done)
}

func TestAwaitProgressPollsAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	n := 0
	require.NoError(t, b.log.AwaitProgress(t.Context(), "graph", 0, time.Millisecond, func() (bool, error) {
		n++
		return n == 5, nil
	}))
	trouble := errors.New("trouble")
	require.ErrorIs(t, b.log.AwaitProgress(t.Context(), "graph", 0, time.Hour, func() (bool, error) { return false, trouble }), trouble)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.log.AwaitProgress(ctx, "graph", 0, time.Hour, func() (bool, error) { return false, nil }), context.DeadlineExceeded)
}
