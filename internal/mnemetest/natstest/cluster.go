// Package natstest gives tests real NATS servers inside the process: one with the log, a cluster, or one with
// permissions.
package natstest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
)

// readyWithin is how long servers may take to become ready.
const readyWithin = mnemetest.Patience

// Cluster is three servers with our settings, n0 to n2, until the end of the test.
type Cluster struct {
	Servers []*server.Server

	t       testing.TB
	options []*server.Options
	log     troubles
}

// Start starts the servers. They take a moment more to choose their leaders.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var routes []*url.URL
	for range 3 {
		routes = append(routes, &url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", mnemetest.FreePort(t))})
	}
	for n, route := range routes {
		port, err := strconv.Atoi(route.Port())
		require.NoError(t, err)
		o := embedded.ServerOptions(embedded.ServerSettings{StoreDir: t.TempDir(), Port: freePort(t)})
		o.ServerName = fmt.Sprint("n", n)
		o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
		o.NoSigs, o.Routes = true, routes
		c.options = append(c.options, o)
		c.Servers = append(c.Servers, nil)
		c.run(n)
	}
	for _, s := range c.Servers {
		require.True(t, s.ReadyForConnections(readyWithin), "%s is not ready: %s", s.Name(), &c.log)
	}
	return c
}

func (c *Cluster) run(n int) {
	c.t.Helper()
	s, err := server.NewServer(c.options[n].Clone())
	require.NoError(c.t, err)
	c.Servers[n] = s
	s.SetLoggerV2(&c.log, false, false, false)
	s.Start()
	c.t.Cleanup(func() { shutdown(s) })
}

// Stop ends a server, whatever it leads.
func (c *Cluster) Stop(n int) { shutdown(c.Servers[n]) }

// URL returns the URL for clients, which connect to any running server.
func (c *Cluster) URL() string {
	var urls []string
	for _, o := range c.options {
		urls = append(urls, "nats://"+net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	}
	return strings.Join(urls, ",")
}

// Log makes the log once the servers have a leader, and returns a connection to it.
func (c *Cluster) Log() (*nats.Conn, jetstream.JetStream) {
	c.t.Helper()
	conn, err := nats.Connect(c.URL(), nats.MaxReconnects(-1), nats.Timeout(mnemetest.Handshake))
	require.NoError(c.t, err)
	c.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(c.t, err)
	require.Eventually(c.t, func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second) // no server answers before a leader is elected
		defer cancel()
		_, err := natsdeploy.Apply(ctx, js, natsdeploy.Settings{MaxBytes: 64 << 20})
		return err == nil
	}, mnemetest.Patience, 100*time.Millisecond)
	return conn, js
}

// Leader returns the number of the server that leads the log, once the other copies have
// caught up.
func (c *Cluster) Leader(conn *nats.Conn) (leader int) {
	c.t.Helper()
	js, err := jetstream.New(conn)
	require.NoError(c.t, err)
	require.Eventually(c.t, func() bool {
		stream, err := js.Stream(c.t.Context(), natsdeploy.Stream)
		if err != nil {
			return false
		}
		info := stream.CachedInfo().Cluster
		for _, r := range info.Replicas {
			if !r.Current || r.Offline {
				return false
			}
		}
		for n, o := range c.options {
			if o.ServerName == info.Leader {
				leader = n
				return true
			}
		}
		return false
	}, readyWithin, 50*time.Millisecond)
	return leader
}

func shutdown(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := strconv.Atoi(mnemetest.FreePort(t))
	require.NoError(t, err)
	return port
}
