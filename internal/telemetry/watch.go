package telemetry

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// askTime limits how long the log and the read models may take to answer one scrape.
const askTime = 5 * time.Second

// desc describes a metric whose value is read at scrape time.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var scraped = desc("mneme_scrape_success", "1 if the source answered this scrape, else 0; a source that did not answer has no metrics.", "source")

var (
	logHead        = desc("mneme_log_head", "Last sequence of the log.")
	logEvents      = desc("mneme_log_events", "Events in the log.")
	logMissing     = desc("mneme_log_missing_events", "Events that left the log although nobody recorded that they were removed.")
	logBytes       = desc("mneme_log_bytes", "Size of the log.")
	logLimit       = desc("mneme_log_limit_bytes", "Size at which the log is full and refuses events.")
	natsUp         = desc("mneme_nats_connected", "1 if the connection to NATS is up, else 0.")
	natsReconnects = desc("mneme_nats_reconnects_total", "How often the connection to NATS was lost and restored.")
)

// collector is a [prometheus.Collector] that only collects.
type collector func(out chan<- prometheus.Metric)

// Describe implements prometheus.Collector. It announces nothing because some metrics may
// be left out of a scrape.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) { c(out) }

// WatchLog exposes the log and the connection to it.
func (m *Metrics) WatchLog(log *eventlog.Log) {
	m.registry.MustRegister(collector(func(out chan<- prometheus.Metric) { m.collectLog(log, out) }))
}

func (m *Metrics) collectLog(log *eventlog.Log, out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	conn := log.Conn()
	out <- gauge(natsUp, one(conn.IsConnected()))
	out <- counter(natsReconnects, float64(conn.Stats().Reconnects))
	state, err := log.State(ctx)
	if m.failed(out, "log", err) {
		return
	}
	out <- gauge(logHead, float64(state.Head))
	out <- gauge(logEvents, float64(state.Messages))
	out <- gauge(logMissing, float64(state.Missing))
	out <- gauge(logBytes, float64(state.Bytes))
	out <- gauge(logLimit, float64(state.MaxBytes))
}

var (
	projectionCheckpoint = desc("mneme_projection_checkpoint", "Last sequence that the read model has applied.", "projection", "partition")
	projectionHead       = desc("mneme_projection_head", "Last sequence of the partition in the log.", "projection", "partition")
	projectionLag        = desc("mneme_projection_lag_events", "Upper bound of the partition's events that are not applied yet.", "projection", "partition")
	projectionApplied    = desc("mneme_projection_applied_events_total", "Events that have changed the read model since it was built.", "projection", "partition")
	projectionDuplicates = desc("mneme_projection_duplicate_events_total", "Duplicate events that were dropped since the read model was built.", "projection", "partition")
	projectionState      = desc("mneme_projection_state", "1 for the state that the partition is in, 0 for the others; idle where another process drives it.", "projection", "partition", "state")
	projectionRetries    = desc("mneme_projection_retries_total", "How often the projector has waited for a store or a server and tried again.", "projection", "partition")
	projectionHeld       = desc("mneme_projection_held", "1 for the partitions that this process drives or is halted on, 0 for all others.", "projection", "partition")
	projectionEpoch      = desc("mneme_projection_epoch", "How often the partition was taken over since the read model was built.", "projection", "partition")
	projectionFailed     = desc("mneme_projection_failed_events", "Failed events of all partitions, by class.", "projection", "class")
	projectionGeneration = desc("mneme_projection_generation", "Generation of the read model that serves; a rebuild makes the next one.", "projection")
	sqliteBytes          = desc("mneme_sqlite_file_bytes", "Size of the read model's files: db, and wal for writes not yet moved to db.", "projection", "file")
)

// Projection is a read model that this process writes.
type Projection struct {
	Name    string
	Serving func() (Serving, bool) // false once the process is stopping
}

// Serving is the generation that serves, pinned until Release is called.
type Serving struct {
	Build    projection.Build
	Model    projection.ReadStore
	Path     string // SQLite file, "" if there is none
	Statuses []projection.Status
	Release  func()
}

// WatchProjection exposes a read model and its projector.
func (m *Metrics) WatchProjection(log *eventlog.Log, p Projection) {
	m.registry.MustRegister(collector(func(out chan<- prometheus.Metric) { m.collectProjection(log, p, out) }))
}

func (m *Metrics) collectProjection(log *eventlog.Log, p Projection, out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	serving, ok := p.Serving()
	if !ok {
		return
	}
	defer serving.Release()
	out <- gauge(projectionGeneration, float64(serving.Build.Generation), p.Name)
	for suffix, file := range map[string]string{"": "db", "-wal": "wal"} {
		if serving.Path == "" {
			break
		}
		if info, err := os.Stat(serving.Path + suffix); err == nil {
			out <- gauge(sqliteBytes, float64(info.Size()), p.Name, file)
		}
	}
	for _, s := range serving.Statuses {
		if s.Build != serving.Build {
			continue
		}
		out <- gauge(projectionHeld, one(s.State != projection.StateIdle), p.Name, strconv.Itoa(s.Partition))
	}
	list, err := projection.Progress(ctx, serving.Build, log, serving.Model, serving.Statuses)
	if err == nil {
		err = collectFailed(ctx, p.Name, serving.Model, out)
	}
	if m.failed(out, p.Name, err) {
		return
	}
	for _, s := range list {
		partition := strconv.Itoa(s.Partition)
		out <- gauge(projectionCheckpoint, float64(s.Checkpoint.Seq), p.Name, partition)
		out <- gauge(projectionEpoch, float64(s.Checkpoint.Epoch), p.Name, partition)
		out <- gauge(projectionHead, float64(s.Head), p.Name, partition)
		out <- gauge(projectionLag, float64(s.Lag), p.Name, partition)
		out <- counter(projectionApplied, float64(s.Checkpoint.Applied), p.Name, partition)
		out <- counter(projectionDuplicates, float64(s.Checkpoint.Duplicates), p.Name, partition)
		out <- counter(projectionRetries, float64(s.Retries), p.Name, partition)
		for _, state := range []projection.State{projection.StateIdle, projection.StateCatchingUp, projection.StateLive, projection.StateHalted} {
			out <- gauge(projectionState, one(s.State == state), p.Name, partition, string(state))
		}
	}
}

func collectFailed(ctx context.Context, name string, model projection.ReadStore, out chan<- prometheus.Metric) error {
	failed, err := model.CountFailed(ctx)
	if err != nil {
		return err
	}
	for _, class := range []projection.Class{projection.ClassInvalid, projection.ClassError} {
		out <- gauge(projectionFailed, float64(failed[class]), name, string(class))
	}
	return nil
}

// failed reports whether a source did not answer, and says so in the metrics and the log.
func (m *Metrics) failed(out chan<- prometheus.Metric, source string, err error) bool {
	out <- gauge(scraped, one(err == nil), source)
	if err != nil {
		m.logger.Warn("cannot read metrics; this scrape leaves them out", "source", source, "error", err)
	}
	return err != nil
}

func gauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func counter(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
