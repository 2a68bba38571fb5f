package projection

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStoreIsLeftAloneOnlyAfterASmallTransactionThatWasDearAndSlow(t *testing.T) {
	t.Parallel()
	dear, cheap := newTurns(nil, 1500), newTurns(nil, maxBatchEvents)
	for _, c := range []struct {
		name   string
		turns  *turns
		events int
		took   time.Duration
		want   time.Duration
	}{
		{"as it should be", dear, 1, 12 * time.Millisecond, 0},
		{"burdened", dear, 1, 40 * time.Millisecond, 160 * time.Millisecond},
		{"for no longer than that", dear, 1, 2 * time.Second, maxRelief},
		{"many events share it", dear, fewEvents + 1, 40 * time.Millisecond, 0},
		{"a store of cheap ones", cheap, 1, 40 * time.Millisecond, 0},
	} {
		require.Equal(t, c.want, c.turns.relief(c.events, c.took), c.name)
	}
}
