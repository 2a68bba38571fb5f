package eventlog

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"github.com/synadia-io/orbit.go/jetstreamext"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/netlink"
)

func TestAPublishedEventIsStoredUnderItsConversation(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 4})
	for i, conversation := range []string{"c", "a.b c*>", "é😀\n", strings.Repeat("x", 500)} {
		e := b.events(conversation, 1, "hello \x00 é")[0]
		ack, err := b.log.Publish(mnemetest.Context(t), "ten.ant", e)
		require.NoError(t, err)
		require.Equal(t, Ack{Seq: uint64(i + 1)}, ack)
		m, err := b.log.Get(mnemetest.Context(t), ack.Seq)
		require.NoError(t, err)
		got, address, err := m.Decode()
		require.NoError(t, err)
		require.Equal(t, "ten.ant", address.Tenant)
		require.Equal(t, conversation, address.Conversation)
		require.True(t, e.Equal(&got.Event))
		require.Equal(t, ack.Seq, got.Seq)

		last, partition, err := b.log.Last(mnemetest.Context(t), "ten.ant", conversation)
		require.NoError(t, err)
		require.Equal(t, ack.Seq, last)
		require.Equal(t, address.Partition, partition)
		seq, err := b.log.LastOf(mnemetest.Context(t), partition)
		require.NoError(t, err)
		require.Equal(t, ack.Seq, seq)
	}
}

func TestARepeatIsAcknowledgedAsADuplicate(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	e := b.events("c", 1, "x")[0]
	first, err := b.log.Publish(mnemetest.Context(t), "t", e)
	require.NoError(t, err)
	again, err := b.log.Publish(mnemetest.Context(t), "t", e)
	require.NoError(t, err)
	require.Equal(t, Ack{Seq: first.Seq, Duplicate: true}, again)
	other, err := b.log.Publish(mnemetest.Context(t), "u", e)
	require.NoError(t, err)
	require.False(t, other.Duplicate, "another tenant's event is another event")
}

func TestPublishAllKeepsTheOrderOverManyBatches(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	list := b.events("c", 2500, "x")
	acks, err := b.log.PublishAll(mnemetest.Context(t), "t", list)
	require.NoError(t, err)
	require.Len(t, acks, 2500)
	for i, ack := range acks {
		require.Equal(t, Ack{Seq: uint64(i + 1)}, ack)
	}
	for _, i := range []int{0, 999, 1000, 2499} {
		m, err := b.log.Get(mnemetest.Context(t), uint64(i+1))
		require.NoError(t, err)
		got, _, err := m.Decode()
		require.NoError(t, err)
		require.Equal(t, list[i].ID, got.ID)
	}
	none, err := b.log.PublishAll(mnemetest.Context(t), "t", nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestValidEventsAreStoredAsPublishAllStoresThem(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	list := append(b.events("c", 3, "x"), b.events("a.b c*>", 1, "\"é\n")...)
	_, err := b.log.PublishAll(mnemetest.Context(t), "t", list)
	require.NoError(t, err)
	acks, err := b.log.PublishValid(mnemetest.Context(t), "u", list)
	require.NoError(t, err)
	require.Len(t, acks, len(list))
	for i, ack := range acks {
		of, err := b.log.Get(mnemetest.Context(t), uint64(i+1))
		require.NoError(t, err)
		same, err := b.log.Get(mnemetest.Context(t), ack.Seq)
		require.NoError(t, err)
		want, _, err := of.Decode()
		require.NoError(t, err)
		got, address, err := same.Decode()
		require.NoError(t, err)
		require.Equal(t, "u", address.Tenant)
		require.Equal(t, want.Event, got.Event)
	}
}

func TestPublishAllOfABatchWithADuplicateStoresTheRest(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	list := b.events("c", 10, "x")
	known, err := b.log.Publish(mnemetest.Context(t), "t", list[4])
	require.NoError(t, err)
	acks, err := b.log.PublishAll(mnemetest.Context(t), "t", list)
	require.NoError(t, err)
	require.Len(t, acks, 10)
	for i, ack := range acks {
		require.Equal(t, i == 4, ack.Duplicate)
		m, err := b.log.Get(mnemetest.Context(t), ack.Seq)
		require.NoError(t, err)
		got, _, err := m.Decode()
		require.NoError(t, err)
		require.Equal(t, list[i].ID, got.ID)
	}
	require.Equal(t, known.Seq, acks[4].Seq)
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.EqualValues(t, 10, state.Messages)

	again, err := b.log.PublishAll(mnemetest.Context(t), "t", list)
	require.NoError(t, err)
	for i := range again {
		require.Equal(t, Ack{Seq: acks[i].Seq, Duplicate: true}, again[i])
	}
}

func TestTheSameEventTwiceInOneBatchIsStoredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	list := b.events("c", 3, "x")
	acks, err := b.log.PublishAll(mnemetest.Context(t), "t", append(list, list[0]))
	require.NoError(t, err)
	require.Len(t, acks, 4)
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.EqualValues(t, 3, state.Messages)
	require.True(t, acks[3].Duplicate)
}

func TestBigBodiesAreStoredWhole(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	list := b.events("c", 5, strings.Repeat("é", 3<<20)) // 6 MiB each: several batches by size
	acks, err := b.log.PublishAll(mnemetest.Context(t), "t", list)
	require.NoError(t, err)
	require.Len(t, acks, 5)
	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience) // a busy machine takes seconds for 6 MiB
	defer cancel()
	m, err := b.log.Get(ctx, acks[4].Seq)
	require.NoError(t, err)
	require.Equal(t, list[4].Data, m.Data)
}

// silent returns the log over a connection on which nothing arrives until the link is healed.
func (b *bench) silent(options ...Option) (*netlink.Link, *Log) {
	b.t.Helper()
	link, err := netlink.New(strings.TrimPrefix(b.server.ClientURL(), "nats://"))
	require.NoError(b.t, err)
	b.t.Cleanup(link.Close)
	conn, err := nats.Connect(link.Address(), nats.Timeout(mnemetest.Handshake))
	require.NoError(b.t, err)
	b.t.Cleanup(conn.Close)
	log, err := Open(mnemetest.Context(b.t), conn, options...)
	require.NoError(b.t, err)
	link.BlackHole()
	return link, log
}

func TestWithoutADeadlineTheServerHasTheTimeThatTheLogGivesIt(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	const within = 50 * time.Millisecond
	_, log := b.silent(AnswerWithin(within))
	require.Equal(t, within, log.js.Options().DefaultTimeout)
	_, err := log.Publish(t.Context(), "t", b.events("c", 1, "x")[0])
	require.ErrorIs(t, err, ErrUnconfirmed)
}

func TestABatchWaitsForASlowServerUntilItsDeadline(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	link, log := b.silent()
	heal := time.AfterFunc(6*time.Second, link.Heal) // longer than the default of the client
	defer heal.Stop()
	acks, err := log.PublishAll(mnemetest.Context(t), "t", b.events("c", 3, "x"))
	require.NoError(t, err)
	require.Len(t, acks, 3)
	require.EqualValues(t, 3, acks[2].Seq)
}

func TestABatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	_, log := b.silent()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	list, ended := b.events("c", 3, "x"), make(chan error, 1)
	go func() {
		_, err := log.PublishAll(ctx, "t", list)
		ended <- err
	}()
	time.AfterFunc(50*time.Millisecond, cancel) // when it waits for the server
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(mnemetest.Patience):
		require.Fail(t, "it still waits for the server")
	}
}

func TestABatchThatTheServerGaveUpIsSentAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	var begun atomic.Int32
	var last string
	// A message out of order makes the server give up the batch.
	disturbed, err := b.log.conn.Subscribe(events.PublishFilter, func(first *nats.Msg) {
		if first.Header.Get(jetstreamext.BatchSeqHeader) != "1" {
			return
		}
		begun.Add(1)
		if last != first.Subject {
			out := nats.NewMsg(first.Subject)
			out.Header.Set(jetstreamext.BatchIDHeader, first.Header.Get(jetstreamext.BatchIDHeader))
			out.Header.Set(jetstreamext.BatchSeqHeader, "2000")
			_ = b.log.conn.PublishMsg(out)
		}
		last = first.Subject
	})
	require.NoError(t, err)
	require.NoError(t, b.log.conn.Flush())
	publisher, err := nats.Connect(b.server.ClientURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer publisher.Close()
	log, err := Open(mnemetest.Context(t), publisher)
	require.NoError(t, err)
	batches := 0
	for int(begun.Load()) <= batches { // until a batch is sent twice: one may be complete before it is disturbed
		_, err = log.PublishAll(mnemetest.Context(t), "t", b.events(fmt.Sprint("c", batches), maxBatchEvents, "x"))
		require.NoError(t, err)
		batches++
		require.NoError(t, b.log.conn.Flush())
	}
	require.NoError(t, disturbed.Unsubscribe())
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.EqualValues(t, batches*maxBatchEvents, state.Messages)
}

func TestAServerThatGaveUpABatchMayHaveTooManyFilesOpen(t *testing.T) {
	t.Parallel()
	err := new(Log).publishError(t.Context(), &jetstream.APIError{ErrorCode: jetstreamext.JSErrCodeBatchPublishIncomplete})
	require.ErrorIs(t, err, ErrNotStored)
	require.ErrorContains(t, err, "the disk of its server may be full")
	require.ErrorContains(t, err, "LimitNOFILE")
}

// The first message of a batch waits for its answer without a context.
func TestATimeoutOfAPublishWhoseCallerLeftIsNotTheServersFault(t *testing.T) {
	b := setup(t, natsdeploy.Settings{})
	late := fmt.Errorf("batch message 1 ack failed: %w", nats.ErrTimeout)
	ctx, leave := context.WithCancel(t.Context())
	err := b.log.publishError(ctx, late)
	require.ErrorIs(t, err, ErrUnconfirmed)
	require.ErrorContains(t, err, "the disk of the NATS server may be full")
	b.log.conn.Close()
	err = b.log.publishError(ctx, late)
	require.ErrorIs(t, err, ErrUnconfirmed)
	require.ErrorContains(t, err, "the connection to NATS is lost", "not that its disk may be full")
	leave()
	require.ErrorIs(t, b.log.publishError(ctx, late), context.Canceled)
}

func TestABadEventPublishesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	list := b.events("c", 3, "x")
	list[1].ID = ""
	_, err := b.log.PublishAll(mnemetest.Context(t), "t", list)
	require.ErrorIs(t, err, events.ErrInvalid)
	require.ErrorContains(t, err, "event 1: id: is missing")
	_, err = b.log.Publish(mnemetest.Context(t), "", list[0])
	require.ErrorIs(t, err, events.ErrInvalid)
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Equal(t, State{}, State{First: state.First, Head: state.Head, Messages: state.Messages})
}

func TestAnEventBeyondTheServersLimitsIsTooLarge(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	e := b.events("c", 1, "x")[0]
	for i := range 20 { // headers of more than 64 KiB
		e.Extensions[fmt.Sprint("x", i)] = strings.Repeat("y", events.MaxExtensionBytes)
	}
	_, err := b.log.Publish(mnemetest.Context(t), "t", e)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = b.log.PublishAll(mnemetest.Context(t), "t", append(b.events("c", 2, "x"), e))
	require.ErrorIs(t, err, ErrTooLarge)
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Zero(t, state.Messages)
}

func TestAFullLogSaysSoAndStoresNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{MaxBytes: 1 << 20})
	content := strings.Repeat("x", 100<<10)
	var err error
	stored := uint64(0)
	for err == nil {
		if _, err = b.log.Publish(mnemetest.Context(t), "t", b.events("c", 1, content)[0]); err == nil {
			stored++
		}
	}
	require.ErrorIs(t, err, ErrFull)
	require.Positive(t, stored)
	_, err = b.log.PublishAll(mnemetest.Context(t), "t", b.events("c", 3, content))
	require.ErrorIs(t, err, ErrFull)
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Equal(t, stored, state.Messages)
	require.Equal(t, stored, state.Head)
}

func TestOfPublishersThatExpectTheSameEventOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 4})
	conversation := "a.b c*>"
	errs := make(chan error, 20)
	for _, e := range b.events(conversation, cap(errs), "x") {
		go func() {
			_, err := b.log.PublishAfter(t.Context(), "t", e, "*", 0)
			errs <- err
		}()
	}
	stored := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			stored++
		} else {
			require.ErrorIs(t, err, ErrConflict)
		}
	}
	require.Equal(t, 1, stored)

	list := b.events(conversation, 3, "y")
	_, err := b.log.PublishAfter(mnemetest.Context(t), "t", list[0], events.Kind(events.TypeConversationDeleted), 0)
	require.NoError(t, err, "no event of that kind is there")
	_, err = b.log.PublishAfter(mnemetest.Context(t), "t", list[1], events.Kind(events.TypeMessageCreated), 1)
	require.ErrorIs(t, err, ErrConflict)
	_, err = b.log.PublishAfter(mnemetest.Context(t), "t", list[1], events.Kind(events.TypeMessageCreated), 2)
	require.NoError(t, err)
	_, err = b.log.PublishAfter(mnemetest.Context(t), "u", list[2], "*", 0)
	require.NoError(t, err, "another tenant's conversation is a different one")

	m, err := b.log.LastOfKind(mnemetest.Context(t), "t", conversation, events.Kind(events.TypeMessageCreated))
	require.NoError(t, err)
	require.EqualValues(t, 3, m.Seq)
	_, err = b.log.LastOfKind(mnemetest.Context(t), "t", conversation, events.Kind(events.TypeConversationDeleted))
	require.ErrorIs(t, err, ErrNotFound)
}
