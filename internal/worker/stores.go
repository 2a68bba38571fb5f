package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// GraphStore is the read model "graph" in any backend.
type GraphStore interface {
	graph.Store
	io.Closer
}

// FilesStore is the read model "files" in any backend.
type FilesStore interface {
	graph.FilesStore
	io.Closer
}

// SummariesStore is the read model "summaries" in any backend.
type SummariesStore interface {
	summary.Store
	io.Closer
}

// EmbeddingsStore is the read model "embeddings" in any backend.
type EmbeddingsStore interface {
	graph.EmbeddingsStore
	io.Closer
}

// Stores is the location of the read models: files below a data directory, or a Neo4j server.
type Stores struct {
	data        string
	neo4j       *neo4jstore.Config // nil for SQLite
	generations projection.Generations
}

// NewStores returns the location that the settings name.
func NewStores(data string, m settings.Models) Stores {
	s := Stores{data: data}
	if m.Store == "neo4j" {
		s.neo4j = &neo4jstore.Config{
			URI: m.URI, User: m.User, Password: m.Password, Database: m.Database, CAFile: m.CAFile,
			PoolSize: m.PoolSize, ConnectTimeout: m.ConnectTimeout, ReadTimeout: m.ReadTimeout, WriteTimeout: m.WriteTimeout,
		}
		s.generations = &lateGenerations{config: *s.neo4j}
	} else {
		s.generations = sqlitestore.NewGenerations(s.models())
	}
	return s
}

// models returns the directory of the SQLite files.
func (s Stores) models() string { return filepath.Join(s.data, "models") }

// Generations returns the builds of the read models.
func (s Stores) Generations() projection.Generations { return s.generations }

// Close closes the connection of Generations.
func (s Stores) Close() error { return s.generations.Close() }

// Neo4j returns the connection settings of the server, nil for SQLite.
func (s Stores) Neo4j() *neo4jstore.Config { return s.neo4j }

// Backend returns the name of the backend.
func (s Stores) Backend() string {
	if s.neo4j != nil {
		return "neo4j"
	}
	return "sqlite"
}

// Shared reports whether several processes may write to one read model.
func (s Stores) Shared() bool { return s.neo4j != nil }

// options returns the projector options that depend on the backend.
func (s Stores) options() []projection.Option {
	if s.neo4j == nil {
		return nil
	}
	return []projection.Option{projection.BatchOf(neo4jstore.BatchEvents), projection.CostlyTransactions()}
}

// String returns the location for logs.
func (s Stores) String() string {
	if s.neo4j != nil {
		return s.neo4j.URI
	}
	return s.data
}

// Path returns the file of a generation of a projection's read model, "" on Neo4j.
func (s Stores) Path(projection string, generation int) string {
	if s.neo4j != nil {
		return ""
	}
	return sqlitestore.Path(s.models(), projection, generation)
}

// OpenGraph opens a generation of the read model "graph" for writing.
func (s Stores) OpenGraph(ctx context.Context, generation int) (GraphStore, error) {
	if s.neo4j == nil {
		return sqlitestore.OpenGraph(ctx, s.Path("graph", generation))
	}
	return warm(ctx, s, generation, neo4jstore.OpenGraph)
}

// OpenFiles opens a generation of the read model "files" for writing.
func (s Stores) OpenFiles(ctx context.Context, generation int) (FilesStore, error) {
	if s.neo4j == nil {
		return sqlitestore.OpenFiles(ctx, s.Path("files", generation))
	}
	return warm(ctx, s, generation, neo4jstore.OpenFiles)
}

// OpenSummaries opens a generation of the read model "summaries" for writing.
func (s Stores) OpenSummaries(ctx context.Context, generation int) (SummariesStore, error) {
	if s.neo4j == nil {
		return sqlitestore.OpenSummaries(ctx, s.Path("summaries", generation))
	}
	return warm(ctx, s, generation, neo4jstore.OpenSummaries)
}

// OpenEmbeddings opens a generation of the read model "embeddings" for writing.
func (s Stores) OpenEmbeddings(ctx context.Context, generation int) (EmbeddingsStore, error) {
	if s.neo4j == nil {
		return sqlitestore.OpenEmbeddings(ctx, s.Path("embeddings", generation))
	}
	return warm(ctx, s, generation, neo4jstore.OpenEmbeddings)
}

// OpenEmbeddingsCache opens the cache of vectors, which rebuilds keep.
func (s Stores) OpenEmbeddingsCache(ctx context.Context, logger *slog.Logger) (graph.EmbeddingsCache, error) {
	if s.neo4j == nil {
		path := filepath.Join(s.models(), "embedded.db")
		return emptied(logger, path, func() (graph.EmbeddingsCache, error) { return sqlitestore.OpenEmbeddingsCache(ctx, path) })
	}
	return neo4jstore.OpenEmbeddingsCache(ctx, *s.neo4j)
}

// warm opens a Neo4j store and warms it in the background, because many clients will query
// it at once and a server that just started may take half a minute to warm up.
func warm[S interface {
	Warm(ctx context.Context) error
	Background(work func(context.Context) error)
}](ctx context.Context, s Stores, generation int, open func(context.Context, neo4jstore.Config, int) (S, error)) (store S, err error) {
	if store, err = open(ctx, *s.neo4j, generation); err != nil {
		return store, err
	}
	store.Background(store.Warm)
	return store, nil
}

// Serving returns the generation of a projection that serves. If the server is down,
// Serving waits.
func (s Stores) Serving(ctx context.Context, logger *slog.Logger, name string) (int, error) {
	builds, err := WaitFor(ctx, s, logger, func() (projection.Builds, error) { return s.generations.Builds(ctx, name) })
	return builds.Serving, err
}

// WaitFor opens a store as soon as its server is up. While it waits it logs only once a
// minute, so that other log lines stay visible.
func WaitFor[S any](ctx context.Context, s Stores, logger *slog.Logger, open func() (S, error)) (S, error) {
	var said time.Time
	for {
		store, err := open()
		if err == nil {
			if !said.IsZero() {
				logger.Info("Neo4j is available", "uri", s.neo4j.URI)
			}
			return store, nil
		}
		if !errors.Is(err, projection.ErrUnavailable) {
			return store, WithRemedy(err)
		}
		if time.Since(said) > program.SayEvery {
			said = time.Now()
			logger.Warn("waiting for Neo4j: "+Neo4jRemedy(err), "uri", s.neo4j.URI, "error", err)
		}
		select {
		case <-time.After(program.RetryEvery):
		case <-ctx.Done():
			return store, fmt.Errorf("Neo4j at %s never became available: %w", s.neo4j.URI, err)
		}
	}
}

// WithRemedy adds the remedy to an error of Neo4j.
func WithRemedy(err error) error {
	if remedy := Neo4jRemedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// Neo4jRemedy returns what to do about a server that can't be used, "" if the error says it.
func Neo4jRemedy(err error) string {
	switch {
	case errors.Is(err, ErrNotThere):
		return "start mneme up, or the separate programs, with this server: they build the read models from the log"
	case errors.Is(err, neo4jstore.ErrUnauthorized):
		return "correct MNEME_NEO4J_USER and MNEME_NEO4J_PASSWORD"
	case errors.Is(err, neo4jstore.ErrTLS):
		return "set MNEME_NEO4J_CA_FILE to the CA certificate that signed the server's, and MNEME_NEO4J_URI to a host that the server's certificate names"
	case errors.Is(err, neo4jstore.ErrDatabase):
		return "correct MNEME_NEO4J_DATABASE"
	case errors.Is(err, projection.ErrUnavailable):
		return "start it, or correct MNEME_NEO4J_URI, which must begin with bolt+s:// if the server encrypts and with bolt:// if it does not"
	}
	return ""
}

// GraphReader opens a generation of the read model "graph" for reading, or returns
// [ErrNotThere].
func (s Stores) GraphReader(ctx context.Context, generation int) (reader GraphStore, err error) {
	if s.neo4j != nil {
		reader, err = warm(ctx, s, generation, neo4jstore.OpenGraphReader)
		err = WithRemedy(err)
	} else {
		reader, err = sqlitestore.OpenGraphReader(s.Path("graph", generation))
	}
	return reader, notThere("graph", err)
}

// FilesReader opens a generation of the read model "files" for reading, or returns
// [ErrNotThere].
func (s Stores) FilesReader(ctx context.Context, generation int) (reader FilesStore, err error) {
	if s.neo4j != nil {
		reader, err = warm(ctx, s, generation, neo4jstore.OpenFilesReader)
		err = WithRemedy(err)
	} else {
		reader, err = sqlitestore.OpenFilesReader(s.Path("files", generation))
	}
	return reader, notThere("files", err)
}

// SummariesReader opens a generation of the read model "summaries" for reading, or returns
// [ErrNotThere].
func (s Stores) SummariesReader(ctx context.Context, generation int) (reader SummariesStore, err error) {
	if s.neo4j != nil {
		reader, err = warm(ctx, s, generation, neo4jstore.OpenSummariesReader)
		err = WithRemedy(err)
	} else {
		reader, err = sqlitestore.OpenSummariesReader(s.Path("summaries", generation))
	}
	return reader, notThere("summaries", err)
}

// EmbeddingsReader opens a generation of the read model "embeddings" for reading, or returns
// [ErrNotThere].
func (s Stores) EmbeddingsReader(ctx context.Context, generation int) (reader EmbeddingsStore, err error) {
	if s.neo4j != nil {
		reader, err = warm(ctx, s, generation, neo4jstore.OpenEmbeddingsReader)
		err = WithRemedy(err)
	} else {
		reader, err = sqlitestore.OpenEmbeddingsReader(s.Path("embeddings", generation))
	}
	return reader, notThere("embeddings", err)
}

// ErrNotThere means that a read model was not created yet.
var ErrNotThere = errors.New("the read model does not exist yet")

func notThere(name string, err error) error {
	m := readmodel.Find(name)
	program := m.Program
	if m.Needs != "" {
		program += ", with " + m.Needs + ","
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q: %w: is %s running on this data directory?", name, ErrNotThere, program)
	}
	if errors.Is(err, neo4jstore.ErrNotThere) {
		return fmt.Errorf("%q: %w: is %s running on this Neo4j?", name, ErrNotThere, program)
	}
	return err
}
