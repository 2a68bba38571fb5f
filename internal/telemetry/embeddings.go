package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Embeddings counts the work of the embedding endpoint since the process started.
type Embeddings struct {
	Texts    int64 // embedded by the endpoint
	Cached   int64 // reused without a new call
	Calls    int64 // of the endpoint, failed ones included
	Failures int64 // failed calls
	Tokens   int64
}

var (
	textsEmbedded     = desc("mneme_embeddings_texts_total", "Texts that were embedded; cached is 1 for texts reused without a new call.", "cached")
	embeddingCalls    = desc("mneme_embeddings_calls_total", "Calls of the embedding endpoint, failed ones included.")
	embeddingFailures = desc("mneme_embeddings_failures_total", "Calls of the embedding endpoint that failed.")
	embeddingTokens   = desc("mneme_embeddings_tokens_total", "Tokens that the embedding endpoint charged for.")
)

// WatchEmbeddings exposes this process's counters.
func (m *Metrics) WatchEmbeddings(now func() Embeddings) {
	m.registry.MustRegister(collector(func(out chan<- prometheus.Metric) {
		e := now()
		out <- counter(textsEmbedded, float64(e.Texts), "0")
		out <- counter(textsEmbedded, float64(e.Cached), "1")
		out <- counter(embeddingCalls, float64(e.Calls))
		out <- counter(embeddingFailures, float64(e.Failures))
		out <- counter(embeddingTokens, float64(e.Tokens))
	}))
}
