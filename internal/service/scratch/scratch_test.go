package scratch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/service/scratch"
)

func TestOnlyKilledVerificationsAreCleanedUp(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data[1") // not a pattern
	left := filepath.Join(data, "verify-1")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, "graph.db"), []byte("x"), 0o600))
	dir, remove, err := scratch.Make(data)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "graph.db"), []byte("x"), 0o600))
	require.NoError(t, scratch.Clean(data))
	require.DirExists(t, dir, "the process keeps using it")
	require.NoError(t, remove())
	require.NoDirExists(t, dir)
	require.NoError(t, scratch.Clean(data))
	require.NoDirExists(t, left)
	require.NoError(t, scratch.Clean(data), "nothing is left")
}
