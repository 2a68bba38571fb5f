package service

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyKilledVerificationsAreCleanedUp(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	left := filepath.Join(data, scratchPrefix+"1")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, "graph.db"), []byte("x"), 0o600))
	dir, remove, err := makeScratch(data)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "graph.db"), []byte("x"), 0o600))
	require.NoError(t, RemoveScratch(data))
	require.DirExists(t, dir, "the process keeps using it")
	require.NoError(t, remove())
	require.NoDirExists(t, dir)
	require.NoError(t, RemoveScratch(data))
	require.NoDirExists(t, left)
	require.NoError(t, RemoveScratch(data), "nothing is left")
}
