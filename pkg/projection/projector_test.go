package projection_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

func TestProjectorCatchesUpThenFollows(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) {
			t.Parallel()
			b := setup(t, partitions)
			b.many(3000, 17)
			pr := b.start(graph.Projection())
			b.awaitAll(pr)
			await(t, pr, "is live with no lag", func(s projection.Status) bool { return isLive(s) && s.Lag == 0 && s.Error == "" })
			total := uint64(0)
			for n, s := range pr.Status() {
				require.Equal(t, n, s.Partition)
				total += s.Checkpoint.Applied
			}
			require.EqualValues(t, 3000, total)

			// One event is applied without waiting for others.
			seq := b.message("c0")
			_, partition, err := b.log.Last(mnemetest.Context(t), "t", "c0")
			require.NoError(t, err)
			b.awaitSeq(pr, partition, seq)
			c, err := b.store.Conversation(t.Context(), events.ConversationID{Tenant: "t", ID: "c0"}, graph.Latest)
			require.NoError(t, err)
			require.Equal(t, seq, c.LastSeq)
			v := b.verify(graph.Projection())
			require.True(t, v.Equal(), "%+v", v.Differences)
			require.EqualValues(t, 3001, v.Events)
			require.Equal(t, 17, v.Conversations)
		})
	}
}

func TestProjectorOnAnEmptyLogIsLive(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	pr := b.start(graph.Projection())
	await(t, pr, "is live", isLive)
	b.awaitSeq(pr, 0, b.message("c"))
}

func TestStopIsIdempotentAndLegalBeforeStart(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	never, err := projection.NewProjector(graph.Projection(), b.log, b.store, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	never.Stop()
	never.Stop()
	never.Start() // too late
	require.Equal(t, projection.StateIdle, never.Status()[0].State)
	list, err := b.store.Checkpoints(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)

	pr := b.start(graph.Projection())
	pr.Start()
	await(t, pr, "is live", isLive)
	pr.Stop()
	pr.Stop()
	require.Equal(t, projection.StateIdle, pr.Status()[1].State)
	b.message("c")
	require.Zero(t, pr.Status()[0].Checkpoint.Seq)
}

func TestRestartsAtAnyPointChangeNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.many(2000, 9)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		pr := b.start(graph.Projection())
		wait := pr.Status()[0].Checkpoint.Seq + random.Uint64N(400)
		await(t, pr, "has continued", func(s projection.Status) bool { return s.State == projection.StateLive || s.Checkpoint.Seq >= wait })
		pr.Stop()
		require.NoError(t, b.store.Close())
		b.openStore()
		cps, err := b.store.Checkpoints(t.Context())
		require.NoError(t, err)
		for _, cp := range cps { // rows and checkpoint go together
			require.LessOrEqual(t, cp.Applied, cp.Seq)
		}
		if round%3 == 0 {
			v := b.verify(graph.Projection())
			require.True(t, v.Equal(), "%+v", v.Differences)
		}
		b.many(50, 9)
	}
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	v := b.verify(graph.Projection())
	require.True(t, v.Equal(), "%+v", v.Differences)
	require.EqualValues(t, 2400, v.Events)
}

func TestStoreClosedMidwayLosesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(3000, 5)
	pr := b.start(graph.Projection())
	await(t, pr, "has begun", func(s projection.Status) bool { return s.Checkpoint.Seq > 0 })
	require.NoError(t, b.store.Close())
	b.many(10, 5)
	await(t, pr, "reports trouble and retries", func(s projection.Status) bool { return s.Error != "" && s.State == projection.StateCatchingUp })
	pr.Stop()
	b.openStore()
	pr = b.start(graph.Projection())
	b.awaitAll(pr)
	require.EqualValues(t, 3010, b.checkpoint().Applied)
	require.True(t, new(b.verify(graph.Projection())).Equal())
}

func TestProjectorWaitsForAFailingStoreAndSkipsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	// Without the table SQLite returns an error of its own, as on a damaged or full disk.
	script := func(s string) {
		db, err := sql.Open("sqlite", sqlitestore.WriterDSN(b.path)) // which waits for the projector
		require.NoError(t, err)
		defer db.Close()
		_, err = db.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	script("ALTER TABLE message RENAME TO elsewhere")
	b.many(500, 3)
	pr := b.start(graph.Projection())
	await(t, pr, "says what is wrong", func(s projection.Status) bool { return s.Error != "" })
	require.Contains(t, pr.Status()[0].Error, "no such table")
	require.Equal(t, projection.StateCatchingUp, pr.Status()[0].State)
	require.Zero(t, b.checkpoint().Seq)
	require.Empty(t, b.failed())
	script("ALTER TABLE elsewhere RENAME TO message")
	b.awaitAll(pr)
	await(t, pr, "is live again", func(s projection.Status) bool { return isLive(s) && s.Error == "" })
	require.EqualValues(t, 500, b.checkpoint().Applied)
	require.True(t, new(b.verify(graph.Projection())).Equal())
}

func TestProjectorWaitsForAnotherWriter(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	pr := b.start(graph.Projection())
	await(t, pr, "is live", isLive)
	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(b.path))
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	seq := b.message("c")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.log.AwaitProgress(ctx, "graph", 0, time.Millisecond, func() (bool, error) {
		return b.checkpoint().Seq >= seq, nil
	}), context.DeadlineExceeded)
	_, err = conn.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	b.awaitSeq(pr, 0, seq)
}

func TestOlderOfTwoProjectorsIsFencedAndHalts(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	older := b.start(graph.Projection())
	await(t, older, "is live", isLive)
	newer := b.start(graph.Projection())
	await(t, newer, "is live", isLive)
	seq := b.message("c")
	b.awaitSeq(newer, 0, seq)
	await(t, older, "is halted", isHalted)
	require.Contains(t, older.Status()[0].Error, "taken over")
	require.Zero(t, older.Status()[0].Checkpoint.Applied)
	require.EqualValues(t, 1, b.checkpoint().Applied)
	require.Empty(t, b.checkpoint().Halted)
}

func TestChangedDeclarationHaltsUntilARebuild(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	pr := b.start(graph.Projection())
	await(t, pr, "is live", isLive)
	pr.Stop()
	p := graph.Projection()
	p.Version++
	pr = b.start(p)
	await(t, pr, "is halted", isHalted)
	require.Contains(t, pr.Status()[0].Error, "rebuild needed: mneme rebuild graph")
	require.True(t, pr.Status()[0].OtherBuild)
}

func TestInvalidDeclarationIsRefused(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]func(p *projection.Projection[*graph.Unit]){
		"name":               func(p *projection.Projection[*graph.Unit]) { p.Name = "Graph 1" },
		"version":            func(p *projection.Projection[*graph.Unit]) { p.Version = 0 },
		"unknown event type": func(p *projection.Projection[*graph.Unit]) { p.Reducers["x"] = nil },
	} {
		p := graph.Projection()
		change(&p)
		require.ErrorContains(t, p.Validate(), reason)
	}
}

func TestReadersOfManyConversationsDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(200, 5)
	b.awaitAll(b.start(graph.Projection()))
	opened, err := sqlitestore.OpenReader(b.path, sqlitestore.GraphCodec)
	require.NoError(t, err)
	reader := &sqlitestore.Graph{Store: opened}
	defer reader.Close()
	errs := make(chan error)
	const readers = 64
	for n := range readers { // more readers than connections, all still unused
		go func() {
			id := events.ConversationID{Tenant: "t", ID: fmt.Sprintf("c%d", n%5)}
			_, err := reader.Transcript(t.Context(), id, graph.TranscriptQuery{Limit: 10})
			errs <- err
		}()
	}
	for range readers {
		require.NoError(t, <-errs)
	}
}
