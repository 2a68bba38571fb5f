package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestACommandJoinsItsCallersTrace(t *testing.T) {
	t.Parallel()
	const traceID, spanID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	asked := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("traceparent")
		_, _ = io.WriteString(w, "{}")
	}))
	defer api.Close()
	exported := make(chan []byte, 1)
	otlp := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		exported <- body
	}))
	defer otlp.Close()
	status := func(env ...string) {
		path, err := mnemetest.Binary()
		require.NoError(t, err)
		cmd := exec.Command(path, "status", "--url", api.URL)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}

	status()
	require.Empty(t, <-asked, "no trace is invented")
	status("TRACEPARENT=00-" + traceID + "-" + spanID + "-01")
	require.Equal(t, "00-"+traceID+"-"+spanID+"-01", <-asked, "it is handed on though nobody records")

	status("TRACEPARENT=00-"+traceID+"-"+spanID+"-01", "OTEL_EXPORTER_OTLP_ENDPOINT="+otlp.URL)
	request := &collector.ExportTraceServiceRequest{}
	require.NoError(t, proto.Unmarshal(<-exported, request))
	span := request.ResourceSpans[0].ScopeSpans[0].Spans[0]
	require.Equal(t, "mneme status", span.Name)
	require.Equal(t, spanID, hex.EncodeToString(span.ParentSpanId))
	require.Equal(t, "00-"+traceID+"-"+hex.EncodeToString(span.SpanId)+"-01", <-asked)
}
