package projection_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

func TestLeasesInAClusterOfServers(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	cluster := natstest.Start(t)
	urls := strings.Split(cluster.URL(), ",")
	connect := func(name string, urls ...string) *nats.Conn {
		conn, err := eventlog.Connect(strings.Join(urls, ","), name, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		return conn
	}
	b := &bench{t: t, path: sqlitestore.Path(t.TempDir(), "graph", 1), conn: connect("publisher", urls[1:]...)}
	js, err := jetstream.New(b.conn)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // no server answers before a leader is elected
		defer cancel()
		_, err := natsdeploy.Apply(ctx, js, natsdeploy.Settings{Partitions: 8, Replicas: 3, MaxBytes: 64 << 20})
		return err == nil
	}, mnemetest.Patience, 100*time.Millisecond)
	b.log, err = eventlog.Open(mnemetest.Context(t), b.conn)
	require.NoError(t, err)
	b.openStore()
	t.Cleanup(func() { _ = b.store.Close() })
	n := 0
	start := func() *worker {
		n++
		name := fmt.Sprint("w", n)
		return b.workerOn(connect(name, urls...), name, graph.Projection(), b.store)
	}
	workers := []*worker{start(), start(), start()}
	awaitShared(t, workers...)
	bucket, err := js.Stream(mnemetest.Context(t), "KV_"+natsdeploy.LeaseBucket)
	require.NoError(t, err)
	require.Equal(t, 3, bucket.CachedInfo().Config.Replicas)
	for range 5 {
		b.many(10, 40)
		began := time.Now()
		workers[0].Stop()
		workers = workers[1:]
		awaitShared(t, workers...)
		t.Logf("handed over in %s", time.Since(began))
		workers = append(workers, start())
		awaitShared(t, workers...)
	}
	began := time.Now()
	workers[0].kill()
	workers = append(workers[1:], start())
	awaitShared(t, workers...)
	t.Logf("taken over after %s", time.Since(began))
	b.many(50, 40)
	b.holds(100)

	// Losing one of three servers does no harm, whatever it led.
	cluster.Stop(0)
	e, err := events.New("c", "test", "after", &events.MessageCreated{MessageID: "after", Role: "user", Content: "hello"})
	require.NoError(t, err)
	var ack eventlog.Ack
	require.Eventually(t, func() bool {
		ack, err = b.log.Publish(t.Context(), "t", e)
		return err == nil
	}, mnemetest.Patience, 10*time.Millisecond)
	began = time.Now()
	require.Eventually(t, func() bool {
		for n := range b.log.Partitions() {
			if b.checkpointOf(n).Seq >= ack.Seq {
				return true
			}
		}
		return false
	}, mnemetest.Patience, time.Millisecond)
	t.Logf("applied %s after the loss of a server", time.Since(began))
	awaitShared(t, workers...)
}
