package projection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// awaitCluster waits until the processes report the wanted state.
func (b *bench) awaitCluster(ok func(c projection.Cluster) bool) projection.Cluster {
	b.t.Helper()
	deadline := time.Now().Add(mnemetest.Patience)
	for {
		c, err := projection.ReadCluster(mnemetest.Context(b.t), b.conn)
		require.NoError(b.t, err)
		if ok(c) {
			return c
		}
		require.True(b.t, time.Now().Before(deadline), "timed out: %+v", c)
		time.Sleep(time.Millisecond)
	}
}

// driven counts the partitions that members report as caught up.
func driven(c projection.Cluster) (n int) {
	for _, m := range c.Members {
		for _, d := range m.Partitions {
			if d.State == projection.StateLive {
				n++
			}
		}
	}
	return n
}

func TestClusterShowsMembersAndTheirPartitions(t *testing.T) {
	t.Parallel()
	b := setup(t, 4)
	c, err := projection.ReadCluster(mnemetest.Context(t), b.conn)
	require.NoError(t, err)
	require.Empty(t, c, "no process ever took a lease")
	workers := []*worker{b.worker("a"), b.worker("b")}
	awaitShared(t, workers...)
	b.many(100, 40)
	b.awaitApplied()
	c = b.awaitCluster(func(c projection.Cluster) bool {
		if driven(c) != 4 || len(c.Leases) != 4 {
			return false
		}
		for _, m := range c.Members {
			for _, d := range m.Partitions {
				if d.Seq != b.checkpointOf(d.Partition).Seq || d.Lag > 0 {
					return false
				}
			}
		}
		return true
	})
	require.Len(t, c.Members, 2)
	for i, m := range c.Members {
		require.Equal(t, workers[i].name, m.Process)
		require.Equal(t, []string{"tester", "v1"}, []string{m.Program, m.Version})
		require.WithinDuration(t, time.Now(), m.Started, time.Minute)
		require.Len(t, m.Partitions, 2)
		for _, d := range m.Partitions {
			require.Equal(t, m.Process, c.Holder(build(1), d.Partition))
			require.Positive(t, d.Rate)
		}
	}
	require.Empty(t, c.Holder(build(2), 0), "another generation has its own leases")
	require.Empty(t, c.Holder(projection.Build{Store: "elsewhere", Projection: "graph", Generation: 1}, 0), "so has another store")
	list, err := projection.Progress(t.Context(), build(1), b.log, b.store, c.Statuses(build(1)))
	require.NoError(t, err)
	require.Len(t, list, 4)
	for _, s := range list {
		require.Equal(t, c.Holder(build(1), s.Partition), s.Holder)
		require.Equal(t, projection.StateLive, s.State)
		require.Positive(t, s.Checkpoint.Epoch)
	}
	workers[0].kill()
	b.awaitCluster(func(c projection.Cluster) bool { return len(c.Members) == 1 && driven(c) == 4 })
}

func TestAnnouncedStatusesReachTheCluster(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	worker := b.workerOf("a", graph.Projection(), b.store, projection.Announced(func(list []projection.Status) []projection.Status {
		for i := range list {
			list[i].Error = "waits for something else"
		}
		return list
	}))
	awaitShared(t, worker)
	c := b.awaitCluster(func(c projection.Cluster) bool { return driven(c) == 2 })
	for _, d := range c.Members[0].Partitions {
		require.Equal(t, "waits for something else", d.Error)
	}
	require.Empty(t, worker.Status()[0].Error)
}

// olderMember keeps the keys of a process of an older version, which says nothing about
// itself: the keys' values are its name. It renews them until the test ends.
func (b *bench) olderMember(name string, partitions ...string) {
	b.t.Helper()
	bucket, ttl, err := natsdeploy.ApplyLeases(mnemetest.Context(b.t), b.jetstream(), leaseTTL)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan struct{})
	keys := []string{"member.store.graph.1." + name}
	for _, p := range partitions {
		keys = append(keys, "lease.store.graph.1."+p)
	}
	for _, key := range keys {
		_, err := bucket.Create(ctx, key, []byte(name))
		require.NoError(b.t, err)
	}
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			for _, key := range keys {
				_, _ = bucket.Put(ctx, key, []byte(name))
			}
			select {
			case <-time.After(ttl / 8):
			case <-ctx.Done():
			}
		}
	}()
	b.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func TestOlderVersionKeepsItsShareNextToANewerOne(t *testing.T) {
	t.Parallel()
	b := setup(t, 4)
	b.olderMember("older", "0", "1")
	newer := b.worker("newer")
	c := b.awaitCluster(func(c projection.Cluster) bool { return driven(c) == 2 && len(c.Leases) == 4 && len(c.Members) == 2 })
	require.Equal(t, projection.Member{Process: "older"}, c.Members[slices.IndexFunc(c.Members, func(m projection.Member) bool { return m.Process == "older" })])
	for partition, want := range []string{"older", "older", "newer", "newer"} {
		require.Equal(t, want, c.Holder(build(1), partition))
		await(t, newer.projector, "knows its holder", func(s projection.Status) bool {
			return s.Partition != partition || s.Holder == want
		})
	}

	// An older version reads the names of member keys and the values of leases.
	bucket, err := b.jetstream().KeyValue(mnemetest.Context(t), natsdeploy.LeaseBucket)
	require.NoError(t, err)
	lease, err := bucket.Get(mnemetest.Context(t), "lease.store.graph.1.2")
	require.NoError(t, err)
	require.Equal(t, "newer", string(lease.Value()))
	_, err = bucket.Get(mnemetest.Context(t), "member.store.graph.1.newer")
	require.NoError(t, err)
}

// Keys are renewed all the time, and a watch may report a renewed key twice or late.
func TestRenewedKeysAreListedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	bucket, _, err := natsdeploy.ApplyLeases(mnemetest.Context(t), b.jetstream(), time.Minute)
	require.NoError(t, err)
	const processes = 20
	keys := map[string][]byte{}
	for i := range processes {
		name := fmt.Sprint("p", i)
		value, err := json.Marshal(projection.Member{Partitions: []projection.Driven{{Build: build(1), Partition: i}}})
		require.NoError(t, err)
		keys["member.store.graph.1."+name] = value
		keys[fmt.Sprint("lease.store.graph.1.", i)] = []byte(name)
	}
	renew := func(ctx context.Context) (err error) {
		for key, value := range keys {
			_, failed := bucket.Put(ctx, key, value)
			err = errors.Join(err, failed)
		}
		return err
	}
	require.NoError(t, renew(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer cancel()
	renewing.Go(func() {
		for ctx.Err() == nil {
			_ = renew(ctx)
		}
	})
	for range 200 {
		c, err := projection.ReadCluster(mnemetest.Context(t), b.conn)
		require.NoError(t, err)
		require.Len(t, c.Leases, processes)
		require.Len(t, c.Members, processes)
		for _, m := range c.Members {
			require.Len(t, m.Partitions, 1)
			require.Equal(t, m.Process, c.Holder(build(1), m.Partitions[0].Partition))
		}
	}
}

func TestProcessWithoutLeasesIsListedAndGetsNoPartition(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	reader, err := projection.NewLeases(projection.LeaseConfig{Conn: b.conn, Process: "reader.1", Program: "context-api", TTL: leaseTTL})
	require.NoError(t, err)
	stop := reader.Announce(nil, slog.New(slog.DiscardHandler))
	defer stop()
	alone := b.start(graph.Projection())
	writer, err := projection.NewLeases(projection.LeaseConfig{Conn: b.conn, Process: "writer", TTL: leaseTTL})
	require.NoError(t, err)
	stopWriter := writer.Announce(alone.Status, slog.New(slog.DiscardHandler))
	defer stopWriter()
	c := b.awaitCluster(func(c projection.Cluster) bool { return len(c.Members) == 2 && driven(c) == 2 })
	require.Equal(t, projection.Member{Process: "reader-1", Program: "context-api", Started: c.Members[0].Started}, c.Members[0])
	require.Equal(t, "writer", c.Holder(build(1), 1))

	// The bucket may be lost.
	require.NoError(t, b.jetstream().DeleteKeyValue(mnemetest.Context(t), natsdeploy.LeaseBucket))
	b.awaitCluster(func(c projection.Cluster) bool { return len(c.Members) == 2 })

	alone.Stop()
	worker := b.workerOf("worker", graph.Projection(), b.store)
	awaitShared(t, worker)
	stop()
	stopWriter()
	b.awaitCluster(func(c projection.Cluster) bool { return len(c.Members) == 1 && driven(c) == 2 })
}

func TestHaltAtTheStartIsSeenByEveryProcess(t *testing.T) {
	t.Parallel()
	b, other := setup(t, 1), setup(t, 1)
	for range 3 {
		b.message("c")
	}
	first := b.worker("first")
	b.awaitApplied()
	awaitShared(t, first)
	require.NoError(t, other.store.Close())
	other.store = b.store // two logs, one store
	other.worker("second")
	c := other.awaitCluster(func(c projection.Cluster) bool {
		return len(c.Members) == 1 && len(c.Members[0].Partitions) == 1 && c.Members[0].Partitions[0].State == projection.StateHalted
	})
	require.Contains(t, c.Members[0].Partitions[0].Error, "the log lost its tail, or this is another log")
	list, err := projection.Progress(t.Context(), build(1), other.log, b.store, c.Statuses(build(1)))
	require.NoError(t, err)
	require.Equal(t, projection.StateHalted, list[0].State)
	require.Contains(t, list[0].Error, "mneme rebuild graph")
	require.Empty(t, b.checkpoint().Halted)

	b.awaitCluster(func(c projection.Cluster) bool { return driven(c) == 1 })
	b.awaitSeq(first.projector, 0, b.message("c"))
}

func TestProcessWhoseNameIsTakenSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	first := b.worker("same")
	awaitShared(t, first)
	second := b.worker("same")
	await(t, second.projector, "the status says why it can't join", func(s projection.Status) bool { return s.Error != "" })
	require.Contains(t, second.Status()[0].Error, `another process has the name "same"`)
	first.Stop()
	awaitShared(t, second)
	require.Empty(t, second.Status()[0].Error)
}

func TestHaltRecordedByAnOlderVersionIsClearedByTheNextBatch(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	pr := b.start(graph.Projection())
	await(t, pr, "is live", isLive)
	require.NoError(t, b.store.Halt(t.Context(), 0, b.checkpoint().Epoch, "of another declaration"))
	list, err := projection.Progress(t.Context(), build(1), b.log, b.store, pr.Status())
	require.NoError(t, err)
	require.Equal(t, projection.StateLive, list[0].State)
	require.Empty(t, list[0].Error)
	b.awaitSeq(pr, 0, b.message("c"))
	require.Empty(t, b.checkpoint().Halted)
}

func TestPartitionsNeverDrivenAreShown(t *testing.T) {
	t.Parallel()
	b := setup(t, 3)
	b.many(30, 30)
	list, err := projection.Progress(t.Context(), build(1), b.log, b.store, nil)
	require.NoError(t, err)
	require.Len(t, list, 3)
	for n, s := range list {
		require.Equal(t, n, s.Partition)
		require.Zero(t, s.Checkpoint.Seq)
		require.Positive(t, s.Lag)
	}
}

func TestWorkWhoseLeaseIsLostSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	leases, err := projection.NewLeases(projection.LeaseConfig{Conn: b.conn, Process: "a"})
	require.NoError(t, err)
	held, err := leases.Exclusively(t.Context(), "erase", func(ctx context.Context) error {
		js, err := jetstream.New(b.conn)
		require.NoError(t, err)
		bucket, err := js.KeyValue(ctx, natsdeploy.LeaseBucket)
		require.NoError(t, err)
		_, err = bucket.PutString(ctx, "exclusive.erase", "somebody else") // so the next renewal fails
		require.NoError(t, err)
		<-ctx.Done()
		return ctx.Err()
	})
	require.True(t, held)
	require.ErrorContains(t, err, "lease for erase: ")
	require.ErrorContains(t, err, "wrong last sequence")
	require.ErrorIs(t, err, context.Canceled)
}
