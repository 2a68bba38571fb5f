package telemetry

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/felixge/httpsnoop"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// HTTP observes a server: one log line at level debug, the request's metrics, and a span in the caller's trace, which
// the traceparent header names. Requests are distinguished by their route in mux. The query string is never recorded
// because it can hold what somebody asked.
func (t *Telemetry) HTTP(mux *http.ServeMux, next http.Handler) http.Handler {
	tracer := t.provider.Tracer("mneme.dev/mneme/internal/httpapi")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		method, route := known(r.Method), path(pattern)
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		span := trace.SpanFromContext(ctx)
		if !probe(route) {
			ctx, span = tracer.Start(ctx, strings.TrimSpace(method+" "+route), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
				semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route), semconv.URLPath(r.URL.Path), semconv.URLScheme("http")))
		}
		t.Metrics.httpActive.Inc()
		done := httpsnoop.Metrics{Code: http.StatusOK}
		defer func() { // even if the handler panics halfway through an answer
			t.Metrics.httpActive.Dec()
			t.Metrics.httpDuration.WithLabelValues(method, route, strconv.Itoa(done.Code)).Observe(done.Duration.Seconds())
			t.logger.LogAttrs(ctx, slog.LevelDebug, "request", slog.String("method", method), slog.String("route", route),
				slog.Int("status", done.Code), slog.Duration("duration", done.Duration), slog.Int64("bytes", done.Written))
			endRequest(span, done)
		}()
		done.CaptureMetrics(w, func(w http.ResponseWriter) { next.ServeHTTP(w, r.WithContext(ctx)) })
	})
}

func endRequest(span trace.Span, done httpsnoop.Metrics) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(semconv.HTTPResponseStatusCode(done.Code), semconv.HTTPResponseBodySize(int(done.Written)))
	if done.Code >= http.StatusInternalServerError {
		span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(done.Code)))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// path returns the path of a pattern such as "GET /v1/status", "" if no route matched.
func path(pattern string) string {
	_, after, found := strings.Cut(pattern, " ")
	if !found {
		return pattern
	}
	return after
}

// probe reports whether machines poll a route. Such requests are not traced.
func probe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics"
}

// known bounds the number of label values: every unknown method becomes "_OTHER".
func known(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "_OTHER"
}
