package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/projection"
)

// neo4jBackend keeps read models in separate generations on a server that others may use too.
type neo4jBackend struct {
	config     neo4jstore.Config
	driver     neo4j.DriverWithContext
	version    string
	generation int
}

func newNeo4jBackend(ctx context.Context, c neo4jstore.Config) (*neo4jBackend, error) {
	generation := ownGeneration()
	store, err := neo4jstore.OpenGraph(ctx, c, generation) // makes the schema
	if err != nil {
		return nil, err
	}
	b := &neo4jBackend{config: c, version: store.ServerVersion(), generation: generation}
	if err := store.Close(); err != nil {
		return nil, err
	}
	b.driver, err = neo4jstore.NewDriver(c)
	return b, err
}

// ownGeneration returns a generation that nobody else uses: programs use small numbers.
func ownGeneration() int { return 1<<40 + int(rand.Int32()) }

func (b *neo4jBackend) store() Store { return Store{"neo4j", b.version} }

func (b *neo4jBackend) graph(ctx context.Context, log *eventlog.Log, head uint64) (took time.Duration, ends []uint64, err error) {
	store, err := neo4jstore.OpenGraph(ctx, b.config, b.generation)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = store.Close() }()
	return apply(ctx, log, graph.Projection(), store, head, projection.BatchOf(neo4jstore.BatchEvents), projection.CostlyTransactions())
}

func (b *neo4jBackend) files(ctx context.Context, log *eventlog.Log, head uint64) (time.Duration, error) {
	store, err := neo4jstore.OpenFiles(ctx, b.config, b.generation)
	if err != nil {
		return 0, err
	}
	defer func() { _ = store.Close() }()
	took, _, err := apply(ctx, log, graph.FilesProjection(files.DefaultTable()), store, head, projection.BatchOf(neo4jstore.BatchEvents), projection.CostlyTransactions())
	return took, err
}

// load reads the rows of the engine's generation, removes them, and writes them again. It then
// releases the rows, as the SQLite loader does.
func (b *neo4jBackend) load(ctx context.Context, ends []uint64) (time.Duration, error) {
	defer runtime.GC()
	rows, err := b.read(ctx)
	if err != nil {
		return 0, err
	}
	if err := b.clear(ctx); err != nil {
		return 0, err
	}
	runtime.GC()
	// A loader that reads its rows as it goes has no such heap to collect.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	session := b.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: b.config.Database, AccessMode: neo4j.AccessModeWrite})
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	return rows.load(context.WithoutCancel(ctx), session, ends)
}

// clear removes the generation.
func (b *neo4jBackend) clear(ctx context.Context) error {
	return remove(ctx, b.config, b.generation)
}

// remove removes a generation, even if the measurement was interrupted.
func remove(ctx context.Context, c neo4jstore.Config, generation int) error {
	if err := neo4jstore.Remove(context.WithoutCancel(ctx), c, generation); err != nil {
		return fmt.Errorf("generation %d of the measurement is still in %s: %w", generation, c.URI, err)
	}
	return nil
}

func (b *neo4jBackend) query(ctx context.Context, statement string, params map[string]any) ([]*neo4j.Record, error) {
	result, err := neo4j.ExecuteQuery(ctx, b.driver, statement, params, neo4j.EagerResultTransformer, neo4j.ExecuteQueryWithDatabase(b.config.Database))
	if err != nil {
		return nil, err
	}
	return result.Records, nil
}

func (b *neo4jBackend) close() { _ = b.driver.Close(context.Background()) }
