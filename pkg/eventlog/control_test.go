package eventlog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

// controls are messages that the NATS client mistakes for its own protocol.
var controls = map[string]string{"100": "Idle Heartbeat", "404": "No Messages", "408": "Request Timeout", "409": "Consumer Deleted", "503": ""}

func (b *bench) control(conversation, status string) uint64 {
	b.t.Helper()
	msg := nats.NewMsg("mneme.t." + conversation + ".message_created")
	msg.Header.Set("Status", status)
	if controls[status] != "" {
		msg.Header.Set("Description", controls[status])
	}
	ack, err := b.log.js.PublishMsg(mnemetest.Context(b.t), msg)
	require.NoError(b.t, err)
	return ack.Sequence
}

func TestAMessageThatLooksLikeTheProtocolIsReadLikeAnyOther(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	for status := range controls {
		if status != "100" && status != "409" && !mnemetest.All {
			continue // one message that makes the client wait and one that makes it give up are enough: the others take ten seconds each
		}
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			b := setup(t, natsdeploy.Settings{})
			last := uint64(0)
			for range 2 {
				b.control("c", status)
				b.publish("c", 2)
				b.control("c", status)
				last = b.control("c", status)
			}
			require.EqualValues(t, 10, last)

			m, err := b.log.Get(mnemetest.Context(t), last)
			require.NoError(t, err)
			require.Equal(t, status, m.Header.Get("Status"))
			require.Empty(t, m.Data)
			seq, _, err := b.log.Last(mnemetest.Context(t), "t", "c")
			require.NoError(t, err)
			require.Equal(t, last, seq)
			seq, err = b.log.LastOf(mnemetest.Context(t), 0)
			require.NoError(t, err)
			require.Equal(t, last, seq)

			ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
			defer cancel()
			next := uint64(1)
			for _, few := range []int{0, 3, fewEvents} {
				next = 1
				require.NoError(t, b.log.conversation(ctx, "t", "c", last, few, func(m Message) error {
					require.Equal(t, next, m.Seq)
					next++
					return nil
				}))
				require.EqualValues(t, last+1, next)
			}

			for next = 1; next <= last; {
				f, err := b.log.Follow(ctx, 0, next)
				require.NoError(t, err)
				require.EqualValues(t, last-next+1, f.Pending())
				before := next
				for lost := false; !lost && next <= last; {
					select {
					case m := <-f.C():
						require.Equal(t, next, m.Seq)
						require.EqualValues(t, last-next, m.Pending)
						got, err := b.log.Get(ctx, m.Seq)
						require.NoError(t, err)
						require.Equal(t, got.Digest(), m.Digest())
						next++
					case <-f.Interrupted():
						lost = len(f.C()) == 0
					case <-ctx.Done():
						require.NoError(t, ctx.Err())
					}
				}
				f.Stop()
				require.Greater(t, next, before, "each follower makes progress")
			}
		})
	}
}

func TestASilentFollowerReportsAWithheldMessage(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 1)
	f, err := b.log.Follow(t.Context(), 0, 1)
	require.NoError(t, err)
	defer f.Stop()
	require.EqualValues(t, 1, b.next(f).Seq)
	select {
	case <-f.Interrupted():
		require.Fail(t, "interrupted with nothing withheld")
	case <-time.After(4 * time.Second):
	}
	b.control("c", "100")
	select {
	case <-f.Interrupted():
	case <-time.After(mnemetest.Patience):
		require.Fail(t, "not interrupted")
	}
}

func TestAnyBytesInASubjectOrAHeaderCanBeRead(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 1)
	_, err := b.log.js.PublishMsg(mnemetest.Context(t), &nats.Msg{Subject: "mneme.t.c\xff\xfe.message_created", Data: []byte("\xff")})
	require.NoError(t, err)
	f, err := b.log.Follow(t.Context(), 0, 1)
	require.NoError(t, err)
	defer f.Stop()
	for seq := range uint64(2) {
		m := b.next(f)
		got, err := b.log.Get(mnemetest.Context(t), seq+1)
		require.NoError(t, err)
		require.Equal(t, got.Digest(), m.Digest())
	}
}

func TestCountAfter(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 2})
	for n := range 10 {
		b.publish(fmt.Sprint("c", n), 3)
	}
	total := uint64(0)
	for partition := range 2 {
		all, err := b.log.CountAfter(mnemetest.Context(t), partition, 0)
		require.NoError(t, err)
		total += all
		n, err := b.log.CountAfter(mnemetest.Context(t), partition, 1<<40)
		require.NoError(t, err)
		require.Zero(t, n)
		last, err := b.log.LastOf(mnemetest.Context(t), partition)
		require.NoError(t, err)
		n, err = b.log.CountAfter(mnemetest.Context(t), partition, last-1)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	}
	require.EqualValues(t, 30, total)
}

func TestAStoppedFollowerLeavesNoConsumer(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 3)
	for range 3 {
		f, err := b.log.Follow(t.Context(), 0, 1)
		require.NoError(t, err)
		b.next(f)
		f.Stop()
	}
	require.Eventually(t, func() bool {
		info, err := b.log.stream.Info(t.Context())
		return err == nil && info.State.Consumers == 0
	}, mnemetest.Patience, 10*time.Millisecond)
}

func TestManyBatchesAtATimeAllSucceed(t *testing.T) {
	t.Parallel()
	for name, logs := range map[string]int{"one client": 1, "more than the server admits": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, natsdeploy.Settings{})
			clients := []*Log{b.log}
			for len(clients) < logs {
				conn, err := nats.Connect(b.server.ClientURL(), nats.Timeout(mnemetest.Handshake))
				require.NoError(t, err)
				t.Cleanup(conn.Close)
				l, err := Open(mnemetest.Context(t), conn)
				require.NoError(t, err)
				clients = append(clients, l)
			}
			ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
			defer cancel()
			errs := make([]error, 200)
			var all sync.WaitGroup
			for i := range errs {
				list := b.events(fmt.Sprint("c", i), 20, "x")
				all.Go(func() { _, errs[i] = clients[i%logs].PublishAll(ctx, "t", list) })
			}
			all.Wait()
			for _, err := range errs {
				require.NoError(t, err)
			}
			state, err := b.log.State(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 4000, state.Messages)
		})
	}
}
