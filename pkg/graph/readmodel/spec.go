package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// Errors of a declaration, see [Check].
var (
	// ErrTwice: two read models have the same name, and would share files or labels.
	ErrTwice = errors.New("the name is taken")
	// ErrNoCodec: a read model has no codec for the backend.
	ErrNoCodec = errors.New("no codec for this backend")
)

// Place is where read models are: a directory of SQLite files or, if Neo4j is set, a server.
type Place struct {
	Dir   string
	Neo4j *neo4jstore.Config
}

// Backend is "sqlite" or "neo4j".
func (p Place) Backend() string {
	if p.Neo4j != nil {
		return "neo4j"
	}
	return "sqlite"
}

// Spec declares a read model.
type Spec[U projection.Unit] struct {
	Projection projection.Projection[U]
	SQLite     *sqlitestore.Codec[U] // nil if it can't be kept in SQLite
	Neo4j      *neo4jstore.Codec[U]  // nil if it can't be kept in Neo4j
}

// Model is a [Spec], whatever its unit.
type Model interface {
	Name() string
	// Fingerprint identifies the declaration by which a read model was built.
	Fingerprint() string
	// Check returns an error if the declaration is wrong, or [ErrNoCodec].
	Check(backend string) error
	// Run drives the read model until ctx ends; see [Spec.Run].
	Run(ctx context.Context, log *eventlog.Log, at Place, o Options) error
	// Rebuild builds a new generation from the log and makes it serve; see [Spec.Rebuild].
	Rebuild(ctx context.Context, log *eventlog.Log, at Place, o Options) error
	// Verify compares the read model with a replay of the log.
	Verify(ctx context.Context, log *eventlog.Log, at Place, o Options) (projection.Verification, error)
	// Status returns the position on each partition.
	Status(ctx context.Context, log *eventlog.Log, at Place) ([]projection.Status, error)
	// Failed lists failed events.
	Failed(ctx context.Context, at Place, q projection.FailedQuery) ([]projection.Failed, error)

	layout() *neo4jstore.Layout // nil without a codec for Neo4j
}

// Name is the name of the projection.
func (s *Spec[U]) Name() string { return s.Projection.Name }

// Fingerprint is that of the projection.
func (s *Spec[U]) Fingerprint() string { return s.Projection.Fingerprint() }

// Check returns an error if the declaration is wrong: for example if it reduces an event type that
// does not exist, a codec has another name, or there is none for the backend ([ErrNoCodec]).
func (s *Spec[U]) Check(backend string) error {
	if err := s.Projection.Validate(); err != nil {
		return err
	}
	names := map[string]string{}
	if s.SQLite != nil {
		names["sqlite"] = s.SQLite.Projection
	}
	if s.Neo4j != nil {
		names["neo4j"] = s.Neo4j.Projection
	}
	for _, of := range []string{"neo4j", "sqlite"} {
		if name, ok := names[of]; ok && name != s.Name() {
			return fmt.Errorf("read model %s: its codec for %s is named %q; give both the same name", s.Name(), of, name)
		}
	}
	if _, ok := names[backend]; !ok {
		return fmt.Errorf("read model %s: %w: %s; add one to its Spec, or use another backend", s.Name(), ErrNoCodec, backend)
	}
	return nil
}

func (s *Spec[U]) layout() *neo4jstore.Layout {
	if s.Neo4j == nil {
		return nil
	}
	return &s.Neo4j.Layout
}

// Check returns an error if read models can't be kept in one place: [ErrTwice] if two have the same
// name or one has that of a read model of mneme, [ErrNoCodec], or the mistake in a declaration. On
// Neo4j, two read models must not share a label.
func Check(at Place, models ...Model) error {
	var layouts []neo4jstore.Layout
	for i, m := range models {
		if err := m.Check(at.Backend()); err != nil {
			return err
		}
		same := func(other Model) bool { return other.Name() == m.Name() }
		if slices.ContainsFunc(models[:i], same) || slices.Contains(Names(), m.Name()) {
			return fmt.Errorf("read model %s: %w; choose another name", m.Name(), ErrTwice)
		}
		if at.Neo4j != nil {
			layouts = append(layouts, *m.layout())
		}
	}
	return neo4jstore.CheckLayouts(layouts...)
}

// Open opens a generation for writing, and creates it if it does not exist. It returns the errors of
// the backend's Open, or [ErrNoCodec].
func (s *Spec[U]) Open(ctx context.Context, at Place, generation int) (projection.Store[U], error) {
	if err := s.Check(at.Backend()); err != nil {
		return nil, err
	}
	if at.Neo4j != nil {
		return orNil[U](neo4jstore.Open(ctx, *at.Neo4j, generation, *s.Neo4j))
	}
	return orNil[U](sqlitestore.Open(ctx, sqlitestore.Path(at.Dir, s.Name(), generation), *s.SQLite))
}

// orNil keeps a nil pointer from becoming a Store that is not nil.
func orNil[U projection.Unit, S projection.Store[U]](store S, err error) (projection.Store[U], error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

// OpenReader opens the serving generation for reading. Until a writer has made it, the error is
// fs.ErrNotExist or neo4jstore.ErrNotThere.
//
// The store stays on its generation. After a rebuild another one serves, and [Spec.Run] removes this
// one when [Options].Keep is over. A long-lived reader therefore compares generation with Serving of
// Builds, from [Spec.Generations], more often than that, and opens a new store when they differ.
func (s *Spec[U]) OpenReader(ctx context.Context, at Place) (store projection.Store[U], generation int, err error) {
	if generation, err = s.serving(ctx, at); err != nil {
		return nil, 0, err
	}
	store, err = s.openReader(ctx, at, generation)
	return store, generation, err
}

// serving returns the generation that serves.
func (s *Spec[U]) serving(ctx context.Context, at Place) (int, error) {
	generations, err := s.Generations(ctx, at)
	if err != nil {
		return 0, err
	}
	builds, err := generations.Builds(ctx, s.Name())
	return builds.Serving, errors.Join(err, generations.Close())
}

func (s *Spec[U]) openReader(ctx context.Context, at Place, generation int) (projection.Store[U], error) {
	if at.Neo4j != nil {
		return orNil[U](neo4jstore.OpenReader(ctx, *at.Neo4j, generation, *s.Neo4j))
	}
	return orNil[U](sqlitestore.OpenReader(sqlitestore.Path(at.Dir, s.Name(), generation), *s.SQLite))
}

// Generations returns the builds of the read model. The caller closes them.
func (s *Spec[U]) Generations(ctx context.Context, at Place) (projection.Generations, error) {
	if err := s.Check(at.Backend()); err != nil {
		return nil, err
	}
	if at.Neo4j != nil {
		return neo4jstore.OpenGenerations(ctx, *at.Neo4j, s.Neo4j.Layout)
	}
	return sqlitestore.NewGenerations(at.Dir), nil
}

func (s *Spec[U]) build(at Place, generation int) projection.Build {
	return projection.Build{Store: at.Backend(), Projection: s.Name(), Generation: generation}
}
