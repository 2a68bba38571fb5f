package projection_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// leaseTTL is short but long enough for a busy machine: a worker that pauses for three quarters of it gives up its partitions.
const leaseTTL = 2 * time.Second

// worker is a projector as a separate process would run it, with its own connection and
// name. Only the store is shared.
type worker struct {
	*projector
	name string
	conn *nats.Conn
}

// worker starts a worker that runs until the end of the test.
func (b *bench) worker(name string) *worker {
	return b.workerOf(name, graph.Projection(), b.store)
}

func (b *bench) workerOf(name string, p projection.Projection[*graph.Unit], store projection.Store[*graph.Unit], options ...projection.Option) *worker {
	b.t.Helper()
	conn, err := eventlog.Connect("", name, slog.New(slog.DiscardHandler), b.server.InProcess())
	require.NoError(b.t, err)
	b.t.Cleanup(conn.Close)
	return b.workerOn(conn, name, p, store, options...)
}

func (b *bench) workerOn(conn *nats.Conn, name string, p projection.Projection[*graph.Unit], store projection.Store[*graph.Unit], options ...projection.Option) *worker {
	b.t.Helper()
	log, err := eventlog.Open(mnemetest.Context(b.t), conn)
	require.NoError(b.t, err)
	leases, err := projection.NewLeases(projection.LeaseConfig{Conn: conn, Process: name, Program: "tester", Version: "v1", TTL: leaseTTL})
	require.NoError(b.t, err)
	pr, err := projection.NewProjector(p, log, store, slog.New(slog.DiscardHandler), append(options, projection.Shared(leases))...)
	require.NoError(b.t, err)
	pr.Start()
	b.t.Cleanup(pr.Stop)
	return &worker{projector: pr, name: name, conn: conn}
}

// kill ends a worker in the way that others see kill -9: its connection is gone, its keys
// stay.
func (w *worker) kill() {
	w.conn.Close()
	w.Stop()
}

// drives counts the partitions that a worker drives and has caught up with.
func (w *worker) drives() (n int) {
	for _, s := range w.Status() {
		if s.State == projection.StateLive {
			n++
		}
	}
	return n
}

// shared reports whether workers share all partitions evenly, have caught up, and agree on
// who holds which.
func shared(workers []*worker) bool {
	partitions := workers[0].Status()
	driven, low, high := 0, len(partitions), 0
	for _, w := range workers {
		n := w.drives()
		driven, low, high = driven+n, min(low, n), max(high, n)
		for partition, s := range w.Status() {
			if (s.State == projection.StateLive) != (s.Holder == w.name) || s.Holder != partitions[partition].Holder {
				return false
			}
		}
	}
	return driven == len(partitions) && high-low <= 1
}

// build returns the build of the read model that these tests write.
func build(generation int) projection.Build {
	return projection.Build{Store: "store", Projection: "graph", Generation: generation}
}

func awaitShared(t *testing.T, workers ...*worker) {
	t.Helper()
	deadline := time.Now().Add(mnemetest.Patience)
	for !shared(workers) {
		if time.Now().After(deadline) {
			for _, w := range workers {
				t.Logf("%s: %+v", w.name, w.Status())
			}
			require.Fail(t, "the partitions were not shared evenly in time")
		}
		time.Sleep(time.Millisecond)
	}
}

// awaitApplied waits until the store has applied the whole log.
func (b *bench) awaitApplied() {
	b.t.Helper()
	deadline := time.Now().Add(mnemetest.Patience)
	for n := range b.log.Partitions() {
		last, err := b.log.LastOf(mnemetest.Context(b.t), n)
		require.NoError(b.t, err)
		for b.checkpointOf(n).Seq < last {
			require.True(b.t, time.Now().Before(deadline), "partition %d: checkpoint %+v, log %d", n, b.checkpointOf(n), last)
			time.Sleep(time.Millisecond)
		}
	}
}

func (b *bench) checkpointOf(partition int) projection.Checkpoint {
	b.t.Helper()
	list, err := b.store.Checkpoints(b.t.Context())
	require.NoError(b.t, err)
	for _, cp := range list {
		if cp.Partition == partition {
			return cp
		}
	}
	return projection.Checkpoint{Partition: partition}
}

// holds requires that the read model has each event once, and equals what a single
// projector makes of the log.
func (b *bench) holds(events int) {
	b.t.Helper()
	b.awaitApplied()
	applied, duplicates := uint64(0), uint64(0)
	for n := range b.log.Partitions() {
		cp := b.checkpointOf(n)
		applied, duplicates = applied+cp.Applied, duplicates+cp.Duplicates
	}
	require.EqualValues(b.t, events, applied)
	require.Zero(b.t, duplicates)
	require.Empty(b.t, b.failed())
	v := b.verify(graph.Projection())
	require.True(b.t, v.Equal(), "%+v", v.Differences)
	require.EqualValues(b.t, events, v.Events)
}

func TestWorkersSharePartitionsEvenlyAsTheyComeAndGo(t *testing.T) {
	t.Parallel()
	b := setup(t, 8)
	b.many(500, 40)
	first := b.worker("first")
	awaitShared(t, first)
	require.Equal(t, 8, first.drives())
	second := b.worker("second")
	awaitShared(t, first, second)
	third := b.worker("third")
	awaitShared(t, first, second, third)
	b.many(500, 40)
	b.awaitApplied()

	before := second.Status()
	began := time.Now()
	first.Stop()
	awaitShared(t, second, third)
	t.Logf("handed over in %s", time.Since(began))
	for n, s := range second.Status() {
		if before[n].Holder == "second" || before[n].Holder == "third" {
			require.Equal(t, before[n].Holder, s.Holder, "other workers' partitions stay where they are")
		}
	}
	for _, s := range first.Status() {
		require.Equal(t, projection.Status{Build: build(1), Partition: s.Partition, State: projection.StateIdle, Retries: s.Retries}, s)
	}
	b.holds(1000)
}

func TestSurplusWorkersStandBy(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	workers := []*worker{b.worker("a"), b.worker("b"), b.worker("c"), b.worker("d")}
	awaitShared(t, workers...)
	b.many(100, 10)
	b.holds(100)
	for _, w := range workers {
		statuses := w.Status()
		for n, s := range statuses {
			if s.Holder != w.name {
				require.Equal(t, projection.Status{Build: build(1), Partition: n, State: projection.StateIdle, Holder: s.Holder, Retries: s.Retries}, s)
			}
		}
		// A standby answers from the store.
		list, err := projection.Progress(t.Context(), build(1), b.log, b.store, statuses)
		require.NoError(t, err)
		for n, s := range list {
			require.Equal(t, statuses[n].State, s.State)
			require.Equal(t, statuses[n].Holder, s.Holder)
			require.Equal(t, b.checkpointOf(n).Seq, s.Checkpoint.Seq)
			require.Zero(t, s.Lag)
		}
	}
}

func TestPartitionsOfAKilledWorkerAreTakenOver(t *testing.T) {
	t.Parallel()
	b := setup(t, 8)
	killed, left := b.worker("killed"), b.worker("left")
	awaitShared(t, killed, left)
	began := time.Now()
	killed.kill()
	b.many(100, 40)
	awaitShared(t, left)
	t.Logf("taken over after %s", time.Since(began))
	// A worker drives nothing once three quarters of the TTL have passed since its last renewal.
	require.Greater(t, time.Since(began), leaseTTL/5, "nobody announced its end")
	b.holds(100)
}

// sleepy is a store whose process can be put to sleep before a transaction begins, and
// wakes up unaware that time has passed.
type sleepy struct {
	projection.Store[*graph.Unit]
	sleep  chan struct{} // once closed, the next call falls asleep
	asleep chan struct{}
	wake   chan struct{}
	woken  chan error // result of its transaction
}

func (s *sleepy) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.Unit]) error) error {
	select {
	case <-s.sleep:
	default:
		return s.Store.Update(ctx, partition, fn)
	}
	s.asleep <- struct{}{}
	<-s.wake
	err := s.Store.Update(context.WithoutCancel(ctx), partition, fn)
	s.woken <- err
	return err
}

func TestProcessThatSleptThroughItsLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	store := &sleepy{b.store, make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan error)}
	zombie := b.workerOf("zombie", graph.Projection(), store)
	awaitShared(t, zombie)
	close(store.sleep)
	b.message("c")
	<-store.asleep
	zombie.conn.Close() // its lease expires
	other := b.worker("other")
	awaitShared(t, other)
	b.message("c")
	b.awaitApplied()
	store.wake <- struct{}{}
	require.ErrorIs(t, <-store.woken, projection.ErrFenced)
	zombie.Stop()
	b.message("c")
	b.holds(3)
}

func TestOlderOfTwoOwnersIsFencedAndAsksForALeaseAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	w := b.worker("shares")
	awaitShared(t, w)
	alone := b.start(graph.Projection()) // does not use leases
	await(t, alone, "is live", isLive)
	b.message("c")
	b.awaitApplied()
	await(t, alone, "is halted", func(s projection.Status) bool {
		if s.State == projection.StateLive && shared([]*worker{w}) {
			b.message("c") // lets the one without leases notice
		}
		return isHalted(s)
	})
	awaitShared(t, w)
	b.message("c")
	b.awaitApplied()
	require.True(t, new(b.verify(graph.Projection())).Equal())
}

func TestLostBucketIsRecreated(t *testing.T) {
	t.Parallel()
	b := setup(t, 8)
	workers := []*worker{b.worker("a"), b.worker("b"), b.worker("c")}
	awaitShared(t, workers...)
	for range 3 {
		began := time.Now()
		require.NoError(t, b.jetstream().DeleteKeyValue(mnemetest.Context(t), natsdeploy.LeaseBucket))
		b.many(100, 40)
		require.Eventually(t, func() bool {
			_, err := b.jetstream().KeyValue(t.Context(), natsdeploy.LeaseBucket)
			return err == nil
		}, mnemetest.Patience, time.Millisecond)
		awaitShared(t, workers...)
		t.Logf("shared again after %s", time.Since(began))
		b.awaitApplied()
	}
	b.holds(300)
}

func TestWorkersSurviveAServerRestart(t *testing.T) {
	t.Parallel()
	b := setup(t, 4)
	dir := t.TempDir()
	config := embedded.Config{Dir: dir, Listen: "127.0.0.1:" + mnemetest.FreePort(t), MaxBytes: 64 << 20}
	server, err := embedded.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { server.Stop() })
	connect := func(name string) *nats.Conn {
		conn, err := eventlog.Connect(config.Listen, name, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		return conn
	}
	b.server, b.conn = server, connect("publisher")
	b.createStream(4)
	workers := []*worker{
		b.workerOn(connect("a"), "a", graph.Projection(), b.store),
		b.workerOn(connect("b"), "b", graph.Projection(), b.store),
	}
	awaitShared(t, workers...)
	b.many(100, 40)
	b.awaitApplied()
	server.Stop()
	server, err = embedded.Start(t.Context(), config)
	require.NoError(t, err)
	for _, conn := range []*nats.Conn{b.conn, workers[0].conn, workers[1].conn} {
		require.Eventually(t, func() bool { return conn.Stats().Reconnects > 0 && conn.IsConnected() }, mnemetest.Patience, time.Millisecond)
	}
	awaitShared(t, workers...)
	b.many(100, 40)
	b.holds(200)
}

func TestOnlyTheHolderAcceptsRequests(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	seq := b.message("c")
	_, partition, err := b.log.Last(mnemetest.Context(t), "t", "c")
	require.NoError(t, err)
	workers := []*worker{b.worker("a"), b.worker("b")}
	awaitShared(t, workers...)
	require.EqualValues(t, seq, b.checkpointOf(partition).Seq)
	for i, w := range workers {
		applied, failed, err := w.Repair(t.Context(), events.ConversationID{Tenant: "t", ID: "c"})
		if w.Status()[partition].Holder == w.name {
			require.NoError(t, err)
			require.Equal(t, []int{1, 0}, []int{applied, failed})
			continue
		}
		require.ErrorIs(t, err, projection.ErrElsewhere)
		require.ErrorContains(t, err, workers[1-i].name+" does")
		w.Stop()
		_, _, err = w.Repair(t.Context(), events.ConversationID{Tenant: "t", ID: "c"})
		require.ErrorIs(t, err, projection.ErrNotRunning)
	}
}

func TestHaltedWorkerKeepsItsLeasesUntilItEnds(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	older := b.worker("older")
	awaitShared(t, older)
	p := graph.Projection()
	p.Version++
	newer := b.workerOf("newer", p, b.store)
	await(t, newer.projector, "is halted or elsewhere", func(s projection.Status) bool {
		return isHalted(s) && s.Holder == "newer" || s.Holder == "older"
	})
	b.message("c")
	for n, s := range newer.Status() {
		if s.State == projection.StateHalted {
			require.Contains(t, s.Error, "rebuild needed: mneme rebuild graph")
			await(t, older.projector, "knows who holds the halted partition", func(s projection.Status) bool {
				return s.Partition != n || s.Holder == "newer"
			})
			require.Empty(t, b.checkpointOf(n).Halted, "another owner may be healthy")
		}
	}
	newer.Stop()
	awaitShared(t, older)
	b.holds(1)
	require.Empty(t, b.checkpointOf(0).Halted+b.checkpointOf(1).Halted)
}

func TestSecondWorkerOfANameWaits(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	first := b.worker("same")
	awaitShared(t, first)
	epoch := b.checkpointOf(0).Epoch
	second := b.worker("same")
	b.message("c")
	b.awaitApplied()
	require.Equal(t, epoch, b.checkpointOf(0).Epoch)
	require.Zero(t, second.drives())
	first.Stop()
	awaitShared(t, second)
	b.holds(1)
}

func TestSharedProjectorMayStopBeforeStart(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	leases, err := projection.NewLeases(projection.LeaseConfig{Conn: b.conn, Process: "host.example"})
	require.NoError(t, err)
	require.Equal(t, "host-example", leases.Process())
	never, err := projection.NewProjector(graph.Projection(), b.log, b.store, slog.New(slog.DiscardHandler), projection.Shared(leases))
	require.NoError(t, err)
	never.Stop()
	never.Stop()
	never.Start() // no effect after Stop
	require.Zero(t, b.checkpointOf(0).Epoch)
	_, err = projection.NewLeases(projection.LeaseConfig{Conn: b.conn})
	require.ErrorContains(t, err, "name")
}

// Workers are stopped, killed and started while events come in.
func TestEachEventIsAppliedOnceWhileWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	b := setup(t, 8)
	rounds := 12
	if testing.Short() && !mnemetest.Race {
		rounds = 5
	}
	const perRound = 400
	random := rand.New(rand.NewPCG(7, 7))
	started := 0
	start := func() *worker {
		started++
		return b.worker(fmt.Sprint("w", started))
	}
	workers := []*worker{start(), start(), start()}
	for round := range rounds {
		published := make(chan struct{})
		go func() {
			defer close(published)
			for range perRound / 20 {
				b.many(20, 60)
			}
		}()
		victim := random.IntN(len(workers))
		w := workers[victim]
		workers = append(workers[:victim], workers[victim+1:]...)
		switch {
		case round%6 == 5:
			_ = b.jetstream().DeleteKeyValue(mnemetest.Context(t), natsdeploy.LeaseBucket) // it may be gone already
			fallthrough
		case random.IntN(2) == 0:
			go w.kill()
		default:
			go w.Stop()
		}
		for len(workers) < 2+random.IntN(3) {
			workers = append(workers, start())
		}
		<-published
		if random.IntN(2) == 0 {
			awaitShared(t, workers...)
		}
	}
	awaitShared(t, workers...)
	b.holds(rounds * perRound)
}
