package backup_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

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

	removed, err := backup.Prune(made[2], 3)
	require.NoError(t, err)
	require.Empty(t, removed)
	removed, err = backup.Prune(made[2], 1)
	require.NoError(t, err)
	require.Equal(t, made[:2], removed)
	_, err = backup.Verify(made[2], func(int) {})
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 4)
}

// The clock of a machine can have been set back since the other backups were made.
func TestTheBackupThatWasJustMadeIsNotRemoved(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.apply(64 << 20)
	p.publish(0, 3, 10)
	dir := t.TempDir()
	made, later := filepath.Join(dir, "made"), filepath.Join(dir, "later")
	for _, path := range []string{made, later} {
		_, err := backup.Create(t.Context(), p.conn, path, quiet)
		require.NoError(t, err)
	}
	removed, err := backup.Prune(made, 1)
	require.NoError(t, err)
	require.Equal(t, []string{later}, removed)
	require.DirExists(t, made)
}

func TestWhatAKilledBackupLeftIsRemovedAfterADay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := func(name, file string, age time.Duration) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(path, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path, file), []byte("x"), 0o600))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(path, file), then, then))
		return path
	}
	const snapshot = "stream.arc.s2"
	killed := left("a.partial", snapshot, 25*time.Hour)
	left("running.partial", snapshot, time.Hour)
	left("photos.partial", "cat.png", 1000*time.Hour)
	left("other", snapshot, 1000*time.Hour)
	removed, err := backup.Prune(filepath.Join(dir, "made"), 1)
	require.NoError(t, err)
	require.Equal(t, []string{killed}, removed)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 3)
}
