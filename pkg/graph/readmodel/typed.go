package readmodel

import (
	"context"
	"io"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// Typed is a [Spec] whose stores also have the queries of S.
type Typed[U projection.Unit, S projection.Store[U]] struct {
	Spec[U]
	inSQLite func(*sqlitestore.Store[U]) S
	inNeo4j  func(*neo4jstore.Store[U]) S
}

// Open is [Spec.Open]. On Neo4j it warms the store in the background, if the configuration says so.
func (t *Typed[U, S]) Open(ctx context.Context, at Place, generation int) (S, error) {
	store, err := t.Spec.Open(ctx, at, generation)
	return t.typed(at, store, err)
}

// OpenGeneration opens a generation for reading, as [Spec.OpenReader] opens the one that serves. The
// dynamic type of the Reader is S. On Neo4j it warms the store in the background, if the configuration says so.
func (t *Typed[U, S]) OpenGeneration(ctx context.Context, at Place, generation int) (Reader, error) {
	store, err := t.openReader(ctx, at, generation)
	return t.typed(at, store, err)
}

// typed adds the queries to a store. It warms one on Neo4j if the configuration says so: many clients
// will query it at once, and a server that just started may take half a minute to warm up.
func (t *Typed[U, S]) typed(at Place, store projection.Store[U], err error) (s S, _ error) {
	if err != nil {
		return s, err
	}
	if lite, ok := store.(*sqlitestore.Store[U]); ok {
		return t.inSQLite(lite), nil
	}
	neo := store.(*neo4jstore.Store[U])
	s = t.inNeo4j(neo)
	if queries, ok := any(s).(interface{ Warm(context.Context) error }); ok && at.Neo4j.Warm {
		neo.Background(queries.Warm)
	}
	return s, nil
}

// Reader is one generation of a read model, whatever its queries.
type Reader interface {
	projection.ReadStore
	io.Closer
}

// Opener is a [Typed], whatever its types.
type Opener interface {
	// Name is the name of the projection.
	Name() string
	// Fingerprint identifies the declaration by which a read model was built.
	Fingerprint() string
	// Check returns an error if the declaration is wrong, or [ErrNoCodec].
	Check(backend string) error
	// OpenGeneration opens a generation for reading; see [Typed.OpenGeneration].
	OpenGeneration(ctx context.Context, at Place, generation int) (Reader, error)
	// Compare compares an open store with a replay of the log; see [Spec.Compare].
	Compare(ctx context.Context, log *eventlog.Log, store projection.ReadStore, path string, o Options) (projection.Verification, error)
}
