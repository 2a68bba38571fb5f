package service

import (
	"context"
	"errors"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall/endpoint"
)

// embedBatch is how many events are embedded before their vectors are written. It is only a
// few calls of the endpoint, so that progress is visible.
const embedBatch = 256

// Embedder is the projection "embeddings", which has an endpoint embed the messages.
type Embedder struct {
	*worker.Consumer[*graph.EmbeddingsUnit, graph.EmbeddingsStore]
	cache graph.EmbeddingsCache
}

// NewEmbedder opens the read model "embeddings" for writing and creates its projector.
func NewEmbedder(ctx context.Context, p worker.Parts, c endpoint.Config) (_ *Embedder, err error) {
	e := &Embedder{}
	if e.cache, err = worker.WaitFor(ctx, p.Stores, p.Logger, func() (graph.EmbeddingsCache, error) { return p.Stores.OpenEmbeddingsCache(ctx, p.Logger) }); err != nil {
		return nil, err
	}
	model, err := endpoint.New(c, e.cache)
	if err == nil {
		e.Consumer, err = worker.NewConsumer(ctx, p, readmodel.Embeddings(model), projection.BatchOf(embedBatch))
	}
	if err != nil {
		return nil, errors.Join(err, e.cache.Close())
	}
	p.Telemetry.Metrics.WatchEmbeddings(func() telemetry.Embeddings { return telemetry.Embeddings(model.Stats()) })
	return e, nil
}

// Stop finishes the current batches and closes the stores.
func (e *Embedder) Stop() error { return errors.Join(e.Consumer.Stop(), e.cache.Close()) }

// remote is an endpoint's model as searches use it.
type remote struct {
	*endpoint.Embedder
	minCosine float64
}

// MinCosine implements view.Embedder.
func (r remote) MinCosine() float64 { return r.minCosine }

// embedderOf returns the model that embeds the queries of searches, nil for none.
func embedderOf(s settings.Embedding) (view.Embedder, error) {
	if c, ok := s.Endpoint(); ok {
		model, err := endpoint.New(c, nil)
		return remote{model, s.EmbeddingsMinCosine}, err
	}
	if s.Embeddings == "off" {
		return nil, nil
	}
	return view.BuiltIn{}, nil
}
