package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/worker"
)

// A balancer that took every context-api out of service while NATS is down would end the reads, which need no NATS.
func TestReadersAreReadyWhileNATSIsDown(t *testing.T) {
	c := &cluster{t: t}
	var err error
	server := embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", MaxBytes: 64 << 20}
	c.nats, err = embedded.Start(t.Context(), server)
	require.NoError(t, err)
	t.Cleanup(c.nats.Stop)
	t.Setenv("MNEME_NATS_URL", c.nats.ClientURL())
	t.Setenv("MNEME_LOG_SIZE", "33554432")
	t.Setenv("MNEME_DATA", t.TempDir())
	t.Setenv("MNEME_LOG_LEVEL", "error")
	_, stopIngestor := c.start(worker.RunIngestor)
	_, stopTracker := c.start(worker.RunFileTracker)
	api, stopAPI := c.start(service.RunContextAPI(nil))
	ready := func(says string) func() bool {
		return func() bool {
			status, body := c.ask(http.MethodGet, api+"/readyz", nil)
			return status == http.StatusOK && strings.Contains(string(body), says)
		}
	}
	require.Eventually(t, ready("graph partition 0: live, lag 0"), mnemetest.Patience, 10*time.Millisecond)

	const id = "checkout" // which could be the short name of another conversation
	var created struct{ Seq uint64 }
	status, body := c.ask(http.MethodPost, api+"/v1/conversations", map[string]string{"id": id})
	require.Equal(t, http.StatusCreated, status, "%s", body)
	require.NoError(t, json.Unmarshal(body, &created))
	status, body = c.ask(http.MethodGet, fmt.Sprintf("%s/v1/conversations/%s?at_least=%d", api, id, created.Seq), nil)
	require.Equal(t, http.StatusOK, status, "%s", body)

	stopIngestor()
	stopTracker()
	c.nats.Stop()
	require.Eventually(t, ready("lag unknown"), mnemetest.Patience, 10*time.Millisecond)
	require.True(t, ready("graph: answers")())
	status, body = c.ask(http.MethodGet, api+"/v1/conversations", nil)
	require.Equal(t, http.StatusOK, status, "%s", body)
	status, body = c.ask(http.MethodGet, api+"/v1/conversations/"+id, nil)
	require.Equal(t, http.StatusOK, status, "%s", body)
	status, body = c.ask(http.MethodGet, api+"/v1/conversations/d91ec3b9", nil) // perhaps a short name
	require.Equal(t, http.StatusNotFound, status, "%s", body)

	server.Listen = strings.TrimPrefix(c.nats.ClientURL(), "nats://")
	again, err := embedded.Start(t.Context(), server) // or its end waits for the audit log
	require.NoError(t, err)
	t.Cleanup(again.Stop)
	stopAPI()
}
