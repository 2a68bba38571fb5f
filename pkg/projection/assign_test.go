package projection

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// cluster is what a process can see: which members exist and who holds what.
type cluster struct{ members, held []string }

func drawCluster(r *rapid.T) cluster {
	var c cluster
	for n := range rapid.IntRange(0, 8).Draw(r, "members") {
		c.members = append(c.members, fmt.Sprint("p", n))
	}
	holders := append([]string{"", "gone"}, c.members...)
	c.held = rapid.SliceOfN(rapid.SampledFrom(holders), 1, 32).Draw(r, "held")
	return c
}

func counts(members, owners []string) map[string]int {
	n := map[string]int{}
	for _, member := range members {
		n[member] = 0
	}
	for _, owner := range owners {
		n[owner]++
	}
	return n
}

func moved(held, owners []string) (n int) {
	for partition := range held {
		if held[partition] != owners[partition] {
			n++
		}
	}
	return n
}

func TestPartitionsAreSharedEvenly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c := drawCluster(r)
		owners := assign(c.members, c.held)
		require.Len(r, owners, len(c.held))
		if len(c.members) == 0 {
			require.Equal(r, make([]string, len(c.held)), owners)
			return
		}
		low, high := len(c.held), 0
		for member, n := range counts(c.members, owners) {
			require.Contains(r, c.members, member)
			low, high = min(low, n), max(high, n)
		}
		require.LessOrEqual(r, high-low, 1)
	})
}

func TestNoPartitionMovesWithoutNeed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c := drawCluster(r)
		if len(c.members) == 0 {
			return
		}
		// A member may keep a fair share of what it holds, and one more if the shares are uneven.
		fair, over := len(c.held)/len(c.members), len(c.held)%len(c.members)
		keep := 0
		holds := counts(c.members, c.held)
		for _, member := range c.members {
			keep += min(holds[member], fair)
			if holds[member] > fair && over > 0 {
				keep++
				over--
			}
		}
		require.Equal(r, len(c.held)-keep, moved(c.held, assign(c.members, c.held)))
	})
}

func TestOrderOfMembersDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c := drawCluster(r)
		other := rapid.Permutation(c.members).Draw(r, "order")
		before := slices.Clone(other)
		require.Equal(r, assign(c.members, c.held), assign(other, c.held))
		require.Equal(r, before, other)
	})
}

// One process at a time, in any order, gives up or takes one partition as it sees fit.
func TestProcessesActingOneByOneSettle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c := drawCluster(r)
		if len(c.members) == 0 {
			return
		}
		for p, holder := range c.held {
			if holder == "gone" {
				c.held[p] = "" // its lease expires
			}
		}
		steps := 0
		for {
			owners := assign(c.members, c.held)
			var wrong []int
			for p, holder := range c.held {
				if holder != owners[p] {
					wrong = append(wrong, p)
				}
			}
			if len(wrong) == 0 {
				break
			}
			p := rapid.SampledFrom(wrong).Draw(r, "partition")
			if c.held[p] == "" {
				c.held[p] = owners[p]
			} else {
				c.held[p] = ""
			}
			steps++
			require.LessOrEqual(r, steps, 2*len(c.held), "each partition is given up and taken at most once")
		}
		require.Equal(r, c.held, assign(c.members, c.held))
	})
}

func TestNewMemberTakesFromAllAndLeavingMovesOnlyItsShare(t *testing.T) {
	t.Parallel()
	held := make([]string, 8)
	held = assign([]string{"a"}, held)
	require.Equal(t, []string{"a", "a", "a", "a", "a", "a", "a", "a"}, held)
	held = assign([]string{"a", "b"}, held)
	require.Equal(t, []string{"a", "a", "a", "a", "b", "b", "b", "b"}, held)
	held = assign([]string{"a", "b", "c"}, held)
	require.Equal(t, []string{"a", "a", "a", "c", "b", "b", "b", "c"}, held)
	held = assign([]string{"b", "c"}, held)
	require.Equal(t, []string{"b", "c", "c", "c", "b", "b", "b", "c"}, held)
}
