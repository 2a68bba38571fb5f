package projection

import (
	"cmp"
	"slices"

	"mneme.dev/mneme/events"
)

// sortIDs orders conversations by tenant and id, bytewise. Strings are sorted in Go because
// backends sort them differently.
func sortIDs(ids []events.ConversationID) {
	slices.SortFunc(ids, func(a, b events.ConversationID) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
}
