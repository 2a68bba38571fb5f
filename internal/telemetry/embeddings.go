package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Embeddings are the counters of who has messages embedded by an endpoint, since it began.
type Embeddings struct {
	Texts    int64 // that were embedded
	Cached   int64 // that were not, for they had been before
	Calls    int64 // of the endpoint
	Failures int64 // of calls
	Tokens   int64
}

var (
	textsEmbedded     = desc("mneme_embeddings_texts_total", "Texts that were embedded; cached is 1 for those that were not paid for again.", "cached")
	embeddingCalls    = desc("mneme_embeddings_calls_total", "Calls of the endpoint that embeds, those that failed too.")
	embeddingFailures = desc("mneme_embeddings_failures_total", "Those that failed.")
	embeddingTokens   = desc("mneme_embeddings_tokens_total", "Tokens that it was paid for.")
)

// WatchEmbeddings exposes the counters of this process.
func (m *Metrics) WatchEmbeddings(now func() Embeddings) {
	m.registry.MustRegister(embeddingsWatch(now))
}

type embeddingsWatch func() Embeddings

// Describe implements prometheus.Collector.
func (embeddingsWatch) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (w embeddingsWatch) Collect(out chan<- prometheus.Metric) {
	e := w()
	out <- counter(textsEmbedded, float64(e.Texts), "0")
	out <- counter(textsEmbedded, float64(e.Cached), "1")
	out <- counter(embeddingCalls, float64(e.Calls))
	out <- counter(embeddingFailures, float64(e.Failures))
	out <- counter(embeddingTokens, float64(e.Tokens))
}
