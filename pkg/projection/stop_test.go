package projection_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// stuck is a store whose server stops answering on demand.
type stuck struct {
	projection.Store[*graph.Unit]
	hang chan struct{} // once closed, no call returns
	hung chan struct{} // receives the first call that hangs
	once sync.Once
}

func (s *stuck) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.Unit]) error) error {
	select {
	case <-s.hang:
	default:
		return s.Store.Update(ctx, partition, fn)
	}
	s.once.Do(func() { close(s.hung) })
	<-ctx.Done()
	return ctx.Err()
}

func TestUnresponsiveStoreDoesNotBlockStop(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	store := &stuck{Store: b.store, hang: make(chan struct{}), hung: make(chan struct{})}
	leases, err := projection.NewLeases(projection.LeaseConfig{Conn: b.conn, Process: "stuck", TTL: 2 * mnemetest.Patience})
	require.NoError(t, err)
	const finish = 200 * time.Millisecond
	leases.FinishWithin(finish)
	pr, err := projection.NewProjector(graph.Projection(), b.log, store, slog.New(slog.DiscardHandler), projection.Shared(leases))
	require.NoError(t, err)
	pr.Start()
	await(t, pr, "is live", isLive)
	close(store.hang)
	b.message("c")
	<-store.hung

	began := time.Now()
	pr.Stop()
	require.GreaterOrEqual(t, time.Since(began), finish, "the batch got its full time")
	require.Less(t, time.Since(began), mnemetest.Patience)
	awaitShared(t, b.worker("next")) // well within the TTL, because the lease was given back
	b.holds(1)
}

// warnings counts logged warnings by message.
type warnings struct {
	slog.Handler
	mu    sync.Mutex
	count map[string]int
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *warnings) WithGroup(string) slog.Handler            { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Level == slog.LevelWarn {
		w.count[r.Message]++
	}
	return nil
}

func TestMissingServerIsLoggedOnce(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	b := setup(t, 1)
	log := &warnings{count: map[string]int{}}
	leases, err := projection.NewLeases(projection.LeaseConfig{Conn: b.conn, Process: "p", TTL: leaseTTL})
	require.NoError(t, err)
	pr, err := projection.NewProjector(graph.Projection(), b.log, b.store, slog.New(log), projection.Shared(leases))
	require.NoError(t, err)
	pr.Start()
	t.Cleanup(pr.Stop)
	await(t, pr, "is live", isLive)
	b.conn.Close()
	await(t, pr, "is idle", func(s projection.Status) bool { return s.State == projection.StateIdle })
	time.Sleep(3 * leaseTTL) // enough for six attempts
	log.mu.Lock()
	defer log.mu.Unlock()
	warned := log.count["cannot join the lease group; retrying"]
	require.Positive(t, warned)
	require.LessOrEqual(t, warned, 2, "one for the loss, one for the failed return")
}
