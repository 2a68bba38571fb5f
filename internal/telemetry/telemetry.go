package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/version"
)

// stopTime limits how long Stop waits for pending spans to leave.
const stopTime = 2 * time.Second

// complainEvery is the shortest time between two warnings about an endpoint.
const complainEvery = time.Minute

// Telemetry reports what one program does.
type Telemetry struct {
	Metrics *Metrics
	// Content says that spans may hold conversation text.
	Content bool

	provider trace.TracerProvider
	sdk      *sdktrace.TracerProvider // nil if there are no traces
	logger   *slog.Logger
}

// Setup prepares a program's telemetry. The service name in its traces is program unless
// OTEL_SERVICE_NAME is set. Setup never waits for the endpoint: if that is down, its spans
// are lost and the log says so at most once a minute.
func Setup(ctx context.Context, program string, s settings.Telemetry, logger *slog.Logger) (*Telemetry, error) {
	t := &Telemetry{Metrics: newMetrics(logger), Content: s.Content(), provider: noop.NewTracerProvider(), logger: logger}
	if !s.On() {
		return t, nil
	}
	var to sdktrace.SpanExporter
	var err error
	if s.GRPC() {
		to, err = otlptracegrpc.New(ctx)
	} else {
		to, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("export traces to %s: %w", s.To(), err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceName(program), semconv.ServiceNamespace("mneme"), semconv.ServiceVersion(version.Get().Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// The SDK reports invalid variables of its own only through this handler.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("OpenTelemetry reported an error", "error", err) }))
	t.sdk = sdktrace.NewTracerProvider(sdktrace.WithBatcher(&exporter{SpanExporter: to, endpoint: s.To(), logger: logger}), sdktrace.WithResource(about))
	t.provider = t.sdk
	return t, nil
}

// Tracer returns a tracer, or nil if traces are off.
func (t *Telemetry) Tracer(name string) trace.Tracer {
	if t.sdk == nil {
		return nil
	}
	return t.sdk.Tracer(name)
}

// Stop sends the pending spans, waiting at most two seconds. It is idempotent.
func (t *Telemetry) Stop() {
	if t.sdk == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := t.sdk.Shutdown(ctx); err != nil {
		t.logger.Debug("spans lost at shutdown", "error", err)
	}
}

// exporter sends spans and warns, rarely, when it can't.
type exporter struct {
	sdktrace.SpanExporter
	endpoint string
	logger   *slog.Logger

	mu   sync.Mutex
	said time.Time
	lost int // since the last warning
}

// ExportSpans always returns nil because the SDK would report an error for each batch.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += len(spans)
	if time.Since(e.said) >= complainEvery {
		e.logger.Warn("spans can't be exported", "endpoint", e.endpoint, "lost", e.lost, "error", err)
		e.said, e.lost = time.Now(), 0
	}
	return nil
}
