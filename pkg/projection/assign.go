package projection

import (
	"cmp"
	"slices"
)

// assign says which of the members each partition belongs to, "" if there are none.
// held is who holds each partition now, "" if nobody does.
//
// The members' shares differ by one at most, and as few partitions move as that
// allows. It depends on nothing else and not on the order of members: processes that
// see the same members and the same leases come to the same result, and to that result
// again once each partition is where it belongs.
func assign(members, held []string) []string {
	owners := make([]string, len(held))
	if len(members) == 0 {
		return owners
	}
	holds := map[string]int{}
	for _, holder := range held {
		holds[holder]++
	}
	// Where the partitions can't be shared evenly those get one more that hold most.
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
