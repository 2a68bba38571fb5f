package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/bench"
)

func TestBenchEraseFindsTheWordsBeforeAndNotAfterwards(t *testing.T) {
	r, lines := measure[bench.Erase](t, "erase", "--messages", "30")
	require.EqualValues(t, lines+30, r.Events)
	require.Equal(t, 30, r.Messages)
	require.GreaterOrEqual(t, r.Before.Hits, 30)
	require.Zero(t, r.After.Hits)
	require.Zero(t, r.Stopped.Hits)
	for _, f := range []bench.Found{r.Before, r.After, r.Stopped} {
		require.Positive(t, f.Files)
		require.Positive(t, f.MB)
	}
	require.Positive(t, r.Seconds)
	require.Positive(t, r.PerSecond)
}
