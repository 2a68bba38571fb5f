package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func plans(t *rapid.T) Plan {
	n := rapid.IntRange(1, 400).Draw(t, "faults")
	return Plan{
		Seed: rapid.Uint64().Draw(t, "seed"), Faults: n,
		Duration: time.Duration(n) * time.Duration(rapid.IntRange(int(4*time.Second), int(20*time.Second)).Draw(t, "each")),
	}
}

func TestAScheduleDependsOnItsPlanAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := plans(t)
		require.Equal(t, Schedule(p), Schedule(p))
		other := p
		other.Seed++
		if p.Faults > 5 {
			require.NotEqual(t, Schedule(p), Schedule(other), "the seed has no effect")
		}
	})
}

func TestAScheduleIsFeasible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := plans(t)
		list := Schedule(p)
		require.Len(t, list, p.Faults)
		require.True(t, slices.IsSortedFunc(list, func(a, b Fault) int { return int(a.At - b.At) }))
		busy := map[string]time.Duration{}
		for i, f := range list {
			require.Equal(t, i+1, f.N)
			require.Contains(t, targets()[f.Kind], f.Target)
			require.LessOrEqual(t, f.Length, maxLength)
			require.GreaterOrEqual(t, f.Length, time.Duration(0))
			for _, domain := range f.domains() {
				require.GreaterOrEqual(t, f.At, busy[domain], "%s: %s is hit already", f, domain)
				busy[domain] = f.At + f.Length
			}
		}
		require.Less(t, End(list), p.Duration*3/2+time.Minute, "it takes much longer than planned")
	})
}

func TestAScheduleHasEveryKindAndEveryTarget(t *testing.T) {
	t.Parallel()
	kinds := targets()
	rapid.Check(t, func(t *rapid.T) {
		p := plans(t)
		p.Faults = len(kinds)
		seen := map[Kind]bool{}
		for _, f := range Schedule(p) {
			seen[f.Kind] = true
		}
		require.Len(t, seen, len(kinds))
	})
	want := map[[2]string]bool{}
	for kind, list := range kinds {
		for _, target := range list {
			want[[2]string{string(kind), target}] = true
		}
	}
	for _, f := range Schedule(Plan{Seed: 1, Faults: 300, Duration: time.Hour}) {
		delete(want, [2]string{string(f.Kind), f.Target})
	}
	require.Empty(t, want, "300 faults leave something out")
}

// Some faults overlap, and after some there is time to recover.
func TestAScheduleHasPausesAndOverlaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := plans(t)
		p.Faults = 100
		p.Duration = 20 * time.Minute
		list := Schedule(p)
		mean := p.Duration / time.Duration(len(list))
		calm, rushed := 0, 0
		for i, f := range list[1:] {
			switch gap := f.At - list[i].At; {
			case gap > mean:
				calm++
			case gap < mean*3/4:
				rushed++
			}
		}
		require.Greater(t, calm, 20)
		require.Greater(t, rushed, 20)
	})
}
