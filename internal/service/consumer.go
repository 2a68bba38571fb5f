package service

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"

	"mneme/internal/telemetry"
	"mneme/pkg/eventlog"
	"mneme/pkg/files"
	"mneme/pkg/graph"
	"mneme/pkg/graph/sqlitestore"
	"mneme/pkg/projection"
)

// generation is the build of each read model that is written and read.
const generation = 1

// ModelPath is the file of a projection's read model below a data directory.
func ModelPath(data, projection string) string {
	return sqlitestore.Path(filepath.Join(data, "models"), projection, generation)
}

// Consumer is a projector with its store: what ingestor and file-tracker run.
type Consumer struct {
	projector projector
	store     interface {
		projection.ReadStore
		io.Closer
	}
}

// projector is a projection.Projector whatever its unit of work.
type projector interface {
	Name() string
	Start()
	Stop()
	Status() []projection.Status
}

// NewIngestor opens the read model "graph" for writing and makes its projector.
func NewIngestor(ctx context.Context, log *eventlog.Log, data string, t *telemetry.Telemetry, logger *slog.Logger) (*Consumer, *sqlitestore.Graph, error) {
	store, err := sqlitestore.OpenGraph(ctx, ModelPath(data, "graph"))
	if err != nil {
		return nil, nil, err
	}
	p, err := projection.NewProjector(graph.Projection(), log, store, logger, observed(t)...)
	if err != nil {
		return nil, nil, err
	}
	t.Metrics.WatchProjection(log, telemetry.Projection{Name: p.Name(), Model: store, Path: ModelPath(data, "graph"), Statuses: p.Status})
	return &Consumer{projector: p, store: store}, store, nil
}

// NewFileTracker opens the read model "files" for writing and makes its projector.
func NewFileTracker(ctx context.Context, log *eventlog.Log, data string, t *telemetry.Telemetry, logger *slog.Logger) (*Consumer, *sqlitestore.Files, error) {
	store, err := sqlitestore.OpenFiles(ctx, ModelPath(data, "files"))
	if err != nil {
		return nil, nil, err
	}
	p, err := projection.NewProjector(graph.FilesProjection(files.DefaultTable()), log, store, logger, observed(t)...)
	if err != nil {
		return nil, nil, err
	}
	t.Metrics.WatchProjection(log, telemetry.Projection{Name: p.Name(), Model: store, Path: ModelPath(data, "files"), Statuses: p.Status})
	return &Consumer{projector: p, store: store}, store, nil
}

// observed are a projector's options by which its telemetry sees it.
func observed(t *telemetry.Telemetry) []projection.Option {
	return []projection.Option{projection.OnBatch(t.Metrics.Applied), projection.WithTracer(t.Tracer("mneme/pkg/projection"))}
}

// Start begins to follow the log.
func (c *Consumer) Start() { c.projector.Start() }

// Stop finishes the batch in hand and closes the store.
func (c *Consumer) Stop() error {
	c.projector.Stop()
	return c.store.Close()
}

// Status reports on each partition.
func (c *Consumer) Status() []projection.Status { return c.projector.Status() }

// Ready is nil if the store answers.
func (c *Consumer) Ready(ctx context.Context) error {
	_, err := c.store.Checkpoints(ctx)
	return err
}
