package eventlog

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

// forge stores a message that is not an event of ours, under the message id of an event.
func (b *bench) forge(subject string, e events.Event) uint64 {
	b.t.Helper()
	msg := nats.NewMsg(subject)
	msg.Header.Set(events.HeaderMsgID, e.Identity("t").String())
	msg.Data = []byte("junk")
	ack, err := b.log.js.PublishMsg(mnemetest.Context(b.t), msg)
	require.NoError(b.t, err)
	require.False(b.t, ack.Duplicate)
	return ack.Sequence
}

// holds requires that the log has an event at a sequence.
func (b *bench) holds(seq uint64, e events.Event) {
	b.t.Helper()
	m, err := b.log.Get(mnemetest.Context(b.t), seq)
	require.NoError(b.t, err)
	got, _, err := m.Decode()
	require.NoError(b.t, err)
	require.True(b.t, e.Equal(&got.Event))
}

func TestAnEventWithAnotherContentUnderTheSameIDIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	list := b.events("c", 3, "one")
	first, err := b.log.Publish(mnemetest.Context(t), "t", list[0])
	require.NoError(t, err)
	other := b.events("c", 1, "two")[0]
	other.ID = list[0].ID

	_, err = b.log.Publish(mnemetest.Context(t), "t", other)
	var refused *OtherContentError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, ErrOtherContent)
	require.Equal(t, OtherContentError{ID: other.ID, Seq: first.Seq}, *refused)

	acks, err := b.log.PublishAll(mnemetest.Context(t), "t", []events.Event{list[1], other, list[2]})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, first.Seq, refused.Seq)
	require.Equal(t, []Ack{{Seq: 2}}, acks, "what came before it is stored")
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.EqualValues(t, 2, state.Messages)
}

func TestARepeatThatDiffersInItsTimeAndItsTraceIsADuplicate(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	e := b.events("c", 1, "one")[0]
	first, err := b.log.Publish(mnemetest.Context(t), "t", e)
	require.NoError(t, err)
	e.Time = e.Time.Add(1)
	e.Extensions = map[string]any{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	again, err := b.log.Publish(mnemetest.Context(t), "t", e)
	require.NoError(t, err)
	require.Equal(t, Ack{Seq: first.Seq, Duplicate: true}, again)
}

func TestAForgedMessageIDSwallowsNoEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	list := b.events("c", 5, "x")
	b.forge("mneme.t.c.message_created", list[0]) // the event's own subject
	b.forge("mneme.other.c.x", list[2])           // another tenant's
	b.forge("mneme.t.c.%5f", list[4])             // one that can't be read

	ack, err := b.log.Publish(mnemetest.Context(t), "t", list[0])
	require.NoError(t, err)
	require.Equal(t, Ack{Seq: 4}, ack)
	b.holds(ack.Seq, list[0])

	acks, err := b.log.PublishAll(mnemetest.Context(t), "t", list[1:])
	require.NoError(t, err)
	for i, ack := range acks {
		require.False(t, ack.Duplicate)
		b.holds(ack.Seq, list[1+i])
	}

	again, err := b.log.Publish(mnemetest.Context(t), "t", list[1])
	require.NoError(t, err)
	require.Equal(t, Ack{Seq: acks[0].Seq, Duplicate: true}, again)
}

func TestAnEventWhoseFirstCopyWasRemovedIsStoredAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	e := b.events("c", 1, "x")[0]
	first, err := b.log.Publish(mnemetest.Context(t), "t", e)
	require.NoError(t, err)
	require.NoError(t, b.log.stream.DeleteMsg(mnemetest.Context(t), first.Seq))
	again, err := b.log.Publish(mnemetest.Context(t), "t", e)
	require.NoError(t, err)
	require.Equal(t, Ack{Seq: first.Seq + 1}, again)
	b.holds(again.Seq, e)
}

func TestAForgedMessageIDHindersNoPublishAfter(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	e := b.events("c", 1, "x")[0]
	b.forge("mneme.t.elsewhere.x", e)
	ack, err := b.log.PublishAfter(mnemetest.Context(t), "t", e, "*", 0)
	require.NoError(t, err)
	require.Equal(t, Ack{Seq: 2}, ack)
	b.holds(ack.Seq, e)
}

func TestTheLastEventIsFoundThoughItsSubjectIsInvalid(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 4})
	b.publish("c", 1)
	ack, err := b.log.js.Publish(mnemetest.Context(t), "mneme.t.c.message%5Fcreated", []byte("x"))
	require.NoError(t, err)
	seq, partition, err := b.log.Last(mnemetest.Context(t), "t", "c")
	require.NoError(t, err)
	require.Equal(t, ack.Sequence, seq)
	require.Equal(t, b.log.PartitionOf("t", "c"), partition)
	last, err := b.log.LastOf(mnemetest.Context(t), partition)
	require.NoError(t, err)
	require.Equal(t, ack.Sequence, last)
}
