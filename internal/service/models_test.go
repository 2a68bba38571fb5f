package service_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
)

// blackHole accepts connections and never answers. It returns its address and the number of
// connections so far.
func blackHole(t *testing.T) (address string, accepted *atomic.Int64) {
	t.Helper()
	accepted = new(atomic.Int64)
	return mnemetest.Listen(t, func(net.Conn) { accepted.Add(1) }), accepted
}

// Readers of a server that does not answer share one attempt to reach it, and need not wait
// for its end.
func TestOpeningAReadModelIsSharedAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	address, accepted := blackHole(t)
	models := service.NewModels(t.TempDir(), worker.NewStores(t.TempDir(), settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: "bolt://" + address, ConnectTimeout: patience}}))
	began := time.Now()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := models.Graph(ctx); err == nil {
				t.Error("a server that never answers cannot be opened")
			} else if ctx.Err() == nil {
				t.Errorf("ended before its context: %v", err)
			}
		})
	}
	all.Wait()
	require.Less(t, time.Since(began), time.Minute, "nobody waits for the others")
	require.Eventually(t, func() bool { return accepted.Load() > 0 }, patience, time.Millisecond)
	began = time.Now()
	require.NoError(t, models.Close())
	require.Less(t, time.Since(began), time.Minute, "closing ends the attempt")
	require.EqualValues(t, 1, accepted.Load())
	_, err := models.Graph(t.Context())
	require.ErrorContains(t, err, "shutting down")
}
