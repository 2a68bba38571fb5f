package window

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/recall"
)

// Another order loses no hit, and the scores fall as before.
func TestAnOrderKeepsEveryHitAndTheScores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var f Found
		for i, score := range slices.Sorted(slices.Values(rapid.SliceOfN(rapid.Float64Range(0, 2), 0, 20).Draw(r, "scores"))) {
			f.Hits = append([]recall.Hit{{Seq: uint64(i + 1), Score: score, Parts: recall.Parts{Dense: score}}}, f.Hits...)
		}
		before := slices.Clone(f.Hits)
		order := rapid.SliceOfN(rapid.Uint64Range(1, 25), 0, 25).Draw(r, "order")
		f.reorder(order)
		seen := map[uint64]bool{}
		for i, h := range f.Hits {
			if h.Score != before[i].Score || seen[h.Seq] {
				r.Fatalf("hit %d: %+v", i, h)
			}
			seen[h.Seq] = true
		}
		if len(seen) != len(before) {
			r.Fatalf("%d hits of %d", len(seen), len(before))
		}
		var wanted, got []uint64
		for _, seq := range order {
			if seen[seq] && !slices.Contains(wanted, seq) {
				wanted = append(wanted, seq)
			}
		}
		for _, h := range f.Hits[:len(wanted)] {
			got = append(got, h.Seq)
		}
		if !slices.Equal(wanted, got) {
			r.Fatalf("%v instead of %v", got, wanted)
		}
	})
	f := Found{Hits: []recall.Hit{{Seq: 3, Score: 3}, {Seq: 2, Score: 2}, {Seq: 1, Score: 1}}}
	f.reorder([]uint64{1, 9, 3})
	require.Equal(t, []recall.Hit{{Seq: 1, Score: 3}, {Seq: 3, Score: 2}, {Seq: 2, Score: 1}}, f.Hits)
}
