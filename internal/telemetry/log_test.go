package telemetry_test

import (
	"bytes"
	"database/sql"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

func TestLogRecordNamesItsTrace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := telemetry.Logger(slog.New(slog.NewTextHandler(&out, nil))).With("a", 1).WithGroup("g")
	id, err := trace.TraceIDFromHex(traceA)
	require.NoError(t, err)
	span, err := trace.SpanIDFromHex(spanA)
	require.NoError(t, err)
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span}))
	logger.InfoContext(ctx, "inside")
	require.Contains(t, out.String(), "trace_id="+traceA)
	require.Contains(t, out.String(), "span_id="+spanA)
	out.Reset()
	logger.Info("outside")
	require.NotContains(t, out.String(), "_id")
}

func TestRequestLogsOneDebugLineWithItsTrace(t *testing.T) {
	t.Parallel()
	b := up(t, t.TempDir())
	b.read(sampledA, b.post("", message(t, "m1", "the secret", "")))
	require.NoError(t, b.Close())
	lines := b.logged.lines(t, "request")
	require.Len(t, lines, 2)
	require.Equal(t, "DEBUG", lines[1]["level"])
	require.Equal(t, "/v1/conversations/{id}/context", lines[1]["route"])
	require.EqualValues(t, 200, lines[1]["status"])
	require.Equal(t, traceA, lines[1]["trace_id"])
}

func TestFailureIsLoggedOnceAndNotShown(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	b := up(t, data)
	b.read("", b.post("", message(t, "m1", "x", "")))
	vandal, err := sql.Open("sqlite", sqlitestore.WriterDSN(worker.NewStores(data, settings.Models{}).Path("graph", 1)))
	require.NoError(t, err)
	_, err = vandal.ExecContext(t.Context(), "DROP TABLE version")
	require.NoError(t, err)
	require.NoError(t, vandal.Close())
	status, answer := b.do(http.MethodGet, "/v1/conversations/c1", sampledA, "", nil)
	require.Equal(t, http.StatusServiceUnavailable, status, "%s", answer)
	require.NotContains(t, string(answer), "SQL")
	lines := b.logged.lines(t, "request failed")
	require.Len(t, lines, 1)
	require.Equal(t, "ERROR", lines[0]["level"])
	require.Equal(t, traceA, lines[0]["trace_id"])
	require.Equal(t, "GET", lines[0]["method"])
	require.Equal(t, "/v1/conversations/{id}", lines[0]["route"])
	require.NotEmpty(t, lines[0]["error"])

	response, err := http.Get(b.HTTPURL() + "/v1/conversations/c1")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "5", response.Header.Get("Retry-After"))
}
