package projection_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// A log that somebody deleted and made again halts every partition. Their positions differ, and the new log may grow
// meanwhile, but the status and doctor tell of partitions together only if they say the same.
func TestPartitionsThatHaltForOneReasonSayTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	publish := func(count int) {
		for n := range count {
			b.message(fmt.Sprint("c", n))
		}
	}
	publish(10) // in both partitions
	b.applied()
	b.anotherStream()
	reasons := func() []string {
		pr := b.start(graph.Projection())
		await(t, pr, "is halted", isHalted)
		pr.Stop()
		list := pr.Status()
		return []string{list[0].Error, list[1].Error}
	}
	shorter := reasons()
	require.Contains(t, shorter[0], "the log ends before")
	require.Equal(t, shorter[0], shorter[1])
	publish(1)
	require.Equal(t, shorter, reasons())
	publish(20)
	longer := reasons()
	require.Contains(t, longer[0], "another event")
	require.Equal(t, longer[0], longer[1])
}

// A log that was restored from an older backup lacks nothing between its first and its last event. A read model that was
// ahead of it may hold the last copy of the rest, which a rebuild would throw away.
func TestVerifyTellsThatTheLogLostItsTail(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	publish := func(conversation string, count int) {
		for range count {
			b.message(conversation)
		}
	}
	publish("c", 3)
	b.applied()
	compare := func() map[string]projection.Side {
		sides := map[string]projection.Side{}
		for _, d := range b.verify(graph.Projection()).Differences {
			sides[d.Conversation.ID] = d.MissingIn
		}
		return sides
	}
	b.anotherStream()
	b.seq = 0
	publish("c", 2)
	require.Equal(t, map[string]projection.Side{"c": projection.MissingInLog}, compare(), "the log ends before")
	publish("d", 2)
	require.Equal(t, map[string]projection.Side{"c": projection.MissingInLog, "d": projection.MissingInModel}, compare(), "another event is in the last one's place")
}
