package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// ErrInUse means that the Neo4j server holds the read models of another mneme, which the measured
// program would continue to use.
var ErrInUse = errors.New("the Neo4j server holds the read models of another mneme; measure on an empty server")

// Program is the program mneme and the store for its read models.
type Program struct {
	Executable string
	Neo4j      *neo4jstore.Config // nil for SQLite below its data directory
}

// take makes sure that nobody else's read models are where the program will write. The caller must
// then call [Program.giveBack].
func (p Program) take(ctx context.Context) (store Store, err error) {
	if p.Neo4j == nil {
		return Store{"sqlite", sqliteVersion()}, nil
	}
	generations, err := neo4jstore.OpenGenerations(ctx, *p.Neo4j)
	if err != nil {
		return store, err
	}
	defer func() { _ = generations.Close() }()
	for _, name := range readmodel.Names() {
		builds, err := generations.Builds(ctx, name)
		if err != nil {
			return store, err
		}
		if builds.Serving != projection.FirstGeneration {
			return store, fmt.Errorf("%w (%s)", ErrInUse, p.Neo4j.URI)
		}
	}
	graph, err := neo4jstore.OpenGraph(ctx, *p.Neo4j, projection.FirstGeneration)
	if err != nil {
		return store, err
	}
	defer func() { _ = graph.Close() }()
	files, err := neo4jstore.OpenFiles(ctx, *p.Neo4j, projection.FirstGeneration)
	if err != nil {
		return store, err
	}
	defer func() { _ = files.Close() }()
	for _, model := range []interface {
		Checkpoints(context.Context) ([]projection.Checkpoint, error)
	}{graph, files} {
		list, err := model.Checkpoints(ctx)
		if err != nil {
			return store, err
		}
		if len(list) > 0 {
			return store, fmt.Errorf("%w (%s)", ErrInUse, p.Neo4j.URI)
		}
	}
	return Store{"neo4j", graph.ServerVersion()}, nil
}

// giveBack removes what the program has written; the program must have ended. Files go with their
// directory. It joins its error to the one given.
func (p Program) giveBack(ctx context.Context, err error) error {
	if p.Neo4j == nil {
		return err
	}
	return errors.Join(err, neo4jstore.Reset(context.WithoutCancel(ctx), *p.Neo4j))
}

// environment returns the settings for the program's store.
func (p Program) environment() []string {
	n := p.Neo4j
	if n == nil {
		return append(os.Environ(), "MNEME_STORE=sqlite")
	}
	return append(os.Environ(), "MNEME_STORE=neo4j", "MNEME_NEO4J_URI="+n.URI, "MNEME_NEO4J_USER="+n.User, "MNEME_NEO4J_PASSWORD="+n.Password,
		"MNEME_NEO4J_DATABASE="+n.Database, "MNEME_NEO4J_CA_FILE="+n.CAFile, "MNEME_NEO4J_CERT_FILE="+n.CertFile, "MNEME_NEO4J_KEY_FILE="+n.KeyFile, "MNEME_NEO4J_POOL_SIZE="+strconv.Itoa(n.PoolSize),
		"MNEME_NEO4J_CONNECT_TIMEOUT="+n.ConnectTimeout.String(), "MNEME_NEO4J_READ_TIMEOUT="+n.ReadTimeout.String(), "MNEME_NEO4J_WRITE_TIMEOUT="+n.WriteTimeout.String())
}
