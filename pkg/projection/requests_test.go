package projection_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

func TestARequestFindsTheProcessThatDrivesThePartition(t *testing.T) {
	t.Parallel()
	b := setup(t, 4)
	id := events.ConversationID{Tenant: "t", ID: "c"}
	partition := b.log.PartitionOf("t", "c")
	request := func() (applied, failed int, err error) {
		return projection.RequestRepair(t.Context(), b.conn, build(1), partition, id)
	}
	b.message("c")
	_, _, err := request()
	require.ErrorIs(t, err, projection.ErrUnheld)

	workers := []*worker{b.worker("a"), b.worker("b")}
	awaitShared(t, workers...)
	b.awaitApplied()
	for range 2 {
		applied, failed, err := request()
		require.NoError(t, err)
		require.Equal(t, []int{1, 0}, []int{applied, failed})
	}
	_, _, err = projection.RequestRepair(t.Context(), b.conn, build(2), partition, id)
	require.ErrorIs(t, err, projection.ErrUnheld, "of another generation")
	elsewhere := build(1)
	elsewhere.Store = "elsewhere"
	_, _, err = projection.RequestRepair(t.Context(), b.conn, elsewhere, partition, id)
	require.ErrorIs(t, err, projection.ErrUnheld, "in another store")
	holder := workers[0]
	if holder.Status()[partition].Holder == "b" {
		holder = workers[1]
	}
	holder.Stop()
	require.Eventually(t, func() bool {
		_, _, err = request()
		return err == nil
	}, mnemetest.Patience, time.Millisecond, "another process takes over")
}

func TestARequestToAHaltedProjectorSaysWhy(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(b *bench, p projection.Projection[*graph.Unit]) *projector{
		"alone": func(b *bench, p projection.Projection[*graph.Unit]) *projector { return b.start(p) },
		"with leases": func(b *bench, p projection.Projection[*graph.Unit]) *projector {
			return b.workerOf("a", p, b.store).projector
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			b.message("c")
			b.applied()
			p := graph.Projection()
			p.Version++
			pr := start(b, p)
			await(t, pr, "is halted", isHalted)
			_, _, err := projection.RequestRepair(t.Context(), b.conn, build(1), 0, events.ConversationID{Tenant: "t", ID: "c"})
			require.ErrorIs(t, err, projection.ErrNotRunning)
			require.ErrorContains(t, err, "mneme rebuild graph")
		})
	}
}

func TestARepairOfAPurgedConversationFindsItsPartition(t *testing.T) {
	t.Parallel()
	b := setup(t, 8)
	conversation := "c"
	for b.log.PartitionOf("t", conversation) == 0 {
		conversation += "c"
	}
	b.message(conversation)
	b.message("kept")
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	stream, err := b.jetstream().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(mnemetest.Context(t), jetstream.WithPurgeSubject(events.ConversationFilter("t", conversation))))
	_, err = b.log.Get(mnemetest.Context(t), 1)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	v := b.verify(graph.Projection())
	require.Len(t, v.Differences, 1)
	applied, failed, err := pr.Repair(t.Context(), events.ConversationID{Tenant: "t", ID: conversation})
	require.NoError(t, err)
	require.Equal(t, []int{0, 0}, []int{applied, failed})
	v = b.verify(graph.Projection())
	require.True(t, v.Equal(), "%+v", v.Differences)
}
