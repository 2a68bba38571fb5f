package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"mneme.dev/mneme/internal/settings"
)

// Command traces a command: in the caller's trace, which the environment variables
// TRACEPARENT and TRACESTATE name, or in one of its own. If traces are off, ctx still
// carries the caller's trace onward. The caller must call end.
func Command(ctx context.Context, program, command string, logger *slog.Logger) (_ context.Context, end func(), err error) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT"), "tracestate": os.Getenv("TRACESTATE")})
	s, err := settings.ReadTelemetry()
	if err != nil || !s.On() {
		return ctx, func() {}, err
	}
	t, err := Setup(ctx, program, s, logger)
	if err != nil {
		return ctx, nil, err
	}
	name, _, _ := strings.Cut(command, " <") // without its arguments
	ctx, span := t.Tracer("mneme.dev/mneme/cmd").Start(ctx, program+" "+name, trace.WithSpanKind(trace.SpanKindInternal))
	return ctx, func() {
		span.End()
		t.Stop()
	}, nil
}

// Inject adds the trace of ctx to a request's header.
func Inject(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}
