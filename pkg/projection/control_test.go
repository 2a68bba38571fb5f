package projection_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// Some messages look to the NATS client like its own protocol and are not delivered.
func TestMessageThatLooksLikeTheProtocolIsSkipped(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	for status, description := range map[string]string{"100": "Idle Heartbeat", "404": "No Messages", "409": "Consumer Deleted"} {
		if status == "404" && !mnemetest.All {
			continue // to the client the same as 100, but takes ten seconds
		}
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			poison := func() {
				b.raw("mneme.t.c.message_created", map[string]string{"Status": status, "Description": description}, "")
			}
			check := func(applied, failed int) {
				t.Helper()
				require.Len(t, b.failed(), failed)
				for _, f := range b.failed() {
					require.Equal(t, projection.ClassInvalid, f.Class)
				}
				require.EqualValues(t, applied, b.checkpoint().Applied)
				v := b.verify(graph.Projection())
				require.True(t, v.Equal())
				require.Zero(t, v.Behind)
				require.Equal(t, b.checkpoint().Seq, v.UpTo)
			}
			poison() // the first
			b.message("c")
			pr := b.start(graph.Projection())
			b.awaitAll(pr)
			check(1, 1)
			b.message("c")
			poison() // in the middle, while it runs
			b.message("c")
			b.message("d")
			b.awaitAll(pr)
			check(4, 2)
			poison() // the last
			b.awaitAll(pr)
			check(4, 3)
			applied, failed, err := pr.Repair(t.Context(), events.ConversationID{Tenant: "t", ID: "c"})
			require.NoError(t, err)
			require.Equal(t, []int{3, 3}, []int{applied, failed})
			check(4, 3)
			pr.Stop()

			b.message("c")
			poison() // while it is stopped
			poison()
			b.message("c")
			pr = b.start(graph.Projection())
			b.awaitAll(pr)
			check(6, 5)
			pr.Stop()
			pr = b.start(graph.Projection()) // after it
			await(t, pr, "is live", isLive)
			b.awaitSeq(pr, 0, b.message("c"))
		})
	}
}

func TestVerifyReportsEventsNotYetApplied(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.many(100, 7)
	require.EqualValues(t, 100, b.verify(graph.Projection()).Behind, "nothing is applied yet")
	b.applied()
	v := b.verify(graph.Projection())
	require.Zero(t, v.Behind)
	require.EqualValues(t, 100, v.UpTo)
	b.many(20, 7)
	v = b.verify(graph.Projection())
	require.True(t, v.Equal())
	require.EqualValues(t, 20, v.Behind)
	require.EqualValues(t, 20, v.Later)
	require.EqualValues(t, 100, v.UpTo)
}

// moving is a read model that applies more at the end of a comparison.
type moving struct {
	projection.ReadStore
	asked int
	more  func()
}

func (m *moving) Checkpoints(ctx context.Context) ([]projection.Checkpoint, error) {
	if m.asked++; m.asked == 2 {
		m.more()
	}
	return m.ReadStore.Checkpoints(ctx)
}

func TestVerifyReportsEventsAppliedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.many(100, 7)
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	scratch, err := sqlitestore.OpenGraph(t.Context(), sqlitestore.Path(t.TempDir(), "graph", 1))
	require.NoError(t, err)
	defer scratch.Close()
	model := &moving{ReadStore: b.store, more: func() { b.many(20, 7); b.awaitAll(pr) }}
	v, err := projection.Verify(mnemetest.Context(t), graph.Projection(), b.log, model, scratch, nil)
	require.NoError(t, err)
	require.True(t, v.Equal())
	require.EqualValues(t, 100, v.UpTo)
	require.EqualValues(t, 20, v.Later)
	require.Zero(t, v.Behind)
}

func TestVerifyDoesNotWaitForAnErasedEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	head := b.message("c")
	partition := b.log.PartitionOf("t", "c")
	p := graph.Projection()
	cp, err := b.store.Acquire(t.Context(), partition, p.Fingerprint())
	require.NoError(t, err)
	require.NoError(t, projection.ReplayUpTo(mnemetest.Context(t), p, b.log, b.store, cp, head+1))
	cp, err = projection.CheckpointOf(t.Context(), b.store, partition)
	require.NoError(t, err)
	require.Equal(t, head, cp.Seq, "what is there is applied")
}

func TestVerifyLeavesNoConsumers(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.many(100, 7)
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	for range 3 {
		b.verify(graph.Projection())
	}
	stream, err := b.jetstream().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Consumers == 2
	}, mnemetest.Patience, 10*time.Millisecond, "those of the projector")
}

func TestRepairNeedsARunningProjector(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.message("c")
	repair := func(pr *projector) error {
		ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
		defer cancel()
		_, _, err := pr.Repair(ctx, events.ConversationID{Tenant: "t", ID: "c"})
		return err
	}
	never, err := projection.NewProjector(graph.Projection(), b.log, b.store, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.ErrorIs(t, repair(never), projection.ErrNotRunning)
	never.Stop()
	require.ErrorIs(t, repair(never), projection.ErrNotRunning)

	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	require.NoError(t, repair(pr))
	pr.Stop()
	require.ErrorIs(t, repair(pr), projection.ErrNotRunning)

	other := graph.Projection()
	other.Version++
	pr = b.start(other)
	err = repair(pr) // the projector stops before or during the request
	require.ErrorIs(t, err, projection.ErrNotRunning)
	require.ErrorContains(t, err, "rebuild")
}

func TestCanceledRepairReturnsNoResult(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(500, 1)
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	for n := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond)
		applied, failed, err := pr.Repair(ctx, events.ConversationID{Tenant: "t", ID: "c0"})
		cancel()
		if err != nil {
			require.Equal(t, []int{0, 0}, []int{applied, failed})
		} else {
			require.Equal(t, []int{500, 0}, []int{applied, failed})
		}
	}
}

func TestHaltAtAnotherDeclarationLeavesTheStoreUnchanged(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.message("c")
	b.applied()
	before := b.checkpoint()
	other := graph.Projection()
	other.Version++
	pr := b.start(other)
	await(t, pr, "is halted", isHalted)
	require.Equal(t, before, b.checkpoint(), "its owner may be healthy")
	pr.Stop()
	b.applied()
}
