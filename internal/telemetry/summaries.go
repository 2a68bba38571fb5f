package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"mneme.dev/mneme/pkg/summary/llm"
)

// Summaries counts what a summarizer has done since it started.
type Summaries struct {
	Written      int64 // by the configured writer
	Fallbacks    int64 // written without the configured model
	Titles       int64
	Condensed    int64 // tool results
	Insights     int64 // sessions analysed
	Chapters     int64 // of stories of projects
	Calls        int64 // of models
	InputTokens  int64
	OutputTokens int64
	Failures     map[llm.Class]int64 // failed calls, calls not made and unusable answers, by class
	Queued       int                 // conversations waiting for a worker
	Running      int                 // conversations being worked on
	Waiting      int                 // conversations waiting for a store, a server or a model
}

var (
	summariesWritten = desc("mneme_summaries_written_total", "Summaries that this process has written; fallback is 1 where the configured model could not and a summary was written without it.", "fallback")
	titlesWritten    = desc("mneme_titles_written_total", "Titles that this process has given to conversations.")
	resultsCondensed = desc("mneme_results_condensed_total", "Tool results that a model has condensed.")
	insightsWritten  = desc("mneme_insights_written_total", "Finished conversations that a model has analyzed.")
	chaptersWritten  = desc("mneme_chapters_written_total", "Chapters of stories of projects that this process has written.")
	modelCalls       = desc("mneme_model_calls_total", "Calls of language models, failed ones included.")
	modelTokens      = desc("mneme_model_tokens_total", "Tokens that language models charged for.", "direction")
	modelFailures    = desc("mneme_model_failures_total", "Calls of language models that failed or were not made (because of a cap, or because they would fail), and unusable answers.", "class")
	summariesQueued  = desc("mneme_summaries_queued", "Changed conversations waiting for a worker; grows while events arrive faster than they can be summarized.")
	summariesRunning = desc("mneme_summaries_running", "Conversations being summarized.")
	summariesWaiting = desc("mneme_summaries_waiting", "Conversations whose summary waits because something does not answer; mneme status says what.")
)

// WatchSummaries exposes the counters of this process's summarizer.
func (m *Metrics) WatchSummaries(now func() Summaries) {
	m.registry.MustRegister(collector(func(out chan<- prometheus.Metric) {
		s := now()
		out <- counter(summariesWritten, float64(s.Written), "0")
		out <- counter(summariesWritten, float64(s.Fallbacks), "1")
		out <- counter(titlesWritten, float64(s.Titles))
		out <- counter(resultsCondensed, float64(s.Condensed))
		out <- counter(insightsWritten, float64(s.Insights))
		out <- counter(chaptersWritten, float64(s.Chapters))
		out <- counter(modelCalls, float64(s.Calls))
		out <- counter(modelTokens, float64(s.InputTokens), "input")
		out <- counter(modelTokens, float64(s.OutputTokens), "output")
		for class, n := range s.Failures {
			out <- counter(modelFailures, float64(n), string(class))
		}
		out <- gauge(summariesQueued, float64(s.Queued))
		out <- gauge(summariesRunning, float64(s.Running))
		out <- gauge(summariesWaiting, float64(s.Waiting))
	}))
}
