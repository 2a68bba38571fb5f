package telemetry_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"mneme.dev/mneme/internal/mnemetest"
)

// Traces of a producer. The environment configures the SDK, so these tests can't run in
// parallel.
const (
	traceA   = "0af7651916cd43dd8448eb211c80319c"
	spanA    = "b7ad6b7169203331"
	sampledA = "00-" + traceA + "-" + spanA + "-01"
	droppedA = "00-" + traceA + "-" + spanA + "-00"
	traceB   = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanB    = "00f067aa0ba902b7"
	sampledB = "00-" + traceB + "-" + spanB + "-01"
)

func traced(t *testing.T) *spans {
	t.Helper()
	c, server := collect(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return c
}

func TestTraceLeadsFromProducerToReader(t *testing.T) {
	c := traced(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x")
	b := up(t, t.TempDir())
	b.overNATS(message(t, "m1", "said over NATS", sampledA))
	seq := b.post(sampledA, message(t, "m2", "said over HTTP", sampledA))
	require.EqualValues(t, 2, seq)
	require.Contains(t, b.read(sampledA, seq), "said over HTTP")
	require.NoError(t, b.Close())

	all := map[string]*span{}
	for _, s := range c.all() {
		require.Equal(t, traceA, s.traceID(), "%s", s.Name)
		all[s.id()] = s
	}
	for _, s := range all {
		if s.parent() != spanA {
			require.Contains(t, all, s.parent(), "the parent of %s", s.Name)
		}
	}
	require.Equal(t, "mneme", c.service)
	require.Equal(t, "Bearer x", c.header.Get("Authorization"))

	post := c.only(t, "POST /v1/events")
	require.Equal(t, spanA, post.parent())
	require.Equal(t, v1.Span_SPAN_KIND_SERVER, post.Kind)
	require.Equal(t, 201, post.attributes["http.response.status_code"])
	publish := c.only(t, "publish AGENT_EVENTS")
	require.Equal(t, post.id(), publish.parent())
	require.Equal(t, v1.Span_SPAN_KIND_PRODUCER, publish.Kind)
	require.Subset(t, publish.attributes, map[string]any{
		"messaging.system": "nats", "messaging.operation.name": "publish", "messaging.operation.type": "send",
		"messaging.destination.name": "AGENT_EVENTS", "messaging.batch.message_count": 1, "gen_ai.conversation.id": "c1", "mneme.event.seq": 2,
	})
	for _, projection := range []string{"graph", "files"} {
		require.Equal(t, spanA, c.of(t, projection, "m1").parent(), "over NATS the producer is the parent")
		process := c.of(t, projection, "m2")
		require.Equal(t, publish.id(), process.parent())
		require.Equal(t, v1.Span_SPAN_KIND_CONSUMER, process.Kind)
		require.Subset(t, process.attributes, map[string]any{
			"messaging.system": "nats", "messaging.operation.type": "process", "messaging.consumer.group.name": projection,
			"messaging.destination.partition.id": "0", "cloudevents.event_type": "dev.mneme.message.created.v1", "mneme.event.seq": 2,
		})
		require.Len(t, c.named("process "+projection), 2)
	}
	require.Equal(t, "applied", c.of(t, "graph", "m2").attributes["mneme.event.outcome"])
	require.Equal(t, "applied", c.of(t, "files", "m2").attributes["mneme.event.outcome"])

	get := c.only(t, "GET /v1/conversations/{id}/context")
	require.Equal(t, spanA, get.parent())
	require.Equal(t, get.id(), c.only(t, "await graph").parent())
	require.Equal(t, get.id(), c.only(t, "await files").parent())
	search := c.only(t, "search_memory")
	require.Equal(t, get.id(), search.parent())
	require.Subset(t, search.attributes, map[string]any{
		"gen_ai.operation.name": "search_memory", "gen_ai.conversation.id": "c1", "mneme.context.strategy": "hybrid",
		"mneme.context.budget": 100_000, "mneme.context.as_of": 2,
	})
	require.Positive(t, search.attributes["mneme.context.used"])
	require.Positive(t, search.attributes["mneme.context.sections"])
	require.Positive(t, search.attributes["gen_ai.memory.record.count"])
	for _, s := range all {
		require.NotContains(t, fmt.Sprint(s.attributes), "said over", "%s holds content", s.Name)
	}
}

func TestSpansHoldContentOnlyIfConfigured(t *testing.T) {
	c := traced(t)
	t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
	b := up(t, t.TempDir())
	b.read(sampledA, b.post(sampledA, message(t, "m1", "the secret", "")))
	require.NoError(t, b.Close())
	require.Contains(t, c.only(t, "search_memory").attributes["gen_ai.memory.records"], "the secret")
}

func TestTracesOverGRPC(t *testing.T) {
	c, endpoint := collectGRPC(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_SERVICE_NAME", "memory-of-the-team")
	b := up(t, t.TempDir())
	b.read(sampledA, b.post(sampledA, message(t, "m1", "x", "")))
	require.NoError(t, b.Close())
	require.Equal(t, traceA, c.of(t, "graph", "m1").traceID())
	require.Equal(t, "memory-of-the-team", c.service)
}

func TestSamplerFromEnvironment(t *testing.T) {
	c := traced(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	b := up(t, t.TempDir())
	b.read("", b.post("", message(t, "m1", "x", "")))
	b.read(sampledA, b.post(sampledA, message(t, "m2", "x", "")))
	require.NoError(t, b.Close())
	require.NotEmpty(t, c.all())
	for _, s := range c.all() {
		require.Equal(t, traceA, s.traceID(), "%s", s.Name)
	}
}

func TestEventsWithoutTraceJoinTheRequests(t *testing.T) {
	c := traced(t)
	b := up(t, t.TempDir())
	seq := b.post(sampledA, message(t, "m1", "x", ""), message(t, "m2", "y", ""))
	b.read("", seq)
	m, err := b.Log.Get(mnemetest.Context(t), seq)
	require.NoError(t, err)
	stored, _, err := m.Decode()
	require.NoError(t, err)
	require.Empty(t, stored.Extension("traceparent"), "a stored event is exactly what the producer sent")
	require.NoError(t, b.Close())
	publish := c.only(t, "publish AGENT_EVENTS")
	require.Equal(t, traceA, publish.traceID())
	require.Equal(t, 2, publish.attributes["messaging.batch.message_count"])
	for _, event := range []string{"m1", "m2"} {
		require.Equal(t, publish.id(), c.of(t, "graph", event).parent())
	}
}

func TestEventStaysInTheTraceItNames(t *testing.T) {
	c := traced(t)
	b := up(t, t.TempDir())
	b.read("", b.post(sampledA, message(t, "m1", "x", sampledB)))
	b.read("", b.post(sampledA, message(t, "m2", "x", sampledB), message(t, "m3", "x", ""), message(t, "m4", "x", sampledA)))
	require.NoError(t, b.Close())

	posts, publishes := c.named("POST /v1/events"), c.named("publish AGENT_EVENTS")
	require.Equal(t, spanB, publishes[0].parent(), "all its events name that trace")
	require.Equal(t, posts[0].SpanId, publishes[0].Links[0].SpanId)
	require.Equal(t, publishes[0].id(), c.of(t, "graph", "m1").parent())

	require.Equal(t, posts[1].id(), publishes[1].parent(), "they name several")
	require.Len(t, publishes[1].Links, 2)
	require.Equal(t, spanB, c.of(t, "graph", "m2").parent())
	require.Equal(t, publishes[1].id(), c.of(t, "graph", "m3").parent())
	require.Equal(t, publishes[1].id(), c.of(t, "graph", "m4").parent())
}

func TestSkippedEventIsAnErrorInItsTrace(t *testing.T) {
	c := traced(t)
	b := up(t, t.TempDir())
	b.overNATS(message(t, "m1", "the first", sampledA))
	b.overNATS(message(t, "m1", "another content", sampledB))
	b.overNATS(message(t, "m2", "x", sampledB))
	b.read("", 3)
	require.NoError(t, b.Close())
	var outcomes []any
	for _, s := range c.named("process graph") {
		outcomes = append(outcomes, s.attributes["mneme.event.outcome"])
		if s.attributes["mneme.event.outcome"] == "invalid" {
			require.Equal(t, v1.Status_STATUS_CODE_ERROR, s.Status.Code)
			require.Equal(t, "invalid", s.attributes["error.type"])
			require.Equal(t, traceB, s.traceID())
		}
	}
	require.Equal(t, []any{"applied", "invalid", "applied"}, outcomes)
}

func TestUnsampledTracesAreNotRecorded(t *testing.T) {
	c := traced(t)
	b := up(t, t.TempDir())
	b.overNATS(message(t, "m1", "x", droppedA))
	b.overNATS(message(t, "m2", "x", ""))
	b.read(droppedA, b.post(droppedA, message(t, "m3", "x", droppedA)))
	require.NoError(t, b.Close())
	require.Empty(t, c.all())
}

func TestRebuiltReadModelDoesNotTraceThePast(t *testing.T) {
	data := t.TempDir()
	c := traced(t)
	b := up(t, data)
	b.read("", b.post(sampledA, message(t, "m1", "x", "")))
	require.NoError(t, b.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(data, "models")))

	b = up(t, data)
	b.read("", b.post(sampledA, message(t, "m2", "x", "")))
	require.NoError(t, b.Close())
	require.Len(t, c.named("process graph"), 2)
	c.of(t, "graph", "m2")
}

func TestUnresponsiveEndpointBlocksNothing(t *testing.T) {
	mnemetest.Long(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer silent.Close()
	defer close(release)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()

	for name, endpoint := range map[string]string{"nobody listens": closed, "it is silent": silent.URL, "it refuses": refusing.URL} {
		for _, protocol := range []string{"http/protobuf", "grpc"} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
				t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
				t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
				t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", strconv.FormatInt(2*mnemetest.Patience.Milliseconds(), 10))
				b := up(t, t.TempDir())
				for i := range 20 {
					b.read(sampledA, b.post(sampledA, message(t, fmt.Sprint("m", i), "x", "")))
				}
				began := time.Now()
				require.NoError(t, b.Close())
				require.Less(t, time.Since(began), mnemetest.Patience, "the exporter itself would wait longer")
				require.LessOrEqual(t, len(b.logged.lines(t, "spans can't be exported")), 1)
				if name == "it refuses" && protocol == "http/protobuf" {
					require.Len(t, b.logged.lines(t, "spans can't be exported"), 1)
				}
			})
		}
	}
}
