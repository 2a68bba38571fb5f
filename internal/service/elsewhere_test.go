package service_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/doctor"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/worker"
)

// Separate programs share the files of one directory. One that was started on another directory follows the log, but
// nobody reads what it writes.
func TestStatusNamesAProcessOnAnotherDataDirectory(t *testing.T) {
	c := &cluster{t: t}
	var err error
	c.nats, err = embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", MaxBytes: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(c.nats.Stop)
	t.Setenv("MNEME_NATS_URL", c.nats.ClientURL())
	t.Setenv("MNEME_LOG_SIZE", "33554432")
	t.Setenv("MNEME_DATA", t.TempDir())
	t.Setenv("MNEME_LOG_LEVEL", "error")
	_, stop := c.start(worker.RunIngestor)
	c.api, _ = c.start(service.RunContextAPI(nil))
	begin := func(conversation string) {
		status, body := c.ask(http.MethodPost, c.api+"/v1/conversations", map[string]string{"id": conversation})
		require.Equal(t, http.StatusCreated, status, "%s", body)
	}
	graph := func(s httpapi.Status) (graph httpapi.ProjectionStatus) {
		for _, p := range s.Projections {
			if p.Name == "graph" {
				graph = p
			}
		}
		return graph
	}
	c.await("the ingestor runs", func(s httpapi.Status) bool { return live(s, "graph") == 1 })
	begin("c1")
	c.await("it is applied", func(s httpapi.Status) bool { return graph(s).Checkpoint > 0 })
	stop()
	t.Setenv("MNEME_DATA", t.TempDir())
	c.start(worker.RunIngestor)
	begin("c2")
	status := c.await("the other directory is noticed", func(s httpapi.Status) bool { p := graph(s); return p.Elsewhere() })
	p := graph(status)
	require.Contains(t, p.Error, "in another data directory")
	require.Empty(t, p.Holder)
	level, what, remedy := doctor.Judge(p, status.Rebuilds)
	require.Equal(t, doctor.Failed, level)
	require.Equal(t, p.Error, what)
	require.Contains(t, remedy, "MNEME_DATA")
	for _, process := range status.Processes {
		for _, d := range process.Partitions {
			require.True(t, d.Projection != "graph" || d.Lag == 0, "the process has applied the event: %+v", process)
		}
	}
}
