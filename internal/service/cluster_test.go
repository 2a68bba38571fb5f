package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

// cluster is a NATS server with the programs that use it, all in this process.
type cluster struct {
	t    *testing.T
	nats *embedded.Server
	api  string
}

// start runs a program until stop is called, and returns its URL. Programs read their
// settings from the environment, which the whole process shares, so start them one by one.
func (c *cluster) start(run func(context.Context) error) (url string, stop func()) {
	c.t.Helper()
	address := "127.0.0.1:" + mnemetest.FreePort(c.t)
	c.t.Setenv("MNEME_LISTEN", address)
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = func() {
		cancel()
		if err, ok := <-ended; ok {
			close(ended)
			require.NoError(c.t, err)
		}
	}
	c.t.Cleanup(stop)
	require.Eventually(c.t, func() bool {
		status, _ := c.ask(http.MethodGet, "http://"+address+"/healthz", nil)
		return status == http.StatusOK
	}, mnemetest.Patience, 10*time.Millisecond)
	return "http://" + address, stop
}

func (c *cluster) ask(method, url string, body any) (status int, answer []byte) {
	raw, err := json.Marshal(body)
	require.NoError(c.t, err)
	request, err := http.NewRequestWithContext(c.t.Context(), method, url, bytes.NewReader(raw))
	require.NoError(c.t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	require.NoError(c.t, err)
	return response.StatusCode, answer
}

// await waits until ok accepts the status.
func (c *cluster) await(what string, ok func(httpapi.Status) bool) (s httpapi.Status) {
	c.t.Helper()
	deadline := time.Now().Add(4 * time.Minute) // enough for a cold Neo4j on a busy machine
	for {
		s = httpapi.Status{}
		if status, body := c.ask(http.MethodGet, c.api+"/v1/status", nil); status == http.StatusOK {
			require.NoError(c.t, json.Unmarshal(body, &s))
			if ok(s) {
				return s
			}
		}
		require.True(c.t, time.Now().Before(deadline), "timed out waiting until %s: %+v", what, s)
		time.Sleep(10 * time.Millisecond)
	}
}

// programs counts the processes of each program.
func programs(s httpapi.Status) map[string]int {
	count := map[string]int{}
	for _, p := range s.Processes {
		count[p.Program]++
	}
	return count
}

// live counts the partitions of a projection that a process drives and that have caught up.
func live(s httpapi.Status, projection string) (n int) {
	for _, p := range s.Projections {
		if p.Name == projection && p.State == "live" && p.Holder != "" && p.Lag == 0 {
			n++
		}
	}
	return n
}

// exercise runs the given number of ingestors and of summarizers, whose model rejects its key.
func (c *cluster) exercise(workers int) {
	const partitions = 4
	t := c.t
	var err error
	c.nats, err = embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", MaxBytes: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(c.nats.Stop)
	_, err = c.nats.Apply(t.Context(), natsdeploy.Settings{Partitions: partitions})
	require.NoError(t, err)
	t.Setenv("MNEME_NATS_URL", c.nats.ClientURL())
	t.Setenv("MNEME_PARTITIONS", fmt.Sprint(partitions))
	t.Setenv("MNEME_DATA", t.TempDir())
	t.Setenv("MNEME_LOG_LEVEL", "error")
	stops := []func(){}
	for range workers {
		_, stop := c.start(worker.RunIngestor)
		stops = append(stops, stop)
	}
	c.api, _ = c.start(service.RunContextAPI(nil))
	c.start(worker.RunFileTracker)
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Failure(http.StatusUnauthorized, "invalid_api_key", "no such key"))
	for name, value := range map[string]string{
		"MNEME_SUMMARY_WRITER": "openai", "MNEME_LLM_URL": endpoint.URL(), "MNEME_LLM_MODEL": "small", "MNEME_TITLES": "false", "MNEME_MAX_CONTEXT_CHARS": "30000",
	} {
		t.Setenv(name, value)
	}
	for range workers {
		c.start(service.RunSummarizer)
	}

	conn, err := eventlog.Connect(c.nats.ClientURL(), "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer conn.Close()
	var log *eventlog.Log
	require.Eventually(t, func() bool {
		log, err = eventlog.Open(t.Context(), conn)
		return err == nil
	}, mnemetest.Patience, 10*time.Millisecond)
	for i := range 20 {
		e, err := events.New(fmt.Sprint("c", i), "test", "1", &events.MessageCreated{MessageID: "m", Role: "user", Content: "x"})
		require.NoError(t, err)
		_, err = log.Publish(mnemetest.Context(t), "default", e)
		require.NoError(t, err)
	}
	const bad = 21
	require.NoError(t, conn.Publish("mneme.default.c7.message_created", []byte("{")))

	s := c.await("every process and partition is there", func(s httpapi.Status) bool {
		for _, name := range readmodel.Always() {
			if live(s, name) != partitions {
				return false
			}
		}
		return s.Stream.Head == bad && len(s.Processes) == 2*workers+2
	})
	require.Equal(t, map[string]int{"ingestor": workers, "file-tracker": 1, "summarizer": workers, "context-api": 1}, programs(s))
	require.Empty(t, s.ProcessesError)
	names := map[string]httpapi.ProcessStatus{}
	for _, p := range s.Processes {
		require.NotEmpty(t, p.Version)
		require.NotEmpty(t, p.Started)
		names[p.Name] = p
	}
	for _, p := range s.Projections {
		require.Equal(t, readmodel.Find(p.Name).Program, names[p.Holder].Program)
		require.Positive(t, p.Epoch)
		require.Empty(t, p.Error)
	}

	// The process that answers drives nothing; the owner of the partition repairs.
	status, body := c.ask(http.MethodPost, c.api+"/v1/retries", httpapi.RetryRequest{Seq: bad})
	require.Equal(t, http.StatusOK, status, "%s", body)
	var retried httpapi.Retry
	require.NoError(t, json.Unmarshal(body, &retried))
	require.Equal(t, len(readmodel.Always()), retried.Failed, "%s", body)
	require.Len(t, retried.Conversations, len(readmodel.Always()))
	require.Empty(t, retried.Conversations[0].Error)

	_, err = log.PublishAll(mnemetest.Context(t), "default", long(t, "long", 0, 12)) // more than a threshold, less than three
	require.NoError(t, err)
	waits := func(p httpapi.ProjectionStatus) bool {
		return p.Name == "summaries" && p.Partition == log.PartitionOf("default", "long")
	}
	s = c.await("status says why a conversation is not summarized", func(s httpapi.Status) bool {
		return slices.ContainsFunc(s.Projections, func(p httpapi.ProjectionStatus) bool { return waits(p) && p.Error != "" })
	})
	for _, p := range s.Projections {
		if waits(p) {
			require.Contains(t, p.Error, "1 conversation is waiting to be summarized: ")
			require.Contains(t, p.Error, "key")
			continue
		}
		require.Empty(t, p.Error, "%s %d", p.Name, p.Partition)
	}

	for _, stop := range stops {
		stop()
	}
	s = c.await("nobody drives the graph", func(s httpapi.Status) bool { return programs(s)["ingestor"] == 0 && live(s, "graph") == 0 })
	for _, p := range s.Projections {
		if p.Name == "graph" {
			require.Equal(t, []string{"idle", ""}, []string{p.State, p.Holder})
		}
	}
	status, body = c.ask(http.MethodPost, c.api+"/v1/retries", httpapi.RetryRequest{Seq: bad, Projection: "graph"})
	require.Equal(t, http.StatusServiceUnavailable, status, "%s", body)
	require.Contains(t, string(body), "start ingestor")
	status, body = c.ask(http.MethodPost, c.api+"/v1/retries", httpapi.RetryRequest{Seq: bad})
	require.Equal(t, http.StatusOK, status, "the other projection can: %s", body)
}

func TestStatusShowsEveryProcessAndARetryReachesTheOwner(t *testing.T) {
	(&cluster{t: t}).exercise(1)
}

// statusShowsEveryProcessAndARetryReachesTheOwner is run by [TestOnNeo4j].
func statusShowsEveryProcessAndARetryReachesTheOwner(t *testing.T, uri string) {
	t.Setenv("MNEME_STORE", "neo4j")
	t.Setenv("MNEME_NEO4J_URI", uri)
	(&cluster{t: t}).exercise(2)
}
