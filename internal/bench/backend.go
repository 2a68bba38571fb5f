package bench

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Store describes where the read models of a measurement were.
type Store struct {
	Name    string `json:"name"` // sqlite or neo4j
	Version string `json:"version"`
}

func (s Store) String() string { return s.Name + " " + s.Version }

// backend stores read models. It always writes into an empty one.
type backend interface {
	store() Store
	// graph applies the whole log with the engine, and returns the sequences at which the engine's
	// transactions ended.
	graph(ctx context.Context, log *eventlog.Log, head uint64) (took time.Duration, ends []uint64, err error)
	// files does the same for the file tracker.
	files(ctx context.Context, log *eventlog.Log, head uint64) (time.Duration, error)
	// load writes the rows of the last graph call, without an engine.
	load(ctx context.Context, ends []uint64) (time.Duration, error)
	// clear removes everything written.
	clear(ctx context.Context) error
	// close ends connections.
	close()
}

// newBackend returns Neo4j, or SQLite in a directory.
func newBackend(ctx context.Context, dir string, on *neo4jstore.Config) (backend, error) {
	if on != nil {
		return newNeo4jBackend(ctx, *on)
	}
	return &sqliteBackend{dir: filepath.Join(dir, "models")}, nil
}

// sqliteBackend keeps read models in files.
type sqliteBackend struct{ dir string }

func (b *sqliteBackend) path(name string) string { return filepath.Join(b.dir, name+".db") }

func (b *sqliteBackend) store() Store { return Store{"sqlite", sqliteVersion()} }

// sqliteVersion returns the version of this program's SQLite library.
func sqliteVersion() (version string) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return ""
	}
	defer func() { _ = db.Close() }()
	_ = db.QueryRow("SELECT sqlite_version()").Scan(&version)
	return version
}

func (b *sqliteBackend) graph(ctx context.Context, log *eventlog.Log, head uint64) (took time.Duration, ends []uint64, err error) {
	store, err := sqlitestore.OpenGraph(ctx, b.path("graph"))
	if err != nil {
		return 0, nil, err
	}
	return applyAndClose(ctx, log, graph.Projection(), store.Store, head, nil)
}

func (b *sqliteBackend) files(ctx context.Context, log *eventlog.Log, head uint64) (time.Duration, error) {
	store, err := sqlitestore.OpenFiles(ctx, b.path("files"))
	if err != nil {
		return 0, err
	}
	took, _, err := applyAndClose(ctx, log, graph.FilesProjection(files.DefaultTable()), store.Store, head, nil)
	return took, err
}

// statements applies the whole log with each projection and times its statements.
func (b *sqliteBackend) statements(ctx context.Context, log *eventlog.Log, head uint64) (map[string]Statements, error) {
	g, err := sqlitestore.Open(ctx, b.path("graph-timed"), sqlitestore.GraphCodec)
	if err != nil {
		return nil, err
	}
	f, err := sqlitestore.Open(ctx, b.path("files-timed"), sqlitestore.FilesCodec)
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	s, err := sqlitestore.Open(ctx, b.path("summaries-timed"), sqlitestore.SummariesCodec)
	if err != nil {
		return nil, errors.Join(err, g.Close(), f.Close())
	}
	out := map[string]Statements{}
	return out, errors.Join(
		timed(ctx, log, graph.Projection(), g, head, out),
		timed(ctx, log, graph.FilesProjection(files.DefaultTable()), f, head, out),
		timed(ctx, log, summary.Projection(), s, head, out))
}

func timed[U projection.Unit](ctx context.Context, log *eventlog.Log, p projection.Projection[U], store *sqlitestore.Store[U], head uint64, out map[string]Statements) error {
	var m sqlitestore.Meter
	took, _, err := applyAndClose(ctx, log, p, store, head, &m)
	out[p.Name] = Statements{took, m.Statements()}
	return err
}

// applyAndClose applies the whole log to an empty store and closes it. The meter may be nil.
func applyAndClose[U projection.Unit](ctx context.Context, log *eventlog.Log, p projection.Projection[U], store *sqlitestore.Store[U], head uint64, m *sqlitestore.Meter) (took time.Duration, ends []uint64, err error) {
	defer func() { err = errors.Join(err, store.Close()) }()
	store.Measure(m)
	return apply(ctx, log, p, store, head)
}

func (b *sqliteBackend) load(ctx context.Context, ends []uint64) (time.Duration, error) {
	return loadOnce(ctx, ends, b.path("graph"), b.path("bare"))
}

func (b *sqliteBackend) clear(context.Context) error { return os.RemoveAll(b.dir) }

func (b *sqliteBackend) close() {}
