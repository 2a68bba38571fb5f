package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"mneme/internal/telemetry"
	"mneme/pkg/eventlog"
	"mneme/pkg/files"
	"mneme/pkg/graph"
	"mneme/pkg/projection"
)

// Consumer is a projector with its store: what ingestor and file-tracker run.
type Consumer struct {
	projector projector
	store     projection.ReadStore
	closer    io.Closer
}

// projector is a projection.Projector whatever its unit of work.
type projector interface {
	Name() string
	Start()
	Stop()
	Status() []projection.Status
}

// Parts are what consumers are made of.
type Parts struct {
	Log       *eventlog.Log
	Stores    Stores
	Telemetry *telemetry.Telemetry
	Logger    *slog.Logger
	Share     []projection.Option // how to share partitions with other processes; nothing is not to
}

// Ingestor opens the read model "graph" for writing and makes its projector.
func (p Parts) Ingestor(ctx context.Context) (*Consumer, GraphStore, error) {
	store, err := p.Stores.Graph(ctx, p.Logger)
	if err != nil {
		return nil, nil, err
	}
	c, err := consumer(p, graph.Projection(), store, store)
	return c, store, err
}

// FileTracker opens the read model "files" for writing and makes its projector.
func (p Parts) FileTracker(ctx context.Context) (*Consumer, FilesStore, error) {
	store, err := p.Stores.Files(ctx, p.Logger)
	if err != nil {
		return nil, nil, err
	}
	c, err := consumer(p, graph.FilesProjection(files.DefaultTable()), store, store)
	return c, store, err
}

func consumer[U projection.Unit](p Parts, declared projection.Projection[U], store projection.Store[U], closer io.Closer) (*Consumer, error) {
	projector, err := projection.NewProjector(declared, p.Log, store, p.Logger, slices.Concat(observed(p.Telemetry), []projection.Option{projection.OfGeneration(generation)}, p.Share, p.Stores.options())...)
	if err != nil {
		return nil, errors.Join(err, closer.Close())
	}
	p.Telemetry.Metrics.WatchProjection(p.Log, telemetry.Projection{
		Name: projector.Name(), Model: store, Path: p.Stores.Path(projector.Name()), Statuses: projector.Status,
	})
	return &Consumer{projector: projector, store: store, closer: closer}, nil
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
	return c.closer.Close()
}

// Status reports on each partition.
func (c *Consumer) Status() []projection.Status { return c.projector.Status() }

// Ready is nil if the store answers.
func (c *Consumer) Ready(ctx context.Context) error {
	_, err := c.store.Checkpoints(ctx)
	return err
}
