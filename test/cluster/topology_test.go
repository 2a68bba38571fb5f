package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/eventlog"
)

// The partitions and replicas of deploy/k8s.
const (
	partitions = 8
	replicas   = 3
	logSize    = 4 << 30
)

// topology is everything that runs.
type topology struct {
	t        *testing.T
	nats     []*natsServer
	neo4j    string
	workers  map[string][]*process // by program
	apis     []*process
	programs int // number of programs started
}

// setup starts everything and waits until the partitions are shared.
func setup(t *testing.T) *topology {
	t.Helper()
	c := &topology{t: t, workers: map[string][]*process{}}
	c.neo4j = neo4jtest.Own(t).URI()
	c.nats = startNATS(t)
	for range 2 {
		c.add("ingestor")
		c.add("file-tracker")
		c.add("summarizer")
		c.apis = append(c.apis, c.run("context-api"))
	}
	c.awaitShared()
	for _, api := range c.apis {
		api.await("/readyz")
	}
	return c
}

// as returns the URL with which a user connects to the NATS servers.
func (c *topology) as(user string) string {
	var urls []string
	for _, s := range c.nats {
		urls = append(urls, "nats://"+user+":"+password(user)+"@"+s.host)
	}
	return strings.Join(urls, ",")
}

// run starts a program with the settings of deploy/k8s, except that summaries are due earlier.
func (c *topology) run(name string) *process {
	c.t.Helper()
	c.programs++
	listen := "127.0.0.1:" + mnemetest.FreePort(c.t)
	environment := []string{
		"MNEME_NATS_URL=" + c.as(name), "MNEME_STORE=neo4j", "MNEME_NEO4J_URI=" + c.neo4j, "MNEME_LISTEN=" + listen, "MNEME_DATA=" + c.t.TempDir(),
		"GOMEMLIMIT=400MiB",
	}
	if name != "context-api" {
		environment = append(environment, fmt.Sprint("MNEME_PARTITIONS=", partitions), fmt.Sprint("MNEME_REPLICAS=", replicas), fmt.Sprint("MNEME_LOG_SIZE=", logSize))
	}
	if name == "summarizer" {
		environment = append(environment, "MNEME_MAX_CONTEXT_CHARS=30000", "MNEME_MAX_TURNS_BEFORE_SUMMARIZE=10")
	}
	return start(c.t, fmt.Sprint(name, "-", c.programs), "http://"+listen, environment, program(c.t, name))
}

// add starts one more worker.
func (c *topology) add(name string) { c.workers[name] = append(c.workers[name], c.run(name)) }

// first removes and returns the oldest worker.
func (c *topology) first(name string) *process {
	p := c.workers[name][0]
	c.workers[name] = c.workers[name][1:]
	return p
}

// driven matches a line of /readyz about a partition that a worker drives.
var driven = regexp.MustCompile(`(?m)^(\w+) partition (\d+): live`)

// awaitShared waits until the workers of each program together drive each partition of each of its
// projections once, evenly distributed.
func (c *topology) awaitShared() {
	c.t.Helper()
	for name, list := range c.workers {
		eventually(c.t, fmt.Sprintf("%d of %s share the partitions evenly", len(list), name), func() bool {
			seen, held := map[string]bool{}, map[string][]int{} // by projection and partition; by projection, of each worker
			for i, p := range list {
				for _, f := range driven.FindAllStringSubmatch(p.answers("/readyz"), -1) {
					if seen[f[0]] {
						return false
					}
					seen[f[0]] = true
					if held[f[1]] == nil {
						held[f[1]] = make([]int, len(list))
					}
					held[f[1]][i]++
				}
			}
			for _, counts := range held {
				total := 0
				for _, n := range counts {
					total += n
				}
				if total != partitions || slices.Max(counts)-slices.Min(counts) > 1 {
					return false
				}
			}
			return len(held) > 0
		})
	}
}

// leader returns the server that leads the stream. It also checks that there are three
// replicas and that the stream has the configured size.
func (c *topology) leader() *natsServer {
	c.t.Helper()
	conn, err := eventlog.Connect(c.as("admin"), "test", slog.New(slog.DiscardHandler))
	require.NoError(c.t, err)
	defer conn.Close()
	var (
		leader *natsServer
		size   int64
	)
	eventually(c.t, "the stream has a leader, and two other copies that are not behind", func() bool {
		info := streamInfo(conn)
		if info == nil || info.Cluster == nil || len(info.Cluster.Replicas) != replicas-1 {
			return false
		}
		for _, r := range info.Cluster.Replicas {
			if !r.Current || r.Offline {
				return false
			}
		}
		leader, size = nil, info.Config.MaxBytes
		for _, s := range c.nats {
			if s.name == info.Cluster.Leader {
				leader = s
			}
		}
		return leader != nil
	})
	require.EqualValues(c.t, logSize, size)
	return leader
}

// streamInfo returns the servers' information about the stream, nil if they don't answer.
func streamInfo(conn *nats.Conn) *jetstream.StreamInfo {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, natsdeploy.Stream)
	if err != nil {
		return nil
	}
	return stream.CachedInfo()
}

// mneme runs a command against one of the APIs.
func (c *topology) mneme(api *process, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(program(c.t, "mneme"), append(args, "--json", "--url", api.url, "--nats-url", c.as("operator"))...)
	var said strings.Builder
	cmd.Env, cmd.Stderr = []string{}, &said
	out, err := cmd.Output()
	require.NoError(c.t, err, "mneme %s: %s%s", strings.Join(args, " "), out, &said)
	return strings.TrimSpace(string(out))
}
