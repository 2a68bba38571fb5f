package eventlog

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

// TestAPartitionWhoseEventsAreGoneIsFollowed removes the beginning of the log, as an erasure does that reaches every
// conversation of a partition.
func TestAPartitionWhoseEventsAreGoneIsFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 2})
	quiet, busy := b.in(0), b.in(1)
	b.publish(quiet, 1)
	running, err := b.log.Follow(t.Context(), 0, 2)
	require.NoError(t, err)
	defer running.Stop()
	b.publish(busy, 5)
	stream, err := b.log.js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(mnemetest.Context(t), jetstream.WithPurgeSequence(5)))
	begun, err := b.log.Follow(t.Context(), 0, 2)
	require.NoError(t, err)
	defer begun.Stop()

	for name, f := range map[string]*Follower{"running": running, "begun": begun} {
		require.False(t, f.behind(), name)
	}
	b.publish(quiet, 1)
	for name, f := range map[string]*Follower{"running": running, "begun": begun} {
		require.EqualValues(t, 7, b.next(f).Seq, name)
		require.False(t, f.behind(), name)
	}
}

// TestAnEventThatWasSentAndDidNotArriveIsNoticed sends a message that the NATS client keeps to itself.
func TestAnEventThatWasSentAndDidNotArriveIsNoticed(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	f, err := b.log.Follow(t.Context(), 0, 1)
	require.NoError(t, err)
	defer f.Stop()
	require.False(t, f.behind())
	msg := nats.NewMsg("mneme.t.c.message_created")
	msg.Header.Set("Status", "100")
	_, err = b.log.js.PublishMsg(mnemetest.Context(t), msg)
	require.NoError(t, err)
	require.Eventually(t, f.behind, mnemetest.Patience, watchInterval)
}

// in returns a conversation of a partition.
func (b *bench) in(partition int) string {
	for n := 'a'; ; n++ {
		if events.PartitionOf("t", string(n), b.log.Partitions()) == partition {
			return string(n)
		}
	}
}
