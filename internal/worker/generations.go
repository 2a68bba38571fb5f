package worker

import (
	"context"
	"sync/atomic"

	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/projection"
)

// lateGenerations connects to Neo4j on first use, and retries on every use until it succeeds. Who asks meanwhile
// connects too: nobody waits longer than for the server.
type lateGenerations struct {
	config neo4jstore.Config
	open   atomic.Pointer[neo4jstore.Generations]
}

func (l *lateGenerations) get(ctx context.Context) (*neo4jstore.Generations, error) {
	if open := l.open.Load(); open != nil {
		return open, nil
	}
	open, err := neo4jstore.OpenGenerations(ctx, l.config)
	if err != nil {
		return nil, err
	}
	for !l.open.CompareAndSwap(nil, open) {
		if first := l.open.Load(); first != nil {
			_ = open.Close()
			return first, nil
		}
	}
	return open, nil
}

// Builds implements projection.Generations.
func (l *lateGenerations) Builds(ctx context.Context, name string) (projection.Builds, error) {
	g, err := l.get(ctx)
	if err != nil {
		return projection.Builds{}, err
	}
	return g.Builds(ctx, name)
}

// Supersede implements projection.Generations.
func (l *lateGenerations) Supersede(ctx context.Context, name string, from, to int) error {
	g, err := l.get(ctx)
	if err != nil {
		return err
	}
	return g.Supersede(ctx, name, from, to)
}

// Discard implements projection.Generations.
func (l *lateGenerations) Discard(ctx context.Context, name string, generation int) error {
	g, err := l.get(ctx)
	if err != nil {
		return err
	}
	return g.Discard(ctx, name, generation)
}

// Checkpoints implements projection.Generations.
func (l *lateGenerations) Checkpoints(ctx context.Context, name string, generation int) ([]projection.Checkpoint, error) {
	g, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return g.Checkpoints(ctx, name, generation)
}

// Close implements projection.Generations.
func (l *lateGenerations) Close() error {
	if open := l.open.Swap(nil); open != nil {
		return open.Close()
	}
	return nil
}
