package service

import (
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/recall/endpoint"
)

// NewCache creates the indexes with which contexts are searched.
func NewCache(s settings.Searching, t *telemetry.Telemetry) (*view.Cache, error) {
	embedder, err := embedderOf(s.Embedding)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	cache := view.NewCache(int(s.Shares().Indexes), embedder)
	if c, ok := s.Reranking.Reranker(); ok {
		model, err := endpoint.NewReranker(c)
		if err != nil {
			return nil, &program.UsageError{Err: err}
		}
		cache.Reranker, cache.RerankAlways = model, s.RerankAlways
		t.Metrics.WatchReranking(func() telemetry.Reranking { return telemetry.Reranking(model.Stats()) })
	}
	t.Metrics.WatchIndexes(func() telemetry.Indexes {
		f := cache.Figures()
		return telemetry.Indexes{Held: f.Indexes, Bytes: f.Bytes, Hits: f.Hits, Loads: f.Loads, Evicted: f.Evicted}
	})
	return cache, nil
}

// LimitMemory makes the garbage collector and SQLite keep to their shares of the memory. Call
// it before any store is opened.
func LimitMemory(m settings.Memory) {
	shares := m.Shares()
	program.LimitHeap(shares.Heap)
	sqlitestore.LimitCaches(shares.Caches)
}
