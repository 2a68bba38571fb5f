package worker

import (
	"context"
	"errors"
	"fmt"
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
)

// Stores is the location of the read models: files below a data directory, or a Neo4j server.
type Stores struct {
	data        string
	place       readmodel.Place
	generations projection.Generations
}

// NewStores returns the location that the settings name.
func NewStores(data string, m settings.Models) Stores {
	s := Stores{data: data, place: readmodel.Place{Dir: filepath.Join(data, "models")}}
	if m.Store == "neo4j" {
		s.place.Neo4j = &neo4jstore.Config{
			URI: m.URI, User: m.User, Password: m.Password, Database: m.Database, CAFile: m.CAFile, CertFile: m.CertFile, KeyFile: m.KeyFile,
			PoolSize: m.PoolSize, ConnectTimeout: m.ConnectTimeout, ReadTimeout: m.ReadTimeout, WriteTimeout: m.WriteTimeout, Warm: m.Warm,
		}
		s.generations = &lateGenerations{config: *s.place.Neo4j}
	} else {
		s.generations = sqlitestore.NewGenerations(s.place.Dir)
	}
	return s
}

// Generations returns the builds of the read models.
func (s Stores) Generations() projection.Generations { return s.generations }

// Close closes the connection of Generations.
func (s Stores) Close() error { return s.generations.Close() }

// Neo4j returns the connection settings of the server, nil for SQLite.
func (s Stores) Neo4j() *neo4jstore.Config { return s.place.Neo4j }

// Backend returns the name of the backend.
func (s Stores) Backend() string { return s.place.Backend() }

// Shared reports whether several processes may write to one read model.
func (s Stores) Shared() bool { return s.place.Neo4j != nil }

// options returns the projector options that depend on the backend.
func (s Stores) options() []projection.Option {
	if s.place.Neo4j == nil {
		return nil
	}
	return []projection.Option{projection.BatchOf(neo4jstore.BatchEvents), projection.CostlyTransactions()}
}

// String returns the location for logs.
func (s Stores) String() string {
	if s.place.Neo4j != nil {
		return s.place.Neo4j.URI
	}
	return s.data
}

// Path returns the file of a generation of a projection's read model, "" on Neo4j.
func (s Stores) Path(projection string, generation int) string {
	if s.place.Neo4j != nil {
		return ""
	}
	return sqlitestore.Path(s.place.Dir, projection, generation)
}

// OpenEmbeddingsCache opens the cache of vectors, which rebuilds keep.
func (s Stores) OpenEmbeddingsCache(ctx context.Context, logger *slog.Logger) (graph.EmbeddingsCache, error) {
	if s.place.Neo4j == nil {
		path := filepath.Join(s.place.Dir, "embedded.db")
		return emptied(logger, path, func() (graph.EmbeddingsCache, error) { return sqlitestore.OpenEmbeddingsCache(ctx, path) })
	}
	return neo4jstore.OpenEmbeddingsCache(ctx, *s.place.Neo4j)
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
				logger.Info("Neo4j is available", "uri", s.place.Neo4j.URI)
			}
			return store, nil
		}
		if !errors.Is(err, projection.ErrUnavailable) {
			return store, WithRemedy(err)
		}
		if time.Since(said) > program.SayEvery {
			said = time.Now()
			logger.Warn("waiting for Neo4j: "+Neo4jRemedy(err), "uri", s.place.Neo4j.URI, "error", err)
		}
		select {
		case <-time.After(program.RetryEvery):
		case <-ctx.Done():
			return store, fmt.Errorf("Neo4j at %s %w: %w", s.place.Neo4j.URI, program.ErrNeverAvailable, err)
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
		return "begin MNEME_NEO4J_URI with bolt:// if the server does not encrypt; else set MNEME_NEO4J_CA_FILE to the CA certificate that signed the server's, and MNEME_NEO4J_URI to a host that the server's certificate names; a server that requires a client certificate needs MNEME_NEO4J_CERT_FILE and MNEME_NEO4J_KEY_FILE"
	case errors.Is(err, neo4jstore.ErrDatabase):
		return "correct MNEME_NEO4J_DATABASE"
	case errors.Is(err, projection.ErrUnavailable):
		return "start Neo4j, or correct MNEME_NEO4J_URI, which must begin with bolt+s:// if the server encrypts and with bolt:// if it does not"
	}
	return ""
}

// OpenReader opens a generation of a read model for reading, or returns [ErrNotThere].
func (s Stores) OpenReader(ctx context.Context, m readmodel.Info, generation int) (readmodel.Reader, error) {
	store, err := m.Of().OpenGeneration(ctx, s.place, generation)
	if err == nil {
		return store, nil
	}
	program := m.Program
	if m.Needs != "" {
		program += ", with " + m.Needs + ","
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%q: %w: is %s running on this data directory?", m.Name, ErrNotThere, program)
	case errors.Is(err, neo4jstore.ErrNotThere):
		return nil, fmt.Errorf("%q: %w: is %s running on this Neo4j?", m.Name, ErrNotThere, program)
	case s.place.Neo4j != nil:
		err = WithRemedy(err)
	}
	return nil, err
}

// ErrNotThere means that a read model has not been created yet.
var ErrNotThere = errors.New("the read model does not exist yet")
