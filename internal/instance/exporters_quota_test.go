package instance_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
)

func TestExportersOfATenantThatMayStoreNoMoreAreToldNotToSendAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("tenants: {default: {max_events: 5}}\n"), 0o600))
	r := startExporting(t, instance.Config{Access: settings.Access{Quotas: path}})
	status, text := r.post("/v1/traces", "application/json", request(t, span(chat("s", "hello", "hi there"))))
	require.Equal(t, http.StatusOK, status, text)
	before, err := r.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Positive(t, before.Head)
	status, text = r.post("/v1/traces", "application/json", request(t, span(chat("other", "one", "two", "three", "four", "five", "six"))))
	require.Equal(t, http.StatusInsufficientStorage, status, text)
	require.Contains(t, text, "over its quota max_events")
	after, err := r.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Equal(t, before.Head, after.Head)
	status, text = r.post("/v1/traces", "application/json", request(t, span(chat("other", "one", "two", "three", "four", "five", "six"))), "mneme-tenant", "roomy")
	require.Equal(t, http.StatusOK, status, text)
}

func TestExportersOverAQuotaOfEventsAreToldWhenToSendAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("default: {events_per_second: 0.01}\n"), 0o600))
	r := startExporting(t, instance.Config{Access: settings.Access{Quotas: path}})
	body := request(t, span(chat("s", "hello", "hi there")))
	status, text := r.post("/v1/traces", "application/json", body)
	require.Equal(t, http.StatusOK, status, text)

	answer, err := http.Post(r.OTLPURLs()[0]+"/v1/traces", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Greater(t, seconds, 1)

	conn, err := grpc.NewClient(strings.TrimPrefix(r.OTLPURLs()[0], "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = coltracepb.NewTraceServiceClient(conn).Export(mnemetest.Context(t), &coltracepb.ExportTraceServiceRequest{
		ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "chat"}}}}}},
	})
	refused := grpcstatus.Convert(err)
	require.Equal(t, codes.ResourceExhausted, refused.Code(), refused.Message())
	require.Len(t, refused.Details(), 1, "exporters send RESOURCE_EXHAUSTED again only if it has a RetryInfo")
	require.Greater(t, refused.Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration(), time.Second)
}
