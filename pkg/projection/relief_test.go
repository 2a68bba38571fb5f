package projection

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStoreRestsAfterSlowSmallCostlyTransactions(t *testing.T) {
	t.Parallel()
	const slow = 120 * time.Millisecond
	for _, c := range []struct {
		name    string
		batch   int
		costly  bool
		events  int
		pending uint64
		took    time.Duration
		want    time.Duration
	}{
		{"normal", 1500, true, 1, 0, 80 * time.Millisecond, 0},
		{"burdened", 1500, true, 1, 40, slow, 480 * time.Millisecond},
		{"the rest has a limit", 1500, true, 1, 0, 2 * time.Second, maxRelief},
		{"many events share it", 1500, true, 400, 0, slow, 0},
		{"a whole batch, of a small size", 256, true, 256, 0, slow, 0},
		{"there is more to catch up with", 1500, true, 100, 1500, slow, 0},
		{"a store of cheap transactions", maxBatchEvents, false, 1, 0, slow, 0},
		{"a store of cheap transactions, in small batches", 256, false, 1, 0, slow, 0},
		{"a store of costly transactions, in the largest batches", maxBatchEvents, true, 1, 0, slow, 480 * time.Millisecond},
	} {
		turn := newTurns(nil, c.batch, c.costly)
		require.Zero(t, turn.relief(c.events, c.pending, c.took), "%s: one alone may be chance", c.name)
		for range 2 {
			require.Equal(t, c.want, turn.relief(c.events, c.pending, c.took), c.name)
		}
		require.Zero(t, turn.relief(c.events, c.pending, time.Millisecond), c.name)
		require.Zero(t, turn.relief(c.events, c.pending, c.took), "%s: starts over", c.name)
	}
}
