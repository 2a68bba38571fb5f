package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestQuantilesAreOfTheNearestRank(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	for n := 200; n > 0; n-- {
		took = append(took, time.Duration(n)*time.Millisecond)
	}
	require.Equal(t, Latencies{Count: 200, P50: 100, P90: 180, P99: 198, Max: 200}, latencies(took))
	require.Equal(t, Latencies{Count: 1, P50: 0.25, P90: 0.25, P99: 0.25, Max: 0.25}, latencies([]time.Duration{250 * time.Microsecond}))
	require.Equal(t, Latencies{}, latencies(nil))
}

func TestMedianOfAnEvenNumberIsBetweenTheTwoInTheMiddle(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2.5, median([]float64{4, 1, 3, 2}), 0)
	require.InDelta(t, 3, median([]float64{9, 1, 3}), 0)
}

func TestInterleavedConversationsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var list []events.Event
	for _, id := range []string{"a1", "a2", "a3", "b1", "c1", "c2"} {
		list = append(list, events.Event{Subject: id[:1], ID: id})
	}
	var order []string
	for _, e := range interleave(list, 2) {
		order = append(order, e.ID)
	}
	require.Equal(t, []string{"a1", "b1", "a2", "c1", "a3", "c2"}, order)
	require.Len(t, interleave(list, 100), len(list))
}

func TestASpreadReachesOverTheWholeList(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{0, 2, 5, 7}, spread([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 4))
	require.Equal(t, []int{0, 1}, spread([]int{0, 1}, 4))
}
