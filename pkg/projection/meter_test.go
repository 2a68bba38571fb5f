package projection

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestARateIsThatOfTheLastSeconds(t *testing.T) {
	t.Parallel()
	now := time.Duration(0)
	m := newMeterOf(func() time.Duration { return now })
	require.Zero(t, m.rate())
	m.add(100)
	require.EqualValues(t, 100, m.rate(), "what comes at once counts as a second's")
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

// A wall clock that jumps must not end a lease, nor keep one: what is measured is
// measured by the monotonic clock, which a time keeps through sums and not through
// rounding or a change of zone.
func TestTheEndOfALeaseIsAMonotonicTime(t *testing.T) {
	t.Parallel()
	l := &lease{ttl: 2 * time.Second}
	began := time.Now()
	end := l.end(began)
	require.Equal(t, 1500*time.Millisecond, end.Sub(began))
	require.Contains(t, end.String(), "m=+", "the monotonic reading")
}
