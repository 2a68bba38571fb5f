package projection_test

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

func TestAYieldingProjectorWaitsForOthersButNotForever(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(100, 5)
	var busy atomic.Bool
	var asked atomic.Int64
	busy.Store(true)
	pr, err := projection.NewProjector(graph.Projection(), b.log, b.store, slog.New(slog.DiscardHandler), projection.BatchOf(10),
		projection.Yield(func() time.Duration {
			asked.Add(1)
			if busy.Load() {
				return 0
			}
			return time.Hour
		}))
	require.NoError(t, err)
	pr.Start()
	t.Cleanup(pr.Stop)
	b.awaitAll(pr) // although the others never stop
	require.Greater(t, asked.Load(), int64(20), "it has checked repeatedly before each of ten batches")

	b.many(100, 5)
	busy.Store(false)
	b.awaitAll(pr)
	busy.Store(true)
	b.message("c1")
	pr.Stop() // and it does not wait for others
	verified := b.verify(graph.Projection())
	require.True(t, verified.Equal())
}

func TestIdleTimeStartsWhenAProjectorRunsOutOfWork(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	pr := b.start(graph.Projection())
	await(t, pr, "is live", func(s projection.Status) bool { return s.State == projection.StateLive })
	require.Equal(t, projection.Forever, pr.Idle(), "it has done nothing yet")
	b.many(50, 5)
	b.awaitAll(pr)
	await(t, pr, "is live", func(s projection.Status) bool { return s.State == projection.StateLive && pr.Idle() > 0 })
	require.Less(t, pr.Idle(), time.Minute)

	// Another writer holds the write lock of its store, so the projector is in the middle of a
	// batch.
	release := b.lockStore()
	seq := b.message("c1")
	await(t, pr, "is busy", func(projection.Status) bool { return pr.Idle() == 0 })
	release()
	b.awaitSeq(pr, 0, seq)
	await(t, pr, "is idle", func(projection.Status) bool { return pr.Idle() > 0 })
	pr.Stop()
	require.Positive(t, pr.Idle())
}

// lockStore takes the write lock of the store until release is called.
func (b *bench) lockStore() (release func()) {
	b.t.Helper()
	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(b.path))
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(context.Background())
	require.NoError(b.t, err)
	_, err = conn.ExecContext(b.t.Context(), "BEGIN IMMEDIATE")
	require.NoError(b.t, err)
	return func() {
		_, err := conn.ExecContext(b.t.Context(), "ROLLBACK")
		require.NoError(b.t, err)
		require.NoError(b.t, conn.Close())
	}
}
