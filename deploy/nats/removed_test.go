package natsdeploy_test

import (
	"math"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
)

func TestMessagesThatNobodyRecordedAsRemovedAreMissing(t *testing.T) {
	t.Parallel()
	js := connect(t, start(t, embedded.Config{MaxBytes: 16 << 20}))
	ctx := t.Context()
	_, err := natsdeploy.Apply(ctx, js, natsdeploy.Settings{MaxBytes: 16 << 20})
	require.NoError(t, err)
	for range 10 {
		_, err := js.Publish(ctx, "mneme.t.c.message_created", []byte("x"))
		require.NoError(t, err)
	}
	missing := func() uint64 {
		info, err := natsdeploy.Inspect(ctx, js)
		require.NoError(t, err)
		return info.Missing
	}
	record := func(n uint64) uint64 {
		left, err := natsdeploy.RecordRemoved(ctx, js, n)
		require.NoError(t, err)
		return left
	}
	require.Zero(t, missing())
	require.Zero(t, record(5), "stored messages cannot be recorded as removed")

	stream, err := js.Stream(ctx, natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(ctx, 4))
	require.NoError(t, stream.SecureDeleteMsg(ctx, 10))
	require.EqualValues(t, 2, missing())
	require.EqualValues(t, 1, record(1))
	require.EqualValues(t, 1, missing())
	require.Zero(t, record(math.MaxUint64))
	require.Zero(t, missing())

	require.NoError(t, stream.Purge(ctx, jetstream.WithPurgeSequence(3)))
	require.EqualValues(t, 2, missing(), "at the front too")
	require.Zero(t, record(2))
	require.NoError(t, stream.Purge(ctx))
	require.EqualValues(t, 6, missing(), "an empty stream remembers where it was")
	_, err = natsdeploy.Apply(ctx, js, natsdeploy.Settings{MaxBytes: 16 << 20})
	require.NoError(t, err, "the record does not name another stream")
}

// An erasure can run while an operator repairs the log. A count that one of them lost would make erased messages look like lost ones.
func TestNumbersRecordedAtTheSameTimeAreAllKept(t *testing.T) {
	t.Parallel()
	const times = 20
	js := connect(t, start(t, embedded.Config{MaxBytes: 16 << 20}))
	ctx := t.Context()
	_, err := natsdeploy.Apply(ctx, js, natsdeploy.Settings{MaxBytes: 16 << 20})
	require.NoError(t, err)
	var both sync.WaitGroup
	for _, record := range []func(i uint64) error{
		func(i uint64) error { return natsdeploy.RecordErased(ctx, js, i, 3) },
		func(uint64) error { return natsdeploy.RecordDamaged(ctx, js, 1) },
	} {
		both.Go(func() {
			for i := range uint64(times) {
				assert.NoError(t, record(i+1))
			}
		})
	}
	both.Wait()
	stream, err := js.Stream(ctx, natsdeploy.Stream)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	require.Equal(t, []uint64{times, 3 * times, times}, []uint64{natsdeploy.ErasedBatch(config), natsdeploy.Removed(config), natsdeploy.Damaged(config)})
}
