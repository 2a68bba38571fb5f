package neo4jstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"mneme.dev/mneme/pkg/projection"
)

// firstForeign is above all generations that [Generations] manages. Benchmarks and tests on
// a shared server use greater numbers.
const firstForeign = 1 << 31

// Generations manages the generations of the read models; every key begins with one. A node
// per projection, for example (:GraphServing), records which generation serves and which
// were discarded, so that one transaction decides. Any number of processes may use it at
// once.
type Generations struct {
	*db
	layouts []Layout
}

var _ projection.Generations = (*Generations)(nil)

// OpenGenerations connects. It also works on an empty database. It manages the read models of mneme
// and those whose layouts it is given.
func OpenGenerations(ctx context.Context, c Config, others ...Layout) (*Generations, error) {
	d, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Generations{d, append(ours(), others...)}, nil
}

// Close implements projection.Generations.
func (g *Generations) Close() error { return g.close() }

// serving is the node that says which generation of a projection serves.
type serving struct {
	generation int
	discarded  int   // the highest generation ever discarded; no number up to it is used again
	discarding []int // generations that may still have rows
}

const (
	servingFields = "coalesce(s.generation, 1), coalesce(s.discarded, 0), coalesce(s.discarding, [])"
	selectServing = "MATCH (s:$EngineServing {key: $key}) RETURN " + servingFields
	// The SET takes the lock before anything is read.
	lockServing   = "MERGE (s:$EngineServing {key: $key}) SET s.lock = $key RETURN " + servingFields
	deleteServing = "MATCH (s:$EngineServing {key: $key}) DELETE s"
	saveServing   = "MATCH (s:$EngineServing {key: $key}) SET s.generation = $generation, s.discarded = $discarded, s.discarding = $discarding"

	selectGenerations = "MATCH (k:$EngineCheckpoint) WHERE k.key > '' AND k.generation < $foreign RETURN DISTINCT k.generation"
)

func scanServing(rows [][]any) (s serving, err error) {
	s.generation = projection.FirstGeneration
	if len(rows) == 0 {
		return s, nil
	}
	v := valuesOf(rows[0][:2])
	s.generation, s.discarded = v.int(), v.int()
	list, _ := rows[0][2].([]any)
	for _, one := range list {
		n, _ := one.(int64)
		s.discarding = append(s.discarding, int(n))
	}
	return s, v.err
}

func (s *serving) params(key string) map[string]any {
	discarding := s.discarding
	if discarding == nil {
		discarding = []int{}
	}
	return map[string]any{"key": key, "generation": s.generation, "discarded": s.discarded, "discarding": discarding}
}

// superseded reports whether a generation may no longer be started.
func (s *serving) superseded(generation int) bool {
	return generation < s.generation || generation <= s.discarded && generation != s.generation
}

// change runs a change of the node of a projection in one transaction.
func (g *Generations) change(ctx context.Context, name string, change func(*serving) error) error {
	err := g.inTransaction(ctx, g.WriteTimeout, func(tx neo4j.ManagedTransaction) error {
		do := func(statement string, params map[string]any) ([][]any, error) {
			return run(ctx, labelled(name, statement), func(query string) (neo4j.ResultWithContext, error) { return tx.Run(ctx, query, params) })
		}
		rows, err := do(lockServing, map[string]any{"key": name})
		if err != nil {
			return err
		}
		s, err := scanServing(rows)
		if err != nil {
			return err
		}
		if err := change(&s); err != nil {
			return err
		}
		_, err = do(saveServing, s.params(name))
		return err
	})
	return classify(err)
}

// Builds implements projection.Generations.
func (g *Generations) Builds(ctx context.Context, name string) (projection.Builds, error) {
	rows, err := g.Read(ctx, labelled(name, selectServing), map[string]any{"key": name})
	if err != nil {
		return projection.Builds{}, err
	}
	s, err := scanServing(rows)
	if err != nil {
		return projection.Builds{}, err
	}
	if rows, err = g.Read(ctx, labelled(name, selectGenerations), map[string]any{"foreign": firstForeign}); err != nil {
		return projection.Builds{}, err
	}
	b := projection.Builds{Serving: s.generation, Others: s.discarding, Last: max(s.generation, s.discarded)}
	for _, row := range rows {
		v := valuesOf(row)
		b.Others = append(b.Others, v.int())
		err = errors.Join(err, v.err)
	}
	slices.Sort(b.Others)
	b.Others = slices.DeleteFunc(slices.Compact(b.Others), func(n int) bool { return n == s.generation })
	for _, n := range b.Others {
		b.Last = max(b.Last, n)
	}
	return b, err
}

// Supersede implements projection.Generations.
func (g *Generations) Supersede(ctx context.Context, name string, from, to int) error {
	return g.change(ctx, name, func(s *serving) error {
		if s.generation == to {
			return nil
		}
		if s.generation != from || s.superseded(to) {
			return fmt.Errorf("%w: generation %d of %s can't replace %d: %d serves, and generations up to %d are discarded", projection.ErrSuperseded, to, name, from, s.generation, s.discarded)
		}
		s.generation = to
		return nil
	})
}

// Discard implements projection.Generations. It deletes the checkpoints first, so that
// nobody can write and readers can tell that rows may be missing.
func (g *Generations) Discard(ctx context.Context, name string, generation int) error {
	i := slices.IndexFunc(g.layouts, func(l Layout) bool { return l.Projection == name })
	if i < 0 {
		return fmt.Errorf("discard generation %d of %s: its layout is unknown; pass it to OpenGenerations", generation, name)
	}
	err := g.change(ctx, name, func(s *serving) error {
		if s.generation == generation {
			return fmt.Errorf("discard generation %d of %s: %w", generation, name, projection.ErrServing)
		}
		s.discarded = max(s.discarded, generation)
		if !slices.Contains(s.discarding, generation) {
			s.discarding = append(s.discarding, generation)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := g.remove(ctx, g.layouts[i], generation, gentle); err != nil {
		return err
	}
	return g.change(ctx, name, func(s *serving) error {
		s.discarding = slices.DeleteFunc(s.discarding, func(n int) bool { return n == generation })
		return nil
	})
}

// Checkpoints implements projection.Generations.
func (g *Generations) Checkpoints(ctx context.Context, name string, generation int) ([]projection.Checkpoint, error) {
	s := &store{db: g.db, dialect: dialect{Layout: Layout{Projection: name}}, generation: generation, reader: true}
	return s.Checkpoints(ctx)
}
