package bounded_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/summarizer/bounded"
)

func TestAMapStaysWithinItsBoundAndKeepsWhatIsInUse(t *testing.T) {
	t.Parallel()
	inUse := func(busy bool) bool { return busy }
	m := map[int]bool{}
	for i := range 1_000 {
		bounded.MakeRoom(m, 10, inUse)
		m[i] = i < 5
		require.LessOrEqual(t, len(m), 10)
		require.Contains(t, m, i)
	}
	require.Equal(t, []int{0, 1, 2, 3, 4}, slices.Sorted(maps.Keys(m))[:5])
	for i := range 20 {
		m[i] = true
	}
	bounded.MakeRoom(m, 10, inUse)
	require.Len(t, m, 20, "all are in use")
	bounded.MakeRoom(m, 10, nil)
	require.Len(t, m, 9)
}
