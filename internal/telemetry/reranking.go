package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Reranking counts the work of the reranking endpoint since the process started.
type Reranking struct {
	Calls    int64 // of the endpoint, failed ones included
	Failures int64 // failed calls
	Kept     int64 // answers that were reused without a call
}

var (
	rerankCalls    = desc("mneme_rerank_calls_total", "Calls of the reranking endpoint, failed ones included.")
	rerankFailures = desc("mneme_rerank_failures_total", "Calls of the reranking endpoint that failed; the search kept its own order.")
	rerankKept     = desc("mneme_rerank_kept_total", "Answers of the reranking endpoint that were reused without a call.")
)

// WatchReranking exposes this process's counters.
func (m *Metrics) WatchReranking(now func() Reranking) {
	m.registry.MustRegister(collector(func(out chan<- prometheus.Metric) {
		r := now()
		out <- counter(rerankCalls, float64(r.Calls))
		out <- counter(rerankFailures, float64(r.Failures))
		out <- counter(rerankKept, float64(r.Kept))
	}))
}
