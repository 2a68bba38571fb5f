package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// observers measures what observing costs: nothing observed; metrics, as in every program;
// and metrics with traces, for events that name a sampled trace, to a collector that
// accepts them.
func observers(b *testing.B, run func(b *testing.B, t *telemetry.Telemetry, traceparent string)) {
	b.Run("unobserved", func(b *testing.B) { run(b, nil, "") })
	b.Run("metrics", func(b *testing.B) { run(b, telemetryOf(b, settings.Telemetry{}), "") })
	b.Run("metrics, events name traces", func(b *testing.B) { run(b, telemetryOf(b, settings.Telemetry{}), sampledA) })
	b.Run("metrics and traces, events name none", func(b *testing.B) { run(b, tracing(b), "") })
	b.Run("metrics and traces", func(b *testing.B) { run(b, tracing(b), sampledA) })
}

func telemetryOf(b *testing.B, s settings.Telemetry) *telemetry.Telemetry {
	b.Helper()
	t, err := telemetry.Setup(b.Context(), "mneme", s, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	b.Cleanup(t.Stop)
	return t
}

func tracing(b *testing.B) *telemetry.Telemetry {
	b.Helper()
	_, server := collect(b)
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	s, err := settings.ReadTelemetry()
	require.NoError(b, err)
	return telemetryOf(b, s)
}

func openLog(b *testing.B, options ...eventlog.Option) *eventlog.Log {
	b.Helper()
	_, conn := natstest.Alone(b, embedded.Config{MaxBytes: 4 << 30}, natsdeploy.Settings{MaxBytes: 4 << 30})
	log, err := eventlog.Open(b.Context(), conn, options...)
	require.NoError(b, err)
	return log
}

func batch(b *testing.B, from, n int, traceparent string) []events.Event {
	b.Helper()
	list := make([]events.Event, n)
	for i := range list {
		id := fmt.Sprint(from + i)
		var err error
		list[i], err = events.New(fmt.Sprint("c", i%10), "bench", id, &events.MessageCreated{MessageID: id, Role: "user", Content: "what an agent says, in a line of some length, as they do"})
		require.NoError(b, err)
		if traceparent != "" {
			list[i].Extensions["traceparent"] = traceparent
		}
	}
	return list
}

func BenchmarkPublish(b *testing.B) {
	observers(b, func(b *testing.B, t *telemetry.Telemetry, traceparent string) {
		var options []eventlog.Option
		ctx := b.Context()
		if t != nil {
			options = append(options, eventlog.OnPublish(t.Metrics.Published))
			if tracer := t.Tracer("bench"); tracer != nil {
				var span trace.Span
				ctx, span = tracer.Start(ctx, "bench")
				defer span.End()
			}
		}
		log, n := openLog(b, options...), 0
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			list := batch(b, n, 100, traceparent)
			n += len(list)
			b.StartTimer()
			if _, err := log.PublishAll(ctx, "t", list); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
	})
}

// BenchmarkProjector applies 20,000 events to a read model that has applied one before, so
// that they are traced: a new read model does not trace the past.
func BenchmarkProjector(b *testing.B) {
	observers(b, func(b *testing.B, t *telemetry.Telemetry, traceparent string) {
		log, n := openLog(b), 20_000
		_, err := log.PublishAll(b.Context(), "t", batch(b, 0, 1, traceparent))
		require.NoError(b, err)
		_, err = log.PublishAll(b.Context(), "t", batch(b, 1, n, traceparent))
		require.NoError(b, err)
		var options []projection.Option
		if t != nil {
			options = append(options, projection.OnBatch(t.Metrics.Applied), projection.WithTracer(t.Tracer("bench")))
		}
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			store, err := sqlitestore.OpenGraph(b.Context(), sqlitestore.Path(b.TempDir(), "graph", 1))
			require.NoError(b, err)
			declared := graph.Projection()
			cp, err := store.Acquire(b.Context(), 0, declared.Fingerprint())
			require.NoError(b, err)
			first, err := log.Get(b.Context(), 1)
			require.NoError(b, err)
			_, err = declared.Apply(b.Context(), store, cp, []eventlog.Message{first})
			require.NoError(b, err)
			projector, err := projection.NewProjector(declared, log, store, slog.New(slog.DiscardHandler), options...)
			require.NoError(b, err)
			b.StartTimer()
			projector.Start()
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			err = log.AwaitProgress(ctx, "graph", 0, time.Millisecond, func() (bool, error) {
				return projector.Status()[0].Checkpoint.Seq > uint64(n), nil
			})
			cancel()
			b.StopTimer()
			require.NoError(b, err)
			projector.Stop()
			require.NoError(b, store.Close())
			b.StartTimer()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
	})
}
