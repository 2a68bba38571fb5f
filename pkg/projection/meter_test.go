package projection

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestARateCoversTheLastSeconds(t *testing.T) {
	t.Parallel()
	now := time.Duration(0)
	m := newMeterOf(func() time.Duration { return now })
	require.Zero(t, m.rate())
	m.add(100)
	require.EqualValues(t, 100, m.rate(), "a burst counts as one second's events")
	now = 2 * time.Second
	require.EqualValues(t, 50, m.rate())
	for ; now < 20*time.Second; now += time.Second / 4 {
		m.add(25)
	}
	require.InDelta(t, 100, m.rate(), 20)
	now += 4 * time.Second
	require.Positive(t, m.rate())
	now += 2 * time.Second
	require.Zero(t, m.rate())
	now += time.Hour
	m.add(60)
	require.InDelta(t, 12, m.rate(), 2.5)
}

// A wall clock that jumps must neither end a lease nor extend one. Leases use the monotonic clock,
// whose reading survives additions to a time but not rounding or a change of zone.
func TestTheEndOfALeaseIsAMonotonicTime(t *testing.T) {
	t.Parallel()
	l := &lease{ttl: 2 * time.Second}
	began := time.Now()
	end := l.end(began)
	require.Equal(t, 1500*time.Millisecond, end.Sub(began))
	require.Contains(t, end.String(), "m=+", "the monotonic reading")
}
