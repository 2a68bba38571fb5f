package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Indexes holds the figures of the search indexes in memory.
type Indexes struct {
	Held    int
	Bytes   int
	Hits    int
	Loads   int
	Evicted int
}

var (
	indexesHeld    = desc("mneme_indexes", "Conversations whose index for searches is in memory.")
	indexesBytes   = desc("mneme_indexes_bytes", "Approximate memory of these indexes, including cached rows and code.")
	indexesUsed    = desc("mneme_index_searches_total", "Searches in one conversation; cached is 1 if its index was in memory, 0 if it was loaded.", "cached")
	indexesEvicted = desc("mneme_indexes_evicted_total", "Indexes evicted to make room for others.")
)

// WatchIndexes exposes these figures.
func (m *Metrics) WatchIndexes(now func() Indexes) {
	m.registry.MustRegister(collector(func(out chan<- prometheus.Metric) {
		i := now()
		out <- gauge(indexesHeld, float64(i.Held))
		out <- gauge(indexesBytes, float64(i.Bytes))
		out <- counter(indexesUsed, float64(i.Hits), "1")
		out <- counter(indexesUsed, float64(i.Loads), "0")
		out <- counter(indexesEvicted, float64(i.Evicted))
	}))
}
