package service

import (
	"context"
	"io"
	"log/slog"

	"mneme/internal/telemetry"
	"mneme/pkg/eventlog"
	"mneme/pkg/files"
	"mneme/pkg/graph"
	"mneme/pkg/projection"
)

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
func NewIngestor(ctx context.Context, log *eventlog.Log, stores Stores, t *telemetry.Telemetry, logger *slog.Logger) (*Consumer, GraphStore, error) {
	store, err := stores.Graph(ctx, logger)
	if err != nil {
		return nil, nil, err
	}
	p, err := projection.NewProjector(graph.Projection(), log, store, logger, observed(t)...)
	if err != nil {
		return nil, nil, err
	}
	t.Metrics.WatchProjection(log, telemetry.Projection{Name: p.Name(), Model: store, Path: stores.Path("graph"), Statuses: p.Status})
	return &Consumer{projector: p, store: store}, store, nil
}

// NewFileTracker opens the read model "files" for writing and makes its projector.
func NewFileTracker(ctx context.Context, log *eventlog.Log, stores Stores, t *telemetry.Telemetry, logger *slog.Logger) (*Consumer, FilesStore, error) {
	store, err := stores.Files(ctx, logger)
	if err != nil {
		return nil, nil, err
	}
	p, err := projection.NewProjector(graph.FilesProjection(files.DefaultTable()), log, store, logger, observed(t)...)
	if err != nil {
		return nil, nil, err
	}
	t.Metrics.WatchProjection(log, telemetry.Projection{Name: p.Name(), Model: store, Path: stores.Path("files"), Statuses: p.Status})
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
