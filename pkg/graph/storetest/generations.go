package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Place is where a backend keeps generations. It is empty at first.
type Place struct {
	Generations projection.Generations
	OpenGraph   func(ctx context.Context, generation int) (graph.Store, error)
	OpenFiles   func(ctx context.Context, generation int) (graph.FilesStore, error)
}

// RunGenerations runs every case for how a backend keeps generations apart, in sequence.
// Each needs an empty place.
func RunGenerations(t *testing.T, open func(t *testing.T) Place) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, p place)
	}{
		{"before anything was written the first one serves", nothingWritten},
		{"one takes the place of another, which goes", takesThePlace},
		{"what does not serve is discarded and can't serve any more", discarded},
		{"of many who change what serves one succeeds", manyChange},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, place{t, open(t)})
		})
	}
}

// RunGenerationsLaw changes generations in random order. It opens hundreds of places.
func RunGenerationsLaw(t *testing.T, open func(t *testing.T) Place) {
	rapid.Check(t, func(rt *rapid.T) { alwaysWhole(rt, place{t, open(t)}) })
}

type place struct {
	*testing.T
	Place
}

// write makes a generation of both projections with one conversation of n messages.
func (p place) write(generation, messages int) {
	p.Helper()
	p.writeGraph(generation, messages)
	f, err := p.OpenFiles(p.Context(), generation)
	require.NoError(p, err)
	writeTo(p.T, f, graph.FilesProjection(files.DefaultTable()), ofMessages(messages))
	require.NoError(p, f.Close())
}

func (p place) writeGraph(generation, messages int) {
	p.Helper()
	g, err := p.OpenGraph(p.Context(), generation)
	require.NoError(p, err)
	writeTo(p.T, g, graph.Projection(), ofMessages(messages))
	require.NoError(p, g.Close())
}

func ofMessages(count int) *History {
	h := NewHistory()
	for n := range count {
		h.Add("c", message(fmt.Sprint("m", n), "user", "hello"))
	}
	return h
}

func writeTo[U projection.Unit](t *testing.T, s projection.Store[U], p projection.Projection[U], h *History) {
	t.Helper()
	cp, err := s.Acquire(t.Context(), 0, p.Fingerprint())
	require.NoError(t, err)
	_, err = p.Apply(t.Context(), s, cp, h.Messages)
	require.NoError(t, err)
}

// builds returns the builds of a projection.
func (p place) builds(name string) projection.Builds {
	p.Helper()
	b, err := p.Generations.Builds(p.Context(), name)
	require.NoError(p, err)
	if len(b.Others) == 0 {
		b.Others = nil
	}
	return b
}

// messages counts the conversation's messages in a generation.
func (p place) messages(generation int) int {
	p.Helper()
	g, err := p.OpenGraph(p.Context(), generation)
	require.NoError(p, err)
	defer func() { require.NoError(p, g.Close()) }()
	c, err := g.Conversation(p.Context(), events.ConversationID{Tenant: "t", ID: "c"}, graph.Latest)
	require.NoError(p, err)
	return c.MessageCount
}

func nothingWritten(t *testing.T, p place) {
	for _, name := range []string{"graph", "files"} {
		require.Equal(t, projection.FirstGeneration, p.builds(name).Serving)
		require.Empty(t, p.builds(name).Others)
		cps, err := p.Generations.Checkpoints(t.Context(), name, 7)
		require.NoError(t, err)
		require.Empty(t, cps)
		require.ErrorIs(t, p.Generations.Discard(t.Context(), name, 1), projection.ErrServing)
	}
}

func takesThePlace(t *testing.T, p place) {
	p.write(1, 3)
	p.write(2, 4)
	require.Equal(t, projection.Builds{Serving: 1, Others: []int{2}, Last: 2}, p.builds("graph"))
	cps, err := p.Generations.Checkpoints(t.Context(), "graph", 2)
	require.NoError(t, err)
	require.Len(t, cps, 1)
	require.EqualValues(t, 4, cps[0].Seq)

	require.NoError(t, p.Generations.Supersede(t.Context(), "graph", 1, 2))
	require.NoError(t, p.Generations.Supersede(t.Context(), "graph", 1, 2), "a second time")
	require.Equal(t, projection.Builds{Serving: 2, Others: []int{1}, Last: 2}, p.builds("graph"))
	require.Equal(t, 1, p.builds("files").Serving, "each projection on its own")
	require.ErrorIs(t, p.Generations.Supersede(t.Context(), "graph", 1, 3), projection.ErrSuperseded)
	require.ErrorIs(t, p.Generations.Discard(t.Context(), "graph", 2), projection.ErrServing)
	require.Equal(t, 3, p.messages(1), "it is there until it is discarded")

	require.NoError(t, p.Generations.Discard(t.Context(), "graph", 1))
	require.NoError(t, p.Generations.Discard(t.Context(), "graph", 1), "a second time")
	require.Equal(t, projection.Builds{Serving: 2, Last: 2}, p.builds("graph"))
	require.Equal(t, projection.Builds{Serving: 1, Others: []int{2}, Last: 2}, p.builds("files"))
	require.Equal(t, 4, p.messages(2))
	cps, err = p.Generations.Checkpoints(t.Context(), "graph", 1)
	require.NoError(t, err)
	require.Empty(t, cps)

	p.write(3, 5)
	require.NoError(t, p.Generations.Supersede(t.Context(), "graph", 2, 3))
	require.Equal(t, 3, p.builds("graph").Serving)
	require.Equal(t, 5, p.messages(3))
}

func discarded(t *testing.T, p place) {
	p.write(1, 3)
	p.write(2, 2)
	require.NoError(t, p.Generations.Discard(t.Context(), "graph", 2))
	require.Empty(t, p.builds("graph").Others)
	require.ErrorIs(t, p.Generations.Supersede(t.Context(), "graph", 1, 2), projection.ErrSuperseded)
	require.Equal(t, 1, p.builds("graph").Serving)
	require.Equal(t, 3, p.messages(1))
	require.Equal(t, []int{2}, p.builds("files").Others, "each projection on its own")
}

func manyChange(t *testing.T, p place) {
	const most = 5
	for generation := 1; generation <= most; generation++ {
		p.write(generation, generation)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var won []int
	for to := 2; to <= most; to++ {
		all.Go(func() {
			err := p.Generations.Supersede(t.Context(), "graph", 1, to)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, to)
			} else if !errors.Is(err, projection.ErrSuperseded) {
				t.Errorf("%d: %v", to, err)
			}
		})
	}
	all.Wait()
	require.Len(t, won, 1)
	require.Equal(t, won[0], p.builds("graph").Serving)
	require.Equal(t, won[0], p.messages(won[0]))
}

// alwaysWhole compares the store with a model of it after operations in random order.
func alwaysWhole(rt *rapid.T, p place) {
	p.writeGraph(1, 1)
	serving, last, lost, there := 1, 1, 0, []int{1}
	for range rapid.IntRange(1, 8).Draw(rt, "steps") {
		switch rapid.IntRange(0, 2).Draw(rt, "step") {
		case 0:
			last++
			p.writeGraph(last, last)
			there = append(there, last)
		case 1:
			to := rapid.SampledFrom(there).Draw(rt, "to")
			if serving < to && to <= lost { // may be refused or not
				continue
			}
			err := p.Generations.Supersede(p.Context(), "graph", serving, to)
			if to < serving {
				require.ErrorIs(rt, err, projection.ErrSuperseded, "back to %d", to)
				continue
			}
			require.NoError(rt, err)
			serving = to
		case 2:
			one := rapid.SampledFrom(there).Draw(rt, "one")
			err := p.Generations.Discard(p.Context(), "graph", one)
			if one == serving {
				require.ErrorIs(rt, err, projection.ErrServing)
				continue
			}
			require.NoError(rt, err)
			lost = max(lost, one)
			there = slices.DeleteFunc(there, func(n int) bool { return n == one })
		}
		b := p.builds("graph")
		require.Equal(rt, serving, b.Serving)
		require.GreaterOrEqual(rt, b.Last, serving)
		require.ElementsMatch(rt, slices.DeleteFunc(slices.Clone(there), func(n int) bool { return n == serving }), b.Others)
		require.Equal(rt, serving, p.messages(serving))
	}
}
