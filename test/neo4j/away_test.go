package neo4j_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
)

// patience is what programs may take on a busy machine.
const patience = mnemetest.Patience

// lines holds the log of a program.
type lines struct{ mnemetest.Log }

// with returns the lines that contain a text.
func (l *lines) with(text string) (list []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			list = append(list, line)
		}
	}
	return list
}

// get returns an answer and how long it took.
func get(t *testing.T, url string) (status int, body string, took time.Duration) {
	t.Helper()
	began := time.Now()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(raw), time.Since(began)
}

// eventually waits for a status.
func eventually(t *testing.T, url string, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		status, _, _ := get(t, url)
		return status == want
	}, patience, 20*time.Millisecond, url)
}

// publish publishes the events of a history.
func publish(t *testing.T, log *eventlog.Log, messages []eventlog.Message) {
	t.Helper()
	for _, m := range messages {
		r, at, err := m.Decode()
		require.NoError(t, err)
		_, err = log.Publish(mnemetest.Context(t), at.Tenant, r.Event)
		require.NoError(t, err)
	}
}

// verified compares the read models behind an API with a replay of the log in SQLite, up to
// a sequence. It waits while the read models make progress.
func verified(t *testing.T, url string, upTo uint64) {
	t.Helper()
	deadline, applied := time.Now().Add(patience), uint64(0)
	for behind := true; behind; {
		_, body, _ := get(t, url+"/v1/status")
		require.True(t, time.Now().Before(deadline), body)
		var s httpapi.Status
		require.NoError(t, json.Unmarshal([]byte(body), &s), body)
		behind = len(s.Projections) != len(readmodel.Always())
		sum := uint64(0)
		for _, p := range s.Projections {
			behind = behind || p.Checkpoint < upTo
			sum += p.Checkpoint
		}
		if sum > applied {
			deadline, applied = time.Now().Add(patience), sum
		}
		<-pause(20)
	}
	response, err := http.Post(url+"/v1/verify", "application/json", nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	answer := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	var v httpapi.Verification
	require.NoError(t, json.Unmarshal(answer[len(answer)-1], &v), "%s", raw)
	require.True(t, v.Equal, "%s", raw)
	for _, p := range v.Projections {
		require.Equal(t, upTo, p.UpTo)
		require.Zero(t, p.Behind)
	}
}

// readerOf serves what other processes write, as context-api does.
func readerOf(t *testing.T, log *eventlog.Log, models settings.Models, logger *slog.Logger) (url string) {
	t.Helper()
	tell, err := telemetry.Setup(t.Context(), "test", settings.Telemetry{}, logger)
	require.NoError(t, err)
	t.Cleanup(tell.Stop)
	read := service.NewModels(t.TempDir(), worker.NewStores(t.TempDir(), models))
	t.Cleanup(func() { require.NoError(t, read.Close()) })
	trail, err := service.OpenAudit(t.Context(), log.Conn(), settings.Auditing{}, tell, logger)
	require.NoError(t, err)
	t.Cleanup(trail.Close)
	server := httptest.NewServer(httpapi.New(httpapi.Config{Log: log, Models: read, Audit: trail, Logger: logger, Store: "neo4j", NotReady: worker.ErrNotThere, Telemetry: tell}))
	t.Cleanup(server.Close)
	return server.URL
}

// isAbsent begins without the server, which died while its schema was made.
func isAbsent(t *testing.T, o *own) {
	models := settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: o.server.URI()}}
	logged := &lines{}
	logger := slog.New(slog.NewTextHandler(logged, nil))

	// The server is absent at the start.
	type started struct {
		instance *instance.Instance
		err      error
	}
	begun, began := make(chan started, 1), time.Now()
	go func() {
		i, err := instance.Start(t.Context(), instance.Config{Data: t.TempDir(), Models: models, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: logger})
		begun <- started{i, err}
	}()
	require.Eventually(t, func() bool { return len(logged.with("waiting for Neo4j")) > 0 }, patience, time.Millisecond)
	o.restart()
	up := <-begun
	require.NoError(t, up.err)
	t.Cleanup(func() { require.NoError(t, up.instance.Close()) })
	require.LessOrEqual(t, len(logged.with("waiting for Neo4j")), 1+int(time.Since(began)/time.Minute), "one line, and one a minute if it takes so long")
	require.Contains(t, logged.with("waiting for Neo4j")[0], "correct MNEME_NEO4J_URI")
	require.Contains(t, logged.with("waiting for Neo4j")[0], "connection refused")

	reader := readerOf(t, up.instance.Log, models, logger)
	late := readerOf(t, up.instance.Log, models, logger) // opens the read models while the server is absent
	h := storetest.Realistic(3, 8)
	third := len(h.Messages) / 3
	publish(t, up.instance.Log, h.Messages[:third])
	urls := []string{up.instance.HTTPURL(), reader}
	for _, url := range urls {
		eventually(t, url+"/readyz", http.StatusOK)
	}

	// The server dies while events arrive.
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		o.server.Kill()
	}()
	publish(t, up.instance.Log, h.Messages[third:2*third])
	<-killed
	routines, rounds := runtime.NumGoroutine(), 1
	if mnemetest.All {
		rounds = 3
	}
	for range rounds {
		for _, url := range append(urls, late) {
			status, body, took := get(t, url+"/readyz")
			require.Equal(t, http.StatusServiceUnavailable, status, body)
			require.Contains(t, body, "unavailable")
			require.Contains(t, body, "connection refused")
			require.Less(t, took, patience)
			status, body, took = get(t, url+"/v1/conversations/conversation-0/context?tenant=t")
			require.Equal(t, http.StatusServiceUnavailable, status, body)
			require.Contains(t, body, "does not answer")
			require.Less(t, took, patience)
			status, body, _ = get(t, url+"/v1/status")
			require.Equal(t, http.StatusOK, status, body)
			require.Contains(t, body, "connection refused")
		}
	}
	began = time.Now()
	retries := func() (n uint64) {
		for _, s := range up.instance.Status() {
			n += s.Retries
		}
		return n
	}
	before := retries()
	publish(t, up.instance.Log, h.Messages[2*third:])
	requireLag(t, up.instance.HTTPURL(), uint64(len(h.Messages[2*third:])))
	<-pause(3000)
	require.LessOrEqual(t, float64(retries()-before), float64(len(up.instance.Status()))*(5+time.Since(began).Seconds()), "each projector tries again with pauses")
	require.InDelta(t, routines, runtime.NumGoroutine(), 60)
	require.LessOrEqual(t, len(logged.with("projector waits")), 12, "%s", logged.with("projector waits"))

	// The server is back.
	o.restart()
	for _, url := range append(urls, late) {
		eventually(t, url+"/readyz", http.StatusOK)
	}
	verified(t, up.instance.HTTPURL(), uint64(len(h.Messages)))
	status, body, _ := get(t, late+"/v1/conversations/conversation-0/context?tenant=t")
	require.Equal(t, http.StatusOK, status, body)
}

func TestCallsToASilentServerTimeOut(t *testing.T) {
	t.Parallel()
	c := shared(t)
	_, err := openGraph(t, c, generation(t)).Checkpoints(t.Context()) // plans what must be quick below
	require.NoError(t, err)
	p := newProxy(t, c.URI)
	c.URI, c.ConnectTimeout, c.ReadTimeout = p.URI(), 2*time.Second, 2*time.Second // a busy server answers within them
	s := openGraph(t, c, generation(t))
	_, err = s.Checkpoints(t.Context())
	require.NoError(t, err)

	p.fallSilent()
	began := time.Now()
	_, err = s.Checkpoints(t.Context()) // on a connection that was just used
	require.ErrorIs(t, err, projection.ErrUnavailable)
	require.Less(t, time.Since(began), 30*time.Second)
	began = time.Now()
	_, err = s.Checkpoints(t.Context()) // on a new one
	require.ErrorIs(t, err, projection.ErrUnavailable)
	require.Less(t, time.Since(began), 30*time.Second)
}

// requireLag fails unless the status of a graph that does not answer says what it lacks. The published messages are the
// last of their partitions, but for other kinds of events.
func requireLag(t *testing.T, url string, published uint64) {
	t.Helper()
	_, body, _ := get(t, url+"/v1/status")
	var status httpapi.Status
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	for _, p := range status.Projections {
		if p.Name == "graph" {
			require.GreaterOrEqual(t, p.Lag, published, "%+v", p)
			return
		}
	}
	require.Fail(t, "the status has no graph", body)
}
