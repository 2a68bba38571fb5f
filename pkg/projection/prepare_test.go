package projection_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

func TestPreparationRunsBeforeTheTransactionAndReachesTheUnit(t *testing.T) {
	b := setup(t, 1)
	b.many(20, 3)
	var given atomic.Int64
	p := graph.Projection()
	p.Prepare = func(ctx context.Context, list []*events.Recorded) (func(*graph.Unit), error) {
		// Another writer can write at the same time.
		if err := b.store.Update(ctx, 7, func(projection.Tx[*graph.Unit]) error { return nil }); err != nil {
			return nil, err
		}
		return func(u *graph.Unit) {
			if u != nil {
				given.Add(int64(len(list)))
			}
		}, nil
	}
	await(t, b.start(p), "live", func(s projection.Status) bool { return s.State == projection.StateLive && s.Checkpoint.Seq == 20 })
	require.EqualValues(t, 20, given.Load())
}

func TestAFailedPreparationIsRetriedAndNothingIsSkipped(t *testing.T) {
	b := setup(t, 1)
	b.many(5, 1)
	var down atomic.Bool
	down.Store(true)
	p := graph.Projection()
	p.Prepare = func(context.Context, []*events.Recorded) (func(*graph.Unit), error) {
		if down.Load() {
			return nil, errors.New("the other server is away")
		}
		return func(*graph.Unit) {}, nil
	}
	pr := b.start(p)
	await(t, pr, "in trouble", func(s projection.Status) bool { return s.Error == "the other server is away" && s.Checkpoint.Seq == 0 })
	down.Store(false)
	await(t, pr, "live", func(s projection.Status) bool {
		return s.State == projection.StateLive && s.Checkpoint.Seq == 5 && s.Error == ""
	})
	require.EqualValues(t, 5, pr.Status()[0].Checkpoint.Applied)
}

// On a slow machine an attempt takes longer than the pauses between attempts, so whoever asks while it runs must be told
// why the last one failed.
func TestAnErrorIsShownUntilEventsAreApplied(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(5, 1)
	begun, seen := make(chan struct{}), make(chan struct{})
	attempts := 0
	p := graph.Projection()
	p.Prepare = func(ctx context.Context, _ []*events.Recorded) (func(*graph.Unit), error) {
		attempts++
		switch attempts {
		case 1:
			return nil, projection.ErrDisk
		case 2:
			close(begun)
			select {
			case <-seen:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return func(*graph.Unit) {}, nil
	}
	pr := b.start(p)
	<-begun
	require.Equal(t, projection.ErrDisk.Error(), pr.Status()[0].Error)
	close(seen)
	await(t, pr, "live", func(s projection.Status) bool { return isLive(s) && s.Error == "" })
}

func TestAnEventThatCannotBePreparedFailsAlone(t *testing.T) {
	b := setup(t, 1)
	b.many(30, 2)
	p := graph.Projection()
	p.Prepare = func(_ context.Context, list []*events.Recorded) (func(*graph.Unit), error) {
		for _, e := range list {
			if e.Seq == 17 {
				return nil, projection.ErrRejected
			}
		}
		return func(*graph.Unit) {}, nil
	}
	await(t, b.start(p), "live", func(s projection.Status) bool { return s.State == projection.StateLive && s.Checkpoint.Seq == 30 })
	failed, err := b.store.Failed(t.Context(), projection.FailedQuery{Limit: 9})
	require.NoError(t, err)
	require.Len(t, failed, 1)
	require.EqualValues(t, 17, failed[0].Seq)
}
