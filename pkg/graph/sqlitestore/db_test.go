package sqlitestore

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
)

// Such as the shell of SQLite, which takes no lock of ours. The start of a program does not wait for it.
func TestAFileThatAnotherProgramWritesIsOpened(t *testing.T) {
	t.Parallel()
	path := Path(t.TempDir(), "graph", 1)
	made, err := OpenGraph(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, made.Close())
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	other, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)

	opened, err := OpenGraph(t.Context(), path)
	require.NoError(t, err)
	defer opened.Close()
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	var wait int
	require.NoError(t, opened.writer.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&wait))
	require.Equal(t, 10_000, wait, "a batch waits for others")
}

func TestAFileHasOneWriter(t *testing.T) {
	t.Parallel()
	path := Path(t.TempDir(), "graph", 1)
	first, err := OpenGraph(t.Context(), path)
	require.NoError(t, err)
	_, err = OpenGraph(t.Context(), path)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, path)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "twice")
	second, err := OpenGraph(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

func TestAFileOfAnotherVersionNeedsARebuild(t *testing.T) {
	t.Parallel()
	path := Path(t.TempDir(), "files", 1)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 99")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = OpenFiles(t.Context(), path)
	require.ErrorIs(t, err, projection.ErrRebuild)
	require.ErrorContains(t, err, "move "+filepath.Join(filepath.Dir(path), "*-[0-9]*.db*")+" away")
	matches, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*-[0-9]*.db*"))
	require.NoError(t, err)
	require.Contains(t, matches, path)
	_, err = OpenReader(path, FilesCodec)
	require.ErrorIs(t, err, projection.ErrRebuild)
}

func TestAReaderSeesWhatTheWriterCommits(t *testing.T) {
	t.Parallel()
	path := Path(filepath.Join(t.TempDir(), "a dir?with#odd%41 names"), "graph", 1)
	_, err := OpenReader(path, GraphCodec)
	require.ErrorIs(t, err, fs.ErrNotExist)
	writer, err := OpenGraph(t.Context(), path)
	require.NoError(t, err)
	require.FileExists(t, path)
	opened, err := OpenReader(path, GraphCodec)
	require.NoError(t, err)
	reader := &Graph{opened}
	defer reader.Close()

	h := storetest.NewHistory()
	h.Add("c", &events.ConversationStarted{Title: "one"})
	cp, err := writer.Acquire(t.Context(), 0, graphProjection.Fingerprint())
	require.NoError(t, err)
	_, err = graphProjection.Apply(t.Context(), writer, cp, h.Messages)
	require.NoError(t, err)
	title := func(s *Graph) string {
		c, err := s.Conversation(t.Context(), events.ConversationID{Tenant: "t", ID: "c"}, graph.Latest)
		require.NoError(t, err)
		return c.Title
	}
	require.Equal(t, "one", title(reader))
	_, err = reader.Acquire(t.Context(), 0, "x")
	require.ErrorContains(t, err, "read-only")

	// After its writer has closed, new readers can still read the file.
	require.NoError(t, writer.Close())
	require.Equal(t, "one", title(reader))
	require.NoError(t, reader.Close())
	opened, err = OpenReader(path, GraphCodec)
	require.NoError(t, err)
	again := &Graph{opened}
	require.Equal(t, "one", title(again))
	require.NoError(t, again.Close())
}

func TestAClosedStoreSaysSo(t *testing.T) {
	t.Parallel()
	s, err := OpenGraph(t.Context(), Path(t.TempDir(), "graph", 1))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = s.Acquire(t.Context(), 0, "x")
	require.ErrorContains(t, err, "is closed")
	_, err = s.CountFailed(t.Context())
	require.ErrorContains(t, err, "is closed")
}

func TestCloseWaitsForReads(t *testing.T) {
	t.Parallel()
	s, err := OpenGraph(t.Context(), Path(t.TempDir(), "graph", 1))
	require.NoError(t, err)
	reading, closed := make(chan struct{}), make(chan error, 1)
	err = s.Snapshot(t.Context(), func(q Queryer) error {
		go func() {
			close(reading)
			closed <- s.Close()
		}()
		<-reading
		select {
		case <-closed:
			return os.ErrClosed
		case <-time.After(20 * time.Millisecond):
		}
		rows, err := q("SELECT count(*) FROM message")
		return Each(rows, err, func(*sql.Rows) error { return nil })
	})
	require.NoError(t, err)
	require.NoError(t, <-closed)
}

func TestReadersWaitForAFreeConnection(t *testing.T) {
	t.Parallel()
	s, err := OpenGraph(t.Context(), Path(t.TempDir(), "graph", 1))
	require.NoError(t, err)
	defer s.Close()
	release, held := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	for range readers {
		go func() {
			done <- s.Snapshot(t.Context(), func(q Queryer) error {
				held <- struct{}{}
				<-release
				rows, err := q("SELECT count(*) FROM failed") // prepared while all connections are taken
				return Each(rows, err, func(*sql.Rows) error { return nil })
			})
		}()
	}
	for range readers {
		<-held
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.CountFailed(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(release)
	for range readers {
		require.NoError(t, <-done)
	}
	_, err = s.CountFailed(t.Context())
	require.NoError(t, err)
}

func TestAReadSeesOneStateOfTheFile(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	s.everything("c")
	s.apply(t)
	count := func(q Queryer) (n int) {
		rows, err := q("SELECT count(*) FROM message")
		require.NoError(t, Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&n) }))
		return n
	}
	require.NoError(t, s.graph.Snapshot(t.Context(), func(q Queryer) error {
		before := count(q)
		s.everything("c")
		s.apply(t)
		require.Equal(t, before, count(q))
		return nil
	}))
}

func TestOnlyItsUserCanReadAReadModel(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "models")
	g, err := OpenGraph(t.Context(), Path(dir, "graph", 1))
	require.NoError(t, err)
	require.NoError(t, g.Close())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
