package neo4j_test

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
)

func TestACommitInDoubtIsAppliedExactlyOnce(t *testing.T) {
	t.Parallel()
	turns := 20
	if mnemetest.All {
		turns = 400
	}
	h := storetest.Realistic(3, turns)
	wantGraph, wantFiles := inSQLite(t, h.Messages)
	c, g := shared(t), generation(t)
	p := newProxy(t, c.URI)
	c.URI = p.URI()
	inGraph, inFiles := openGraph(t, c, g), openFiles(t, c, g)

	// One commit in four loses its answer, and one in eight never reaches the server.
	var committed, unheard, lost atomic.Int64
	p.atCommit(func() cut {
		switch rand.IntN(8) {
		case 0, 1:
			unheard.Add(1)
			return theAnswer
		case 2:
			lost.Add(1)
			return theCommit
		}
		committed.Add(1)
		return nothing
	})
	errs := append(drive(t, graphs, inGraph, 20, h.Messages), drive(t, tracked, inFiles, 20, h.Messages)...)
	p.atCommit(func() cut { return nothing })
	t.Logf("%d commits, %d whose answer was lost, %d that were lost; %d errors, the first: %v", committed.Load(), unheard.Load(), lost.Load(), len(errs), errors.Join(errs[:min(1, len(errs))]...))
	require.NotZero(t, unheard.Load())
	require.NotZero(t, lost.Load())
	for _, err := range errs {
		require.ErrorIs(t, err, projection.ErrUnavailable)
	}
	require.Equal(t, wantGraph, stateOf(t, inGraph))
	require.Equal(t, wantFiles, stateOf(t, inFiles))
}

func TestConnectionsCutAtAnyMomentLoseNothing(t *testing.T) {
	t.Parallel()
	turns, cuts := 20, int64(20)
	if mnemetest.All {
		turns, cuts = 400, 500
	}
	h := storetest.Realistic(3, turns)
	wantGraph, _ := inSQLite(t, h.Messages)
	c := shared(t)
	p := newProxy(t, c.URI)
	c.URI = p.URI()
	s := openGraph(t, c, generation(t))

	done := make(chan struct{})
	cutting := make(chan int64)
	go func() {
		n := int64(0)
		defer func() { cutting <- n }()
		for ; n < cuts; n++ {
			select {
			case <-pause(1 + rand.IntN(60)):
				p.cutAll()
			case <-done:
				return
			}
		}
	}()
	errs := drive(t, graphs, s, 20, h.Messages)
	close(done)
	t.Logf("%d cuts, %d errors", <-cutting, len(errs))
	require.Equal(t, wantGraph, stateOf(t, s))
	require.LessOrEqual(t, p.open(), 16, "the pool does not grow")
}
