package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestBenchPartitionsLosesDoublesAndReordersNothing(t *testing.T) {
	_, err := mnemetest.Binary() // built outside the test's temporary directory
	require.NoError(t, err)
	t.Setenv("TMPDIR", t.TempDir())
	out, stderr, code := mneme(t, "bench", "partitions", "--events", "2000", "--json")
	require.Zero(t, code, stderr)
	var r bench.Partitions
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	require.EqualValues(t, 2000, r.Events)
	require.Equal(t, []int{8, 32}, []int{r.From, r.To})
	require.Greater(t, r.Published, 200, "events were published meanwhile")
	require.Zero(t, r.Log.Wrong())
	require.Zero(t, r.ReadModel.Wrong())
	require.Equal(t, r.Published, r.Stored.Count)
	for _, figure := range []float64{r.MB, r.Seconds, r.Readers, r.Pace, r.Pause} {
		require.Positive(t, figure)
	}
	require.Less(t, r.Seconds, r.Readers)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}
