package backup_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/backup"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestTheOldestBackupsAreRemoved(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.apply(64 << 20)
	p.publish(0, 3, 10)
	dir := t.TempDir()
	var made []string
	for _, name := range []string{"c", "a", "b"} { // their age counts, not their names
		made = append(made, p.create(dir, name))
	}
	for _, other := range []string{"interrupted.partial", "photos"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, other), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{}"), 0o600))

	removed, foreign, err := backup.Prune(made[2], 3)
	require.NoError(t, err)
	require.Empty(t, removed)
	require.Empty(t, foreign)
	removed, foreign, err = backup.Prune(made[2], 1)
	require.NoError(t, err)
	require.Equal(t, made[:2], removed)
	require.Empty(t, foreign)
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
	made, later := p.create(dir, "made"), p.create(dir, "later")
	removed, _, err := backup.Prune(made, 1)
	require.NoError(t, err)
	require.Equal(t, []string{later}, removed)
	require.DirExists(t, made)
}

// create makes a backup with this name.
func (p *place) create(dir, name string) string {
	p.t.Helper()
	path := filepath.Join(dir, name)
	_, err := backup.Create(mnemetest.Context(p.t), p.conn, path, quiet)
	require.NoError(p.t, err)
	return path
}

func TestBackupsOfALostLogAreNotRemoved(t *testing.T) {
	t.Parallel()
	lost, begun, dir := start(t), start(t), t.TempDir()
	lost.apply(64 << 20)
	none := lost.create(dir, "none")
	lost.publish(0, 3, 10)
	old := []string{lost.create(dir, "1"), lost.create(dir, "2")}
	begun.apply(64 << 20)
	empty := begun.create(dir, "empty")
	removed, foreign, err := backup.Prune(empty, 1)
	require.NoError(t, err)
	require.Equal(t, old, foreign)
	require.Equal(t, []string{none}, removed, "it holds nothing")
	begun.publish(0, 5, 10) // the same events, but published again
	removed, foreign, err = backup.Prune(begun.create(dir, "3"), 1)
	require.NoError(t, err)
	require.Equal(t, old, foreign)
	require.Equal(t, []string{empty}, removed)
}

func TestADamagedBackupIsNotRemoved(t *testing.T) {
	t.Parallel()
	p, dir := start(t), t.TempDir()
	p.apply(64 << 20)
	p.publish(0, 3, 10)
	damaged := p.create(dir, "1")
	require.NoError(t, os.Truncate(filepath.Join(damaged, "stream.arc.s2"), 10))
	removed, foreign, err := backup.Prune(p.create(dir, "2"), 1)
	require.NoError(t, err)
	require.Empty(t, removed)
	require.Equal(t, []string{damaged}, foreign)
}

func TestBackupsOfALogAreKnownAfterItsRestoreAndAnErasure(t *testing.T) {
	t.Parallel()
	p, dir := start(t), t.TempDir()
	p.apply(64 << 20)
	p.publish(0, 3, 10)
	first := p.create(dir, "1")
	p.publish(3, 3, 10)
	second := p.create(dir, "2")
	q := start(t)
	_, err := backup.Restore(mnemetest.Context(t), q.conn, second, backup.Options{}, quiet)
	require.NoError(t, err)
	stream, err := q.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	for seq := range uint64(4) {
		require.NoError(t, stream.SecureDeleteMsg(mnemetest.Context(t), seq+1))
	}
	removed, foreign, err := backup.Prune(q.create(dir, "3"), 1)
	require.NoError(t, err)
	require.Empty(t, foreign)
	require.Equal(t, []string{first, second}, removed, "of the first, nothing is left in the log")
}

func TestWhatAKilledBackupLeftIsRemovedAfterADay(t *testing.T) {
	t.Parallel()
	p, dir := start(t), t.TempDir()
	p.apply(64 << 20)
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
	removed, _, err := backup.Prune(p.create(dir, "made"), 1)
	require.NoError(t, err)
	require.Equal(t, []string{killed}, removed)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 4)
}
