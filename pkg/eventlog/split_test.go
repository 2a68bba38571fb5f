package eventlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestASplitThatWasCutOffAtAnyStepIsEnded(t *testing.T) {
	t.Parallel()
	for steps := 1; ; steps++ {
		b := setup(t, natsdeploy.Settings{Partitions: 2, MaxBytes: 8 << 20})
		b.publish("c", 20)
		ctx, cut := context.WithCancel(t.Context())
		n := 0
		err := Split(ctx, b.log.conn, 8, func(string) {
			if n++; n == steps {
				cut() // every request of this step to the server fails
			}
		})
		cut()
		if err == nil {
			require.Equal(t, 4, steps, "the steps of a split")
			return
		}
		require.ErrorIs(t, err, context.Canceled)
		b.publish("c", 20) // nobody is refused in between

		_, err = Open(mnemetest.Context(t), b.log.conn)
		if steps > 1 {
			require.ErrorIs(t, err, natsdeploy.ErrSplitting)
			require.ErrorContains(t, err, "run mneme partitions 8")
			_, err = b.log.State(mnemetest.Context(t))
			require.ErrorIs(t, err, natsdeploy.ErrSplitting, "a running process says so too")
			require.ErrorIs(t, Split(t.Context(), b.log.conn, 4, nil), natsdeploy.ErrSplitting, "into another number")
			b.restartServer()
			require.Eventually(t, b.log.conn.IsConnected, mnemetest.Patience, time.Millisecond)
		} else {
			require.NoError(t, err)
		}
		// A server that has just restarted can lose a request.
		require.Eventually(t, func() bool { return Split(t.Context(), b.log.conn, 8, nil) == nil }, mnemetest.Patience, 10*time.Millisecond)
		require.NoError(t, Split(t.Context(), b.log.conn, 8, nil), "and it can be repeated")
		b.publish("c", 20)
		log, err := Open(mnemetest.Context(t), b.log.conn)
		require.NoError(t, err)
		require.Equal(t, 8, log.Partitions())
		held := uint64(0)
		for partition := range log.Partitions() {
			require.NoError(t, log.Scan(t.Context(), partition, 60, func(m Message) error {
				held++
				if _, upTo, ok := log.Parent(partition); ok && m.Seq <= upTo {
					return errors.New("a new partition begins before its split")
				}
				return nil
			}))
		}
		require.Equal(t, uint64(60), held)
		_, err = b.log.State(mnemetest.Context(t))
		require.ErrorIs(t, err, ErrPartitions, "a process that opened the log before the split is refused")
		_, _, err = b.log.Last(mnemetest.Context(t), "t", "c")
		if partition := log.PartitionOf("t", "c"); partition >= 2 {
			require.ErrorIs(t, err, ErrPartitions)
		}
	}
}

func TestALogGetsAMultipleOfItsPartitionsOrKeepsThem(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 8, MaxBytes: 8 << 20})
	for _, n := range []int{4, 12, 64, 0, -8} {
		err := Split(t.Context(), b.log.conn, n, nil)
		var more *natsdeploy.MoreError
		require.ErrorAs(t, err, &more, "%d", n)
		require.ErrorContains(t, err, "choose 16, 24, 32")
	}
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Zero(t, state.Head)
	require.NoError(t, EndSplit(t.Context(), b.log.conn), "there is none to end")
}

func TestFamiliesHoldAllPartitionsOfAConversation(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 2, MaxBytes: 8 << 20})
	require.Equal(t, [][]int{{0}, {1}}, b.log.Families())
	require.NoError(t, Split(t.Context(), b.log.conn, 4, nil))
	require.NoError(t, Split(t.Context(), b.log.conn, 8, nil))
	log, err := Open(mnemetest.Context(t), b.log.conn)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 2, 4, 6}, {1, 3, 5, 7}}, log.Families())
	parent, _, ok := log.Parent(7)
	require.True(t, ok)
	require.Equal(t, 3, parent)
}
