package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// Metrics holds what a program counts. Figures that the log and the read models already
// know are read at scrape time instead, see [Metrics.WatchLog] and
// [Metrics.WatchProjection]. docs/metrics.md lists all metrics.
type Metrics struct {
	registry *prometheus.Registry
	logger   *slog.Logger

	httpDuration *prometheus.HistogramVec
	httpActive   prometheus.Gauge
	awaited      *prometheus.HistogramVec
	tools        *prometheus.HistogramVec

	publishDuration *prometheus.HistogramVec
	published       prometheus.Counter
	unstored        atomic.Pointer[unstored] // nil if the last publish was stored
	duplicates      prometheus.Counter
	refused         *prometheus.CounterVec

	processed   *prometheus.HistogramVec
	batchEvents *prometheus.HistogramVec
	foreign     *prometheus.CounterVec
	phases      *prometheus.HistogramVec

	otlp *prometheus.CounterVec

	audited, auditLost prometheus.Counter
}

// seconds are the bucket bounds of durations: from reading a page in memory to a request
// that waits.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetrics(logger *slog.Logger) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), logger: logger}
	histogram := func(name, help string, buckets []float64, constant prometheus.Labels, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: constant}, labels)
		m.registry.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	messaging := func(operation string) prometheus.Labels {
		return prometheus.Labels{"messaging_system": "nats", "messaging_destination_name": natsdeploy.Stream, "messaging_operation_name": operation}
	}
	m.httpDuration = histogram("http_server_request_duration_seconds", "Duration of HTTP requests; http_route is empty if no route matched.",
		seconds, nil, "http_request_method", "http_route", "http_response_status_code")
	m.httpActive = prometheus.NewGauge(prometheus.GaugeOpts{Name: "http_server_active_requests", Help: "HTTP requests in flight."})
	m.awaited = histogram("mneme_await_duration_seconds", "How long reads with at_least or as_of waited for a projection; outcome is reached, timeout, canceled or error.",
		seconds, nil, "projection", "outcome")

	m.tools = histogram("mneme_mcp_tool_duration_seconds", "Duration of MCP tool calls by tool, and of requests for resources, prompts and completions by method; outcome is ok, refused (the caller can correct it) or failed.",
		seconds, nil, "tool", "outcome")

	m.publishDuration = histogram("messaging_client_operation_duration_seconds", "Duration of one publish call through this program; error_type is empty if all events were stored.",
		seconds, messaging("publish"), "error_type")
	m.published = counter("messaging_client_sent_messages_total", "Events that the log has acknowledged to this program, duplicates included.").WithLabelValues()
	m.duplicates = counter("mneme_publish_duplicate_events_total", "Events that this program published and the log's duplicate window recognized as copies.").WithLabelValues()
	m.refused = counter("mneme_publish_refused_events_total", "Events that were not stored; error_type is invalid, conflict, full, too_large, canceled, timeout, unavailable or quota.", "error_type")
	for _, errorType := range []string{"invalid", "conflict", "full", "too_large", "canceled", "timeout", "unavailable", "quota"} {
		m.refused.WithLabelValues(errorType) // 0, or the first refusals would be no increase to Prometheus
	}

	m.processed = histogram("messaging_process_duration_seconds", "Duration of applying a batch to a read model, commit included.",
		seconds, messaging("process"), "messaging_consumer_group_name", "messaging_destination_partition_id")
	m.batchEvents = histogram("mneme_projection_batch_events", "Events in a batch.", []float64{1, 3, 10, 30, 100, 300, 1000}, nil, "projection")
	m.foreign = counter("mneme_projection_foreign_events_total", "Events of other projects' types that the projection skipped because it has no reducer for them.", "projection")
	m.phases = histogram("mneme_projection_phase_duration_seconds", "Time spent on a batch by phase: decode (in parallel with the writer; projections that share a reader count the same time), apply (in the transaction), commit.",
		seconds, nil, "projection", "phase")

	m.otlp = counter("mneme_otlp_records_total", "Spans and log records that exporters of OpenTelemetry sent; outcome is recorded, known, left_out or refused; scope says why one is left out and which library made it.",
		"signal", "outcome", "scope")

	m.audited = counter("mneme_audit_entries_total", "Entries that this program has stored in the audit log.").WithLabelValues()
	m.auditLost = counter("mneme_audit_lost_entries_total", "Entries about reads that could not be stored in the audit log.").WithLabelValues()

	m.registry.MustRegister(m.httpActive, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return m
}

// Handler answers /metrics.
func (m *Metrics) Handler() http.Handler {
	h := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(m.logger.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
		DisableCompression: true, // the server compresses
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&leaver{ResponseWriter: w}, r) })
}

// leaver is a client that may leave while it is answered. promhttp would log that as an error for each metric, although
// the error is not ours.
type leaver struct {
	http.ResponseWriter
	gone bool
}

func (l *leaver) Write(p []byte) (int, error) {
	if !l.gone {
		_, err := l.ResponseWriter.Write(p)
		l.gone = err != nil
	}
	return len(p), nil
}

// Published records a publish; see [eventlog.OnPublish].
func (m *Metrics) Published(p eventlog.Publication) {
	class := ""
	if p.Err != nil {
		class = eventlog.ErrorType(p.Err)
		m.Refused(class, p.Events-p.Stored)
	}
	switch class {
	case "":
		m.unstored.Store(nil)
	case "timeout", "unavailable":
		m.unstored.Store(&unstored{time.Now(), class})
	}
	m.publishDuration.WithLabelValues(class).Observe(p.Took.Seconds())
	m.published.Add(float64(p.Stored))
	m.duplicates.Add(float64(p.Duplicates))
}

// unstored is a publish that the log's server did not store.
type unstored struct {
	at    time.Time
	class string
}

// unstoredFor is how long a publish that was not stored counts: without a newer one, nobody knows.
const unstoredFor = 5 * time.Minute

// WriteError says that the last publish through this program was not stored, if it was in the last minutes. It is all that a
// program knows about a server that answers but can't write, as with a full disk.
func (m *Metrics) WriteError() error {
	u := m.unstored.Load()
	if u == nil || time.Since(u.at) > unstoredFor {
		return nil
	}
	return fmt.Errorf("the NATS server did not store what was last published through this program, at %s (%s)", u.at.UTC().Format(time.RFC3339), u.class)
}

// Refused records events that were not stored.
func (m *Metrics) Refused(class string, events int) {
	m.refused.WithLabelValues(class).Add(float64(events))
}

// Exported records a span or log record that an exporter sent.
func (m *Metrics) Exported(signal, outcome, scope string) {
	m.otlp.WithLabelValues(signal, outcome, scope).Inc()
}

// Audited records entries of the audit log.
func (m *Metrics) Audited(written, lost int) {
	m.audited.Add(float64(written))
	m.auditLost.Add(float64(lost))
}

// Applied records a batch; see [projection.OnBatch].
func (m *Metrics) Applied(b projection.Batch) {
	m.processed.WithLabelValues(b.Projection, strconv.Itoa(b.Partition)).Observe((b.Apply + b.Commit).Seconds())
	m.batchEvents.WithLabelValues(b.Projection).Observe(float64(b.Events))
	m.foreign.WithLabelValues(b.Projection).Add(float64(b.Foreign))
	m.phases.WithLabelValues(b.Projection, "decode").Observe(b.Decode.Seconds())
	m.phases.WithLabelValues(b.Projection, "apply").Observe(b.Apply.Seconds())
	m.phases.WithLabelValues(b.Projection, "commit").Observe(b.Commit.Seconds())
}

// Awaited records how long a read waited for a projection.
func (m *Metrics) Awaited(projection, outcome string, took time.Duration) {
	m.awaited.WithLabelValues(projection, outcome).Observe(took.Seconds())
}

// ToolCalled records a call of an MCP tool.
func (m *Metrics) ToolCalled(tool, outcome string, took time.Duration) {
	m.tools.WithLabelValues(tool, outcome).Observe(took.Seconds())
}
