package backup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/backup"
)

func TestTheOldestBackupsAreRemoved(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.apply(64 << 20)
	p.publish(0, 3, 10)
	dir := t.TempDir()
	var made []string
	for _, name := range []string{"c", "a", "b"} { // their age counts, not their names
		path := filepath.Join(dir, name)
		_, err := backup.Create(t.Context(), p.conn, path, quiet)
		require.NoError(t, err)
		made = append(made, path)
	}
	for _, other := range []string{"interrupted.partial", "photos"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, other), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{}"), 0o600))

	removed, err := backup.Prune(dir, 3)
	require.NoError(t, err)
	require.Empty(t, removed)
	removed, err = backup.Prune(dir, 1)
	require.NoError(t, err)
	require.Equal(t, made[:2], removed)
	_, err = backup.Verify(made[2], func(int) {})
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 4)
}
