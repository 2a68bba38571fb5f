package projection_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// deriving returns the projection "graph" that counts how often it derives from each sequence, and
// gives.
func deriving(derived, given *sync.Map) projection.Projection[*graph.Unit] {
	p := graph.Projection()
	count := func(m *sync.Map, seq uint64) {
		n, _ := m.LoadOrStore(seq, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}
	derive := p.Derive
	p.Derive = func(e *events.Recorded) func(*graph.Unit) {
		if e.Seq == 5 {
			panic("told to")
		}
		count(derived, e.Seq)
		give := derive(e)
		seq := e.Seq
		return func(u *graph.Unit) {
			count(given, seq)
			if give != nil {
				give(u)
			}
		}
	}
	return p
}

func countOf(m *sync.Map, seq uint64) int64 {
	n, ok := m.Load(seq)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

func TestWhatAnEventGivesIsDerivedOnceHoweverOftenItsBatchIsTried(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(100, 3)
	var derived, given sync.Map
	store := cramped{b.store, 8}
	pr := b.drive(deriving(&derived, &given), store)
	b.awaitAll(pr)
	again := int64(0)
	for seq := uint64(1); seq <= 100; seq++ {
		if seq == 5 {
			require.Zero(t, countOf(&given, seq), "its derivation panicked, so the reducer did the work")
			continue
		}
		require.EqualValues(t, 1, countOf(&derived, seq), "sequence %d", seq)
		again = max(again, countOf(&given, seq))
	}
	require.EqualValues(t, 1, again, "a batch that was too large never got to its reducers")
	pr.Stop()
	require.Empty(t, b.failed())
	verified := b.verify(graph.Projection())
	require.True(t, verified.Equal())
}

func TestProjectorsWithOneDeclarationShareWhatTheyDerive(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	feed := projection.NewFeed(b.log)
	var derived, given sync.Map
	p := deriving(&derived, &given)
	one := b.drive(p, b.store, projection.From(feed))
	two := b.drive(p, b.openAnother(), projection.From(feed))
	await(t, one, "is live", isLive)
	await(t, two, "is live", isLive)
	b.many(200, 3)
	b.awaitAll(one)
	b.awaitAll(two)
	for seq := uint64(6); seq <= 200; seq++ {
		require.EqualValues(t, 1, countOf(&derived, seq), "sequence %d", seq)
		require.EqualValues(t, 2, countOf(&given, seq), "sequence %d", seq)
	}
}
