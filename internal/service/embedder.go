package service

import (
	"context"
	"errors"

	"mneme.dev/mneme/internal/indexes"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall/endpoint"
)

// embedBatch is how many events are embedded before their vectors are written: some calls
// of the endpoint, so that how far it has come is seen.
const embedBatch = 256

// Embedder is the projection "embeddings", which has an endpoint embed the messages.
type Embedder struct {
	*Consumer[*graph.EmbeddingsUnit, EmbeddingsStore]
	cache graph.EmbeddingsCache
}

// Embedder opens the read model "embeddings" for writing and makes its projector.
func (p Parts) Embedder(ctx context.Context, c endpoint.Config) (_ *Embedder, err error) {
	e := &Embedder{}
	if e.cache, err = waitFor(ctx, p.Stores, p.Logger, func() (graph.EmbeddingsCache, error) { return p.Stores.openEmbeddingsCache(ctx, p.Logger) }); err != nil {
		return nil, err
	}
	model, err := endpoint.New(c, e.cache)
	if err == nil {
		e.Consumer, err = newConsumer(ctx, p, graph.EmbeddingsProjection(model), p.Stores.openEmbeddings, projection.BatchOf(embedBatch))
	}
	if err != nil {
		return nil, errors.Join(err, e.cache.Close())
	}
	p.Telemetry.Metrics.WatchEmbeddings(func() telemetry.Embeddings { return telemetry.Embeddings(model.Stats()) })
	return e, nil
}

// Stop finishes the batches in hand and closes the stores.
func (e *Embedder) Stop() error { return errors.Join(e.Consumer.Stop(), e.cache.Close()) }

// remote is the model of an endpoint for searches.
type remote struct {
	*endpoint.Embedder
	minCosine float64
}

// MinCosine implements indexes.Embedder.
func (r remote) MinCosine() float64 { return r.minCosine }

// embedderOf is what searches embed their queries with, nil for nothing.
func embedderOf(s settings.Embedding) (indexes.Embedder, error) {
	if c, ok := s.Endpoint(); ok {
		model, err := endpoint.New(c, nil)
		return remote{model, s.EmbeddingsMinCosine}, err
	}
	if s.Embeddings == "off" {
		return nil, nil
	}
	return indexes.BuiltIn{}, nil
}

// several are workers that one program runs, in the order in which they were made.
type several []Worker

// Start implements Worker.
func (s several) Start() {
	for _, w := range s {
		w.Start()
	}
}

// Stop implements Worker.
func (s several) Stop() error {
	var errs []error
	for _, w := range s {
		errs = append(errs, w.Stop())
	}
	return errors.Join(errs...)
}

// Status implements Worker.
func (s several) Status() (list []projection.Status) {
	for _, w := range s {
		list = append(list, w.Status()...)
	}
	return list
}

// Ready implements Worker.
func (s several) Ready(ctx context.Context) error {
	var errs []error
	for _, w := range s {
		errs = append(errs, w.Ready(ctx))
	}
	return errors.Join(errs...)
}
