package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"mneme/pkg/summary/llm"
)

// Summaries are the counters of a summarizer since it began.
type Summaries struct {
	Written      int64 // by whom they were to be written
	Fallbacks    int64 // without the model that was to write them
	Titles       int64
	Condensed    int64 // results of tools
	Calls        int64 // of models
	InputTokens  int64
	OutputTokens int64
	Failures     map[llm.Class]int64 // of calls, of those that were not made and of answers: every class
	Queued       int                 // conversations whose turn it is, to see whether something is due
	Running      int                 // conversations that are worked on
	Waiting      int                 // conversations that wait for a store, a server or a model
}

var (
	summariesWritten = desc("mneme_summaries_written_total", "Summaries that this process has written; fallback is 1 for those that a model was to write and did not.", "fallback")
	titlesWritten    = desc("mneme_titles_written_total", "Titles that this process has given.")
	resultsCondensed = desc("mneme_results_condensed_total", "Results of tools that a model has condensed.")
	modelCalls       = desc("mneme_model_calls_total", "Calls of language models, those that failed too.")
	modelTokens      = desc("mneme_model_tokens_total", "Tokens that language models were paid for.", "direction")
	modelFailures    = desc("mneme_model_failures_total", "Calls of language models that failed, or were not made for a cap or because they would fail, and answers that are of no use.", "class")
	summariesQueued  = desc("mneme_summaries_queued", "Conversations that have changed and whose turn it is; it grows while summaries come slower than what they are made of.")
	summariesRunning = desc("mneme_summaries_running", "Conversations that are being summarised.")
	summariesWaiting = desc("mneme_summaries_waiting", "Conversations that wait to be summarised because something does not answer; mneme status says what.")
)

// WatchSummaries exposes the counters of this process's summarizer.
func (m *Metrics) WatchSummaries(now func() Summaries) { m.registry.MustRegister(summariesWatch(now)) }

type summariesWatch func() Summaries

// Describe implements prometheus.Collector.
func (summariesWatch) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (w summariesWatch) Collect(out chan<- prometheus.Metric) {
	s := w()
	out <- counter(summariesWritten, float64(s.Written), "0")
	out <- counter(summariesWritten, float64(s.Fallbacks), "1")
	out <- counter(titlesWritten, float64(s.Titles))
	out <- counter(resultsCondensed, float64(s.Condensed))
	out <- counter(modelCalls, float64(s.Calls))
	out <- counter(modelTokens, float64(s.InputTokens), "input")
	out <- counter(modelTokens, float64(s.OutputTokens), "output")
	for class, n := range s.Failures {
		out <- counter(modelFailures, float64(n), string(class))
	}
	out <- gauge(summariesQueued, float64(s.Queued))
	out <- gauge(summariesRunning, float64(s.Running))
	out <- gauge(summariesWaiting, float64(s.Waiting))
}
