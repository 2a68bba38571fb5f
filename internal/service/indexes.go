package service

import (
	"mneme.dev/mneme/internal/indexes"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
)

// searching creates the indexes with which contexts are searched.
func searching(s settings.Searching, t *telemetry.Telemetry) (*indexes.Cache, error) {
	embedder, err := embedderOf(s.Embedding)
	if err != nil {
		return nil, &UsageError{err}
	}
	cache := indexes.New(s.IndexMemory<<20, embedder)
	t.Metrics.WatchIndexes(func() telemetry.Indexes {
		f := cache.Figures()
		return telemetry.Indexes{Held: f.Indexes, Bytes: f.Bytes, Hits: f.Hits, Loads: f.Loads, Evicted: f.Evicted}
	})
	return cache, nil
}
