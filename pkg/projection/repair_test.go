package projection_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// watched is a store that knows which of the events it was given are still in memory.
type watched struct {
	projection.Store[*graph.Unit]
	given []weak.Pointer[events.Recorded]
	most  int // in memory at once, apart from those of small messages
}

func (s *watched) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.Unit]) error) error {
	return s.Store.Update(ctx, partition, func(tx projection.Tx[*graph.Unit]) error { return fn(watchedTx{tx, s}) })
}

type watchedTx struct {
	projection.Tx[*graph.Unit]
	store *watched
}

func (t watchedTx) Load(ctx context.Context, list []*events.Recorded) (*graph.Unit, error) {
	for _, e := range list {
		t.store.given = append(t.store.given, weak.Make(e))
	}
	runtime.GC()
	here := 0
	for _, p := range t.store.given {
		if e := p.Value(); e != nil && len(e.Data) > 1<<20 {
			here++
		}
	}
	t.store.most = max(t.store.most, here)
	return t.Tx.Load(ctx, list)
}

func TestARepairReadsALongConversationInPiecesUnraced(t *testing.T) {
	mnemetest.Unraced(t, "it measures memory, and takes more than a minute under the race detector")
	t.Parallel()
	b := setup(t, 1)
	reducer := &switchable{fail: map[string]bool{}}
	p := reducer.projection()
	var given atomic.Int64
	p.Prepare = func(_ context.Context, list []*events.Recorded) (func(*graph.Unit), error) {
		return func(*graph.Unit) { given.Add(int64(len(list))) }, nil
	}
	const large, small = 40, 1100
	text := strings.Repeat("word ", 1<<18)[:1<<20]
	for i := range large {
		b.publish("c0", &events.MessageCreated{MessageID: "large" + string(rune('A'+i)), Role: "user", Content: text})
	}
	b.many(small, 1)
	b.message("another")
	reducer.set("e1100", true)
	pr := b.start(p)
	b.awaitAll(pr)
	require.Len(t, b.failed(), 1)

	// A store of its own for the repair, to see what it is given.
	pr.Stop()
	s := &watched{Store: b.store}
	pr, err := projection.NewProjector(p, b.log, s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	pr.Start()
	t.Cleanup(pr.Stop)
	id := events.ConversationID{Tenant: "t", ID: "c0"}
	applied, failed, err := pr.Repair(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []int{large + small - 1, 1}, []int{applied, failed}, "still refused, in the part that is not held")

	reducer.set("e1100", false)
	given.Store(0)
	s.given, s.most = nil, 0
	applied, failed, err = pr.Repair(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []int{large + small, 0}, []int{applied, failed})
	require.EqualValues(t, large+small, given.Load(), "every event has what was prepared for it")
	require.LessOrEqual(t, s.most, 26, "16 MiB, and a piece of 8 MiB")
	v := b.verify(graph.Projection())
	require.True(t, v.Equal(), "%+v", v.Differences)
	require.EqualValues(t, large+small+1, v.Events)
	require.Empty(t, b.failed())
}
