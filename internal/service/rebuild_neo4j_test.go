package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// aRebuildInNeo4jIsSeenByNobody is run by [TestOnNeo4j].
func aRebuildInNeo4jIsSeenByNobody(t *testing.T, uri string) {
	models := settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: uri}}
	data := t.TempDir()
	i := upOn(t, data, models)
	last := i.fill(6, 100)
	i.applied(last)
	before := i.readings(6, last)
	stores := worker.NewStores(data, models)
	defer func() { require.NoError(t, stores.Close()) }()

	c := i.crowd()
	i.rebuild("all")
	for _, name := range []string{"graph", "files"} {
		i.became(name, "serving")
		require.Equal(t, before, i.readings(6, last), "in the middle of the change")
	}
	only(t, stores.Generations(), "graph", 2)
	only(t, stores.Generations(), "files", 2)
	c.end()
	require.Positive(t, c.reads.Load())
	require.Equal(t, 2, i.status("graph").Generation)
	i.applied(c.published.Load())
	require.Equal(t, before, i.readings(6, last))
	i.hashes()

	i.rebuild("graph") // to be canceled; must leave nothing
	require.Eventually(t, func() bool { return len(builds(t, stores.Generations(), "graph").Others) > 0 }, patience, 10*time.Millisecond)
	if status, body := i.ask("DELETE", "/v1/rebuilds/graph", ""); status != 200 {
		require.Contains(t, body, "no rebuild is under way") // it finished before the cancel
	}
	require.Eventually(t, func() bool { s := i.rebuilds()["graph"].State; return s == "" || s == "serving" }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return len(builds(t, stores.Generations(), "graph").Others) == 0 }, patience, 10*time.Millisecond)
	require.NoError(t, i.Close())

	i = upOn(t, data, models) // it starts with the serving generation
	require.Equal(t, before, i.readings(6, last))
	i.rebuild("graph")
	i.became("graph", "serving")
	require.Equal(t, before, i.readings(6, last))
	i.hashes()
}

// sharing is a log of several partitions with processes that share the read model "graph"
// in Neo4j. For the leases they are separate processes: each has its own connection and name.
type sharing struct {
	*testing.T
	server *embedded.Server
	models settings.Models
	log    *eventlog.Log
}

func newSharing(t *testing.T, uri string, partitions int) *sharing {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", MaxBytes: 1 << 30})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	_, err = server.Apply(mnemetest.Context(t), natsdeploy.Settings{MaxBytes: 1 << 30, Partitions: partitions})
	require.NoError(t, err)
	c := &sharing{T: t, server: server, models: settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: uri}}}
	c.log = c.open()
	return c
}

func (c *sharing) open() *eventlog.Log {
	c.Helper()
	conn, err := nats.Connect(c.server.ClientURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(c, err)
	c.Cleanup(conn.Close)
	log, err := eventlog.Open(mnemetest.Context(c), conn)
	require.NoError(c, err)
	return log
}

// ingestor runs the program ingestor.
func (c *sharing) ingestor() *worker.Consumer[*graph.Unit, graph.Store] {
	c.Helper()
	log := c.open()
	logger := slog.New(slog.DiscardHandler)
	tell, err := telemetry.Setup(c.Context(), "test", settings.Telemetry{}, logger)
	require.NoError(c, err)
	leases, err := worker.NewLeases(log, "ingestor")
	require.NoError(c, err)
	stores := worker.NewStores(c.TempDir(), c.models)
	w, err := worker.NewConsumer(c.Context(), worker.Parts{Retention: retention, Log: log, Stores: stores, Telemetry: tell, Logger: logger, Leases: leases}, readmodel.Graph())
	require.NoError(c, err)
	w.Start()
	c.Cleanup(func() {
		require.NoError(c, w.Stop())
		require.NoError(c, stores.Close())
		tell.Stop()
	})
	return w
}

// holders records which processes hold leases of a generation, until end is called.
func (c *sharing) holders(generation int) (end func() map[string]bool) {
	c.Helper()
	js, err := jetstream.New(c.log.Conn())
	require.NoError(c, err)
	bucket, _, err := natsdeploy.ApplyLeases(mnemetest.Context(c), js, 0)
	require.NoError(c, err)
	watcher, err := bucket.Watch(c.Context(), fmt.Sprintf("lease.neo4j.graph.%d.*", generation))
	require.NoError(c, err)
	found := map[string]bool{}
	var ended sync.WaitGroup
	ended.Go(func() {
		for e := range watcher.Updates() {
			if e != nil && e.Operation() == jetstream.KeyValuePut {
				found[strings.TrimSpace(string(e.Value()))] = true
			}
		}
	})
	return func() map[string]bool {
		require.NoError(c, watcher.Stop())
		ended.Wait()
		return found
	}
}

func (c *sharing) publish(conversations, from, to int) (last uint64) {
	c.Helper()
	for n := range conversations {
		acks, err := c.log.PublishAll(mnemetest.Context(c), "default", turns(c.T, fmt.Sprintf("c%d", n), from, to))
		require.NoError(c, err)
		last = acks[len(acks)-1].Seq
	}
	return last
}

// applied waits until a generation has applied the whole log.
func (c *sharing) applied(g projection.Generations, generation int) {
	c.Helper()
	state, err := c.log.State(mnemetest.Context(c))
	require.NoError(c, err)
	require.Eventually(c, func() bool {
		cps, err := g.Checkpoints(c.Context(), "graph", generation)
		if err != nil {
			return false
		}
		total := uint64(0)
		for _, cp := range cps {
			total += cp.Applied
		}
		return total == state.Messages
	}, patience, 10*time.Millisecond)
}

// processesThatShareANeo4jRebuildTogether is run by [TestOnNeo4j].
func processesThatShareANeo4jRebuildTogether(t *testing.T, uri string) {
	c := newSharing(t, uri, 4)
	one, two := c.ingestor(), c.ingestor()
	c.publish(16, 0, 40)
	stores := worker.NewStores(t.TempDir(), c.models)
	defer func() { require.NoError(t, stores.Close()) }()
	g := stores.Generations()
	c.applied(g, 1)

	control, err := rebuild.NewControl(c.log.Conn(), stores.Backend())
	require.NoError(t, err)
	rebuilds := rebuild.New(control, g, c.log, func(context.Context) error { return nil }, "graph")
	holders := c.holders(2)
	_, err = rebuilds.Ask(t.Context(), "graph", false)
	require.NoError(t, err)
	_, err = rebuilds.Ask(t.Context(), "graph", false)
	require.ErrorIs(t, err, rebuild.ErrRebuilding)
	c.publish(16, 40, 50) // during the rebuild
	require.Eventually(t, func() bool {
		list, err := rebuilds.List(t.Context())
		return err == nil && list[0].State == rebuild.Serving
	}, patience, 10*time.Millisecond)
	only(t, g, "graph", 2)
	require.Len(t, holders(), 2, "both have helped")
	c.publish(16, 50, 55)
	c.applied(g, 2)
	for _, w := range []*worker.Consumer[*graph.Unit, graph.Store]{one, two} {
		require.NoError(t, w.Ready(t.Context()))
		require.Eventually(t, func() bool {
			held := 0
			for _, s := range w.Status() {
				if s.State == projection.StateLive {
					held++
				}
			}
			return held == 2
		}, patience, time.Millisecond)
	}

	// A third process starts with the serving generation; two stops while the next is built.
	three := c.ingestor()
	_, err = rebuilds.Ask(t.Context(), "graph", false)
	require.NoError(t, err)
	require.NoError(t, two.Stop())
	only(t, g, "graph", 3)
	c.publish(16, 55, 60)
	c.applied(g, 3)
	require.NoError(t, three.Ready(t.Context()))

	models := service.NewModels(t.TempDir(), stores)
	read, err := models.Graph(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, read.Generation)
	v, err := verifyGraph(t, c.log, read.Model)
	require.NoError(t, err)
	require.True(t, v.Equal(), "%v", v.Differences)
	read.Release()
	require.NoError(t, models.Close())
}
