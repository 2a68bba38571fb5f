package projection

import (
	"cmp"
	"slices"
)

// assign says which member each partition belongs to, "" if there are no members. held is
// the current holder of each partition, "" if there is none.
//
// Shares differ by at most one, and as few partitions move as possible. The result depends
// on nothing else, not even on the order of members. So processes that see the same members
// and leases get the same result, and keep it once each partition is where it belongs.
func assign(members, held []string) []string {
	owners := make([]string, len(held))
	if len(members) == 0 {
		return owners
	}
	holds := map[string]int{}
	for _, holder := range held {
		holds[holder]++
	}
	// If the partitions can't be shared evenly, the members that hold most get one more.
	order := slices.Clone(members)
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(holds[b], holds[a]), cmp.Compare(a, b))
	})
	room := make(map[string]int, len(order))
	for i, member := range order {
		room[member] = len(held) / len(order)
		if i < len(held)%len(order) {
			room[member]++
		}
	}
	for partition, holder := range held {
		if room[holder] > 0 {
			owners[partition] = holder
			room[holder]--
		}
	}
	for partition := range owners {
		if owners[partition] != "" {
			continue
		}
		for room[order[0]] == 0 {
			order = order[1:]
		}
		owners[partition] = order[0]
		room[order[0]]--
	}
	return owners
}
