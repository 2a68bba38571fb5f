package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/projection"
)

// made makes an empty read model and returns its path.
func made(t *testing.T, generation int) string {
	t.Helper()
	path := Path(t.TempDir(), "graph", generation)
	s, err := OpenGraph(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return path
}

// spoil overwrites bytes of a file with zeros.
func spoil(t *testing.T, path string, offset, n int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, n), offset)
	require.NoError(t, errors.Join(err, f.Close()))
}

// rootOf returns the offset of a table's first page.
func rootOf(t *testing.T, path, table string) (offset int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = ?", table).Scan(&offset))
	return (offset - 1) * 4096
}

func TestOpeningADamagedFileNamesTheDamageAndTheRemedy(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path string){
		"zeroed header": func(t *testing.T, path string) { spoil(t, path, 0, 100) },
		"cut":           func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 3*4096)) },
		"text":          func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("no database"), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := made(t, 1)
			damage(t, path)
			_, err := OpenGraph(t.Context(), path)
			requireDamaged(t, err)
			_, err = OpenReader(path, GraphCodec)
			requireDamaged(t, err)
			requireDamaged(t, Check(t.Context(), path))
		})
	}
}

func requireDamaged(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, projection.ErrDamaged)
	var damaged *projection.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, "graph", damaged.Projection)
	require.ErrorContains(t, err, "mneme rebuild graph")
}

func TestDamageWithinAFileIsNamedByWritersAndReaders(t *testing.T) {
	t.Parallel()
	path := made(t, 1)
	require.NoError(t, Check(t.Context(), path))
	spoil(t, path, rootOf(t, path, "checkpoint"), 4096)
	requireDamaged(t, Check(t.Context(), path))
	s, err := OpenGraph(t.Context(), path)
	require.NoError(t, err, "the pages read at the start are intact")
	defer s.Close()
	_, err = s.Acquire(t.Context(), 0, "v1")
	requireDamaged(t, err)
	_, err = s.Checkpoints(t.Context())
	requireDamaged(t, err)
}

func TestACheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := made(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Check(ctx, path), context.Canceled)
}

func TestAFullDiskIsNamedAndPasses(t *testing.T) {
	t.Parallel()
	s, err := OpenGraph(t.Context(), Path(t.TempDir(), "graph", 1))
	require.NoError(t, err)
	defer s.Close()
	limit := func(pages string) {
		rows, err := s.writer.QueryContext(t.Context(), "PRAGMA max_page_count = "+pages)
		require.NoError(t, Each(rows, err, func(*sql.Rows) error { return nil }))
	}
	fill := func() error {
		return s.transact(t.Context(), func() error {
			_, err := s.writer.exec(t.Context(), "INSERT INTO checkpoint (partition, epoch, seq, event, fingerprint, applied, duplicates, halted) VALUES (0, 1, 1, '', ?, 0, 0, '')", string(make([]byte, 1<<20)))
			return err
		})
	}
	limit("1") // no room for more
	err = fill()
	require.ErrorIs(t, err, projection.ErrDisk)
	require.NotErrorIs(t, err, projection.ErrDamaged)
	require.NotContains(t, err.Error(), "rollback", "SQLite has rolled back itself")
	limit("1000000")
	require.NoError(t, fill())
}

func TestADamagedFileIsSetAsideWithItsLogUnderAFreeName(t *testing.T) {
	t.Parallel()
	path := made(t, 1)
	dir := filepath.Dir(path)
	list, err := AllSetAside(dir)
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, os.WriteFile(path+"-wal", []byte("log"), 0o600))
	require.NoError(t, os.WriteFile(path+".damaged-1-wal", []byte("the rest of an interrupted move"), 0o600))

	to, err := SetAside(path)
	require.NoError(t, err)
	require.Equal(t, path+".damaged-2", to)
	require.FileExists(t, to)
	require.FileExists(t, to+"-wal")
	require.NoFileExists(t, path)
	require.NoFileExists(t, path+"-wal")

	s, err := OpenGraph(t.Context(), path)
	require.NoError(t, err)
	_, err = SetAside(path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, s.Close())
	list, err = AllSetAside(dir)
	require.NoError(t, err)
	require.Equal(t, []string{to}, list)

	b, err := NewGenerations(dir).Builds(t.Context(), "graph")
	require.NoError(t, err)
	require.Equal(t, 1, b.Last, "a file set aside is not a generation")
}

func TestADamagedGenerationServesOnlyIfNoneIsBelowIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damaged int
		serving int
	}{"the newer one": {2, 1}, "the older one": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			g := NewGenerations(dir)
			for generation := 1; generation <= 2; generation++ {
				s, err := OpenGraph(t.Context(), Path(dir, "graph", generation))
				require.NoError(t, err)
				require.NoError(t, s.Close())
			}
			require.NoError(t, g.Supersede(t.Context(), "graph", 1, 2))
			spoil(t, Path(dir, "graph", c.damaged), 0, 100)
			b, err := g.Builds(t.Context(), "graph")
			require.NoError(t, err)
			require.Equal(t, c.serving, b.Serving)
			require.NoError(t, os.Remove(Path(dir, "graph", 1)))
			b, err = g.Builds(t.Context(), "graph")
			require.NoError(t, err)
			require.Equal(t, 2, b.Serving)
		})
	}
}

func TestAnEmptyGenerationReplacesADamagedOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := NewGenerations(dir)
	for generation := 3; generation <= 4; generation++ { // 4 is being built
		s, err := OpenGraph(t.Context(), Path(dir, "graph", generation))
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	spoil(t, Path(dir, "graph", 3), 0, 100)
	_, _, err := g.Replace(t.Context(), "graph", 4)
	require.ErrorIs(t, err, projection.ErrSuperseded)
	empty, to, err := g.Replace(t.Context(), "graph", 3)
	require.NoError(t, err)
	require.Equal(t, 5, empty, "a number never used before, so that readers notice")
	require.Equal(t, Path(dir, "graph", 3)+".damaged-1", to)
	b, err := g.Builds(t.Context(), "graph")
	require.NoError(t, err)
	require.Equal(t, projection.Builds{Serving: 5, Others: []int{4}, Last: 5}, b)
	_, err = OpenReader(Path(dir, "graph", 5), GraphCodec)
	require.ErrorIs(t, err, fs.ErrNotExist, "its writer has yet to make the tables")
	cps, err := g.Checkpoints(t.Context(), "graph", 5)
	require.NoError(t, err)
	require.Empty(t, cps)
	s, err := OpenGraph(t.Context(), Path(dir, "graph", 5))
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Acquire(t.Context(), 0, "v1")
	require.NoError(t, err, "it has all tables")
}

func TestADamagedCacheAsksForARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "embedded.db")
	require.NoError(t, os.WriteFile(path, []byte("no database"), 0o600))
	_, err := OpenEmbeddingsCache(t.Context(), path)
	require.ErrorIs(t, err, projection.ErrDamaged)
	require.ErrorContains(t, err, "restart")
	require.NotContains(t, err.Error(), "rebuild")
}
