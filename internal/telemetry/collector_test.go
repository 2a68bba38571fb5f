package telemetry_test

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// spans holds what a collector of OTLP has received.
type spans struct {
	mu      sync.Mutex
	list    []*span
	service string
	header  http.Header
}

// span is a received span with its attributes as plain values.
type span struct {
	*trace.Span
	attributes map[string]any
}

func (s *span) id() string      { return hex.EncodeToString(s.SpanId) }
func (s *span) parent() string  { return hex.EncodeToString(s.ParentSpanId) }
func (s *span) traceID() string { return hex.EncodeToString(s.TraceId) }

// collect serves OTLP over HTTP.
func collect(t testing.TB) (*spans, *httptest.Server) {
	t.Helper()
	c := &spans{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(raw, request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		c.header = r.Header
		c.mu.Unlock()
		c.add(request)
	}))
	t.Cleanup(server.Close)
	return c, server
}

func (c *spans) add(request *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		c.service, _ = plain(resource.Resource.Attributes)["service.name"].(string)
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				c.list = append(c.list, &span{s, plain(s.Attributes)})
			}
		}
	}
}

func plain(list []*common.KeyValue) map[string]any {
	all := map[string]any{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			all[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			all[kv.Key] = int(v.IntValue)
		case *common.AnyValue_BoolValue:
			all[kv.Key] = v.BoolValue
		}
	}
	return all
}

// all returns the spans so far; after the program was stopped these are all of them.
func (c *spans) all() []*span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*span(nil), c.list...)
}

// named returns the spans with this name in the order of their arrival.
func (c *spans) named(name string) (list []*span) {
	for _, s := range c.all() {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

// only returns the only span with this name.
func (c *spans) only(t *testing.T, name string) *span {
	t.Helper()
	list := c.named(name)
	require.Len(t, list, 1, "spans named %q", name)
	return list[0]
}

// of returns the process span of a projection for an event.
func (c *spans) of(t *testing.T, projection, event string) *span {
	t.Helper()
	for _, s := range c.named("process " + projection) {
		if s.attributes["messaging.message.id"] == event {
			return s
		}
	}
	require.Fail(t, "not traced", "event %s in %s", event, projection)
	return nil
}

// collectGRPC serves OTLP over gRPC and returns its endpoint.
func collectGRPC(t *testing.T) (*spans, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c, server := &spans{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, overGRPC{spans: c})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return c, "http://" + listener.Addr().String()
}

type overGRPC struct {
	collector.UnimplementedTraceServiceServer
	spans *spans
}

func (s overGRPC) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.spans.add(request)
	return &collector.ExportTraceServiceResponse{}, nil
}
