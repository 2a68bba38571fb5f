package eventlog

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

// tailed runs a tail that ends by itself and lists what it read.
func (b *bench) tailed(filter Filter, o TailOptions) (seqs []uint64) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), mnemetest.Patience)
	defer cancel()
	o.ToEnd = true
	require.NoError(b.t, b.log.Tail(ctx, filter, o, func(m Message) error {
		seqs = append(seqs, m.Seq)
		return nil
	}))
	return seqs
}

func TestATailReadsWhatItsFilterChooses(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 3})
	b.publish("a", 2) // 1, 2
	b.publish("b", 3) // 3 to 5
	call, err := events.New("a", "test", "call", &events.ToolCalled{ToolCallID: "t1", ToolName: "Read", Arguments: []byte(`{}`)})
	require.NoError(t, err)
	_, err = b.log.Publish(mnemetest.Context(t), "t", call) // 6
	require.NoError(t, err)
	_, err = b.log.PublishAll(mnemetest.Context(t), "other", b.events("a", 2, "x")) // 7, 8
	require.NoError(t, err)

	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8}, b.tailed(Filter{}, TailOptions{From: 1}))
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6}, b.tailed(Filter{Tenant: "t"}, TailOptions{From: 1}))
	require.Equal(t, []uint64{1, 2, 6}, b.tailed(Filter{Tenant: "t", Conversation: "a"}, TailOptions{From: 1}))
	require.Equal(t, []uint64{6}, b.tailed(Filter{Kinds: []string{"tool_called", "tool_returned"}}, TailOptions{From: 1}))
	require.Equal(t, []uint64{2, 6}, b.tailed(Filter{Tenant: "t", Conversation: "a", Kinds: []string{"tool_called", "message_created"}}, TailOptions{From: 2}))
	require.Equal(t, []uint64{1, 2, 7, 8}, b.tailed(Filter{Conversation: "a", Kinds: []string{"message_created"}}, TailOptions{Last: 100}))
	require.Equal(t, []uint64{2, 7, 8}, b.tailed(Filter{Conversation: "a", Kinds: []string{"message_created"}}, TailOptions{Last: 3}))
	require.Equal(t, []uint64{2}, b.tailed(Filter{Tenant: "t", Conversation: "a", Kinds: []string{"message_created"}}, TailOptions{Last: 1}))
	require.Equal(t, []uint64{6}, b.tailed(Filter{Kinds: []string{"tool_called", "tool_called"}}, TailOptions{From: 1}), "a kind that is named twice")
	require.Equal(t, []uint64{7, 8}, b.tailed(Filter{}, TailOptions{Last: 2}))
	require.Empty(t, b.tailed(Filter{}, TailOptions{}), "nothing new")
	require.Empty(t, b.tailed(Filter{Conversation: "nobody"}, TailOptions{Last: 5}))
	require.ErrorIs(t, b.log.Tail(t.Context(), Filter{}, TailOptions{From: 10}, nil), ErrBeyondEnd)
	require.Empty(t, setup(t, natsdeploy.Settings{}).tailed(Filter{}, TailOptions{Last: 3}), "an empty log")
}

func TestATailToTheEndShowsTheNewestWhileOthersPublish(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 3)
	news := slices.Chunk(b.events("c", 10000, "hello"), 50)
	ctx, cancel := context.WithCancel(t.Context())
	published := make(chan error, 1)
	go func() {
		for batch := range news {
			if _, err := b.log.PublishAll(ctx, "t", batch); err != nil {
				published <- err
				return
			}
		}
		published <- nil
	}()
	for range 10 {
		seqs := b.tailed(Filter{Tenant: "t"}, TailOptions{Last: 3})
		require.Len(t, seqs, 3)
		require.Equal(t, []uint64{seqs[0], seqs[0] + 1, seqs[0] + 2}, seqs)
	}
	cancel()
	if err := <-published; err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestATailContinuesAfterAServerRestart(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 3)
	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	read, ended := make(chan uint64, 100), make(chan error, 1)
	enough := errors.New("enough")
	go func() {
		ended <- b.log.Tail(ctx, Filter{Tenant: "t"}, TailOptions{Last: 2}, func(m Message) error {
			read <- m.Seq
			if m.Seq == 7 {
				return enough
			}
			return nil
		})
	}()
	require.EqualValues(t, 2, <-read)
	require.EqualValues(t, 3, <-read)
	b.publish("c", 1)
	require.EqualValues(t, 4, <-read)
	b.restartServer()
	require.Eventually(t, func() bool { _, err := b.log.State(t.Context()); return err == nil }, mnemetest.Patience, 20*time.Millisecond)
	b.publish("c", 3)
	for want := uint64(5); want <= 7; want++ {
		select {
		case seq := <-read:
			require.Equal(t, want, seq)
		case <-ctx.Done():
			t.Fatal("the tail did not continue")
		}
	}
	require.ErrorIs(t, <-ended, enough)
}

func TestATailEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 1)
	ctx, cancel := context.WithCancel(t.Context())
	err := b.log.Tail(ctx, Filter{}, TailOptions{From: 1}, func(Message) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
}

func TestATailToTheEndThatIsCutOffIsNotComplete(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	const many = 3 * followMessages // more than the server sends before they are taken
	b.publish("c", many)
	cut := 0
	for range 10 { // chance decides whether the tail sees its lost connection or the end of its context first
		ctx, cancel := context.WithCancel(t.Context())
		read := 0
		err := b.log.Tail(ctx, Filter{}, TailOptions{From: 1, ToEnd: true}, func(Message) error {
			if read++; read > 1 {
				return nil
			}
			other, err := b.log.Follow(ctx, 0, 1)
			require.NoError(t, err)
			defer other.Stop()
			require.NoError(t, b.log.conn.ForceReconnect())
			<-other.Interrupted()
			cancel()
			return nil
		})
		if read < many {
			cut++
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	require.NotZero(t, cut)
}

func TestATailToTheEndEndsAlthoughItsLastMessagesWereRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	kept := followMessages + 1 // the first message is read alone; the others fill one request
	b.publish("a", kept)
	b.publish("b", 1)
	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	read := 0
	require.NoError(t, b.log.Tail(ctx, Filter{}, TailOptions{From: 1, ToEnd: true}, func(Message) error {
		if read++; read > 1 {
			return nil
		}
		b.awaitSent(uint64(kept)) // so the last of them says that one more follows
		return b.log.stream.DeleteMsg(ctx, uint64(kept)+1)
	}))
	require.Equal(t, kept, read)
}

// awaitSent waits until the server has sent a message to a consumer.
func (b *bench) awaitSent(seq uint64) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		for info := range b.log.stream.ListConsumers(b.t.Context()).Info() {
			if info.Delivered.Stream == seq {
				return true
			}
		}
		return false
	}, mnemetest.Patience, 5*time.Millisecond)
}
