package projection_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// cramped is a store whose transactions have room for only a few events, like those of a server
// with little memory.
type cramped struct {
	projection.Store[*graph.Unit]
	room int
}

func (s cramped) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.Unit]) error) error {
	return s.Store.Update(ctx, partition, func(tx projection.Tx[*graph.Unit]) error { return fn(&crampedTx{tx, s.room}) })
}

type crampedTx struct {
	projection.Tx[*graph.Unit]
	room int
}

func (t *crampedTx) Load(ctx context.Context, list []*events.Recorded) (*graph.Unit, error) {
	if t.room -= len(list); t.room < 0 {
		return nil, projection.ErrTooLarge
	}
	return t.Tx.Load(ctx, list)
}

func TestATooLargeRepairChangesNothingAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(300, 1)
	b.many(20, 2) // 10 of them in a separate conversation
	w := b.workerOf("a", graph.Projection(), cramped{b.store, 100})
	awaitShared(t, w)
	b.awaitApplied() // batches are halved
	id := events.ConversationID{Tenant: "t", ID: "c0"}
	before, err := b.store.Hash(t.Context(), id)
	require.NoError(t, err)

	_, _, err = projection.RequestRepair(t.Context(), b.conn, build(1), 0, id)
	require.ErrorIs(t, err, projection.ErrTooLarge)
	require.ErrorContains(t, err, "310 events")
	require.ErrorContains(t, err, "mneme rebuild graph")
	after, err := b.store.Hash(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, before, after)

	id.ID = "c1"
	applied, failed, err := projection.RequestRepair(t.Context(), b.conn, build(1), 0, id)
	require.NoError(t, err, "a conversation that fits is repaired")
	require.Equal(t, []int{10, 0}, []int{applied, failed})
	b.message("c0")
	b.awaitApplied()
}
