package telemetry_test

import (
	"database/sql"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

// metrics is what /metrics shows.
type metrics map[string]*dto.MetricFamily

func (b *bundle) metrics() metrics {
	b.t.Helper()
	response, err := http.Get(b.HTTPURL() + "/metrics")
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(b.t, err)
	return families
}

// value adds up the metrics with these labels ("name=value"). A histogram counts by its
// number of observations.
func (m metrics) value(t *testing.T, name string, labels ...string) (total float64) {
	t.Helper()
	require.Contains(t, m, name)
	for _, one := range m[name].Metric {
		have := []string{}
		for _, l := range one.Label {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		if missing := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return slices.Contains(have, l) }); len(missing) > 0 {
			continue
		}
		total += one.GetGauge().GetValue() + one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
	}
	return total
}

// traffic publishes 3 events that are applied, 1 that the log already has, 1 that the
// projections drop, 1 that is refused and 1 that is skipped. Then it reads.
func traffic(b *bundle) {
	b.post("", message(b.t, "m1", "one", ""), message(b.t, "m2", "two", ""))
	b.post("", message(b.t, "m1", "one", ""))
	again := message(b.t, "m1", "one", "")
	b.overNATS(again) // without the id that the log deduplicates by
	status, _ := b.do(http.MethodPost, "/v1/events", "", events.ContentTypeEvent, []byte("{"))
	require.Equal(b.t, http.StatusBadRequest, status)
	b.overNATS(message(b.t, "m2", "another two", ""))
	b.read("", b.post("", message(b.t, "m3", "three", "")))
	status, _ = b.do(http.MethodGet, "/v1/nowhere", "", "", nil)
	require.Equal(b.t, http.StatusNotFound, status)
}

func TestMetricsAgreeWithStatus(t *testing.T) {
	t.Parallel()
	b := up(t, t.TempDir())
	traffic(b)
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(b.status().Projections, func(p httpapi.ProjectionStatus) bool { return p.Checkpoint < 5 })
	}, mnemetest.Patience, 10*time.Millisecond)
	m, s := b.metrics(), b.status()
	require.EqualValues(t, 5, s.Stream.Head)
	require.EqualValues(t, s.Stream.Head, m.value(t, "mneme_log_head"))
	require.EqualValues(t, s.Stream.Messages, m.value(t, "mneme_log_events"))
	require.EqualValues(t, s.Stream.Bytes, m.value(t, "mneme_log_bytes"))
	require.EqualValues(t, 64<<20, m.value(t, "mneme_log_limit_bytes"))
	require.Len(t, s.Projections, len(readmodel.Always()))
	for _, p := range s.Projections {
		at := []string{"projection=" + p.Name, "partition=" + strconv.Itoa(p.Partition)}
		if p.Name == "code" { // it receives no messages, so it refuses none either
			require.Equal(t, []int{0, 0, 0}, []int{int(p.Applied), int(p.Duplicates), int(p.Failed)})
		} else {
			require.Equal(t, []int{3, 1, 1}, []int{int(p.Applied), int(p.Duplicates), int(p.Failed)})
		}
		require.EqualValues(t, p.Checkpoint, m.value(t, "mneme_projection_checkpoint", at...))
		require.EqualValues(t, p.Lag, m.value(t, "mneme_projection_lag_events", at...))
		require.EqualValues(t, s.Stream.Head, m.value(t, "mneme_projection_head", at...))
		require.EqualValues(t, p.Epoch, m.value(t, "mneme_projection_epoch", at...))
		require.EqualValues(t, 1, m.value(t, "mneme_projection_held", at...))
		require.EqualValues(t, p.Applied, m.value(t, "mneme_projection_applied_events_total", at...))
		require.EqualValues(t, p.Duplicates, m.value(t, "mneme_projection_duplicate_events_total", at...))
		require.EqualValues(t, p.Failed, m.value(t, "mneme_projection_failed_events", "projection="+p.Name, "class=invalid"))
		require.Zero(t, m.value(t, "mneme_projection_failed_events", "projection="+p.Name, "class=error"))
		require.EqualValues(t, 1, m.value(t, "mneme_projection_state", append(at, "state="+p.State)...))
		require.EqualValues(t, 1, m.value(t, "mneme_projection_state", at...), "one state at a time")

		batches := m.value(t, "mneme_projection_batch_events", "projection="+p.Name)
		require.Positive(t, batches)
		require.EqualValues(t, 5, m.sum(t, "mneme_projection_batch_events", "projection="+p.Name))
		require.Equal(t, batches, m.value(t, "messaging_process_duration_seconds", "messaging_consumer_group_name="+p.Name))
		for _, phase := range []string{"decode", "apply", "commit"} {
			require.Equal(t, batches, m.value(t, "mneme_projection_phase_duration_seconds", "projection="+p.Name, "phase="+phase))
			require.Positive(t, m.sum(t, "mneme_projection_phase_duration_seconds", "projection="+p.Name, "phase="+phase))
		}
		if p.Name == "graph" || p.Name == "files" { // this reader waits for these
			require.EqualValues(t, 1, m.value(t, "mneme_await_duration_seconds", "projection="+p.Name, "outcome=reached"))
		}
		require.Positive(t, m.value(t, "mneme_sqlite_file_bytes", "projection="+p.Name, "file=db"))
	}
	require.EqualValues(t, 3, m.value(t, "messaging_client_operation_duration_seconds", "error_type="))
	require.EqualValues(t, 4, m.value(t, "messaging_client_sent_messages_total"))
	require.EqualValues(t, 1, m.value(t, "mneme_publish_duplicate_events_total"))
	require.EqualValues(t, 1, m.value(t, "mneme_publish_refused_events_total", "error_type=invalid"))
	require.Len(t, m["mneme_publish_refused_events_total"].Metric, 8, "the alert needs the 0 before the first refusal")
	require.EqualValues(t, 1, m.value(t, "mneme_nats_connected"))

	route := func(method, route, status string) float64 {
		return m.value(t, "http_server_request_duration_seconds", "http_request_method="+method, "http_route="+route, "http_response_status_code="+status)
	}
	require.EqualValues(t, 3, route("POST", "/v1/events", "201"))
	require.EqualValues(t, 1, route("POST", "/v1/events", "400"))
	require.EqualValues(t, 1, route("GET", "/v1/conversations/{id}/context", "200"))
	require.EqualValues(t, 1, route("GET", "", "404"))
	require.EqualValues(t, 1, m.value(t, "http_server_active_requests"), "the scrape itself")
}

// sum returns the sum of a histogram's observations.
func (m metrics) sum(t *testing.T, name string, labels ...string) (total float64) {
	t.Helper()
	for _, one := range m[name].Metric {
		have := []string{}
		for _, l := range one.Label {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(have, l) }) {
			total += one.GetHistogram().GetSampleSum()
		}
	}
	return total
}

func TestReadThatTimesOutIsCounted(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	b := up(t, data)
	b.read("", b.post("", message(t, "m1", "one", "")))

	// Hold the read model's write lock, so that nothing is applied.
	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(worker.NewStores(data, settings.Models{}).Path("graph", 1)))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	seq := b.post("", message(t, "m2", "two", ""))
	status, _ := b.do(http.MethodGet, fmt.Sprintf("/v1/conversations/c1?at_least=%d&wait_ms=10", seq), "", "", nil)
	require.Equal(t, http.StatusGatewayTimeout, status)
	m := b.metrics()
	require.EqualValues(t, 1, m.value(t, "mneme_await_duration_seconds", "projection=graph", "outcome=timeout"))
	require.EqualValues(t, 1, m.value(t, "mneme_projection_lag_events", "projection=graph"))
	require.EqualValues(t, 1, m.value(t, "mneme_projection_state", "projection=graph", "state=live"))
	_, err = conn.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	b.read("", seq)
	require.Zero(t, b.metrics().value(t, "mneme_projection_lag_events", "projection=graph"))
}

func TestMetricsDocumentationIsComplete(t *testing.T) {
	t.Parallel()
	b := up(t, t.TempDir(), func(c *instance.Config) {
		c.OTLP = []string{"127.0.0.1:0"}
		c.Searching.Embedding = settings.Embedding{
			Embeddings: "openai", EmbeddingsURL: llmtest.Embedding(t).URL(), EmbeddingsModel: "some-model", EmbeddingsBatch: 64, EmbeddingsTimeout: time.Minute, EmbeddingsQueryTimeout: time.Second,
		}
		c.Searching.Reranking = settings.Reranking{Rerank: "tei", RerankURL: "http://127.0.0.1:1", RerankTimeout: time.Second}
	})
	traffic(b)
	span := `{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"some-library"},"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"GET"}]}]}]}`
	exported, err := http.Post(b.OTLPURLs()[0]+"/v1/traces", "application/json", strings.NewReader(span))
	require.NoError(t, err)
	require.NoError(t, exported.Body.Close())
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: b.HTTPURL() + "/mcp", DisableStandaloneSSE: true}, nil)
	require.NoError(t, err)
	_, err = agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "memory_context", Arguments: struct{}{}})
	require.NoError(t, err)
	require.NoError(t, agent.Close())
	exposed := ""
	all := b.metrics()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue // the client's own metrics of runtime and process
		}
		labels := map[string]bool{}
		for _, one := range all[name].Metric {
			for _, l := range one.Label {
				labels["`"+l.GetName()+"`"] = true
			}
		}
		exposed += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, strings.ToLower(all[name].Type.String()), strings.Join(slices.Sorted(maps.Keys(labels)), ", "), all[name].GetHelp())
	}
	text, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	documented := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			documented += line
		}
	}
	require.Equal(t, exposed, documented, "the table of docs/metrics.md should be:\n%s", exposed)
}
