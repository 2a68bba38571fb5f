package graph

import (
	"cmp"
	"maps"
	"slices"

	"mneme.dev/mneme/events"
)

// CallRef names a tool call.
type CallRef struct {
	Conversation events.ConversationID
	ToolCallID   string
}

// Waiting holds calls until their results arrive, or results until their calls arrive.
// Nearly all pairs meet in one batch and are never stored.
type Waiting[R any] struct {
	rows map[CallRef]waiting[R]
	met  []CallRef
}

type waiting[R any] struct {
	row    R
	stored bool
}

// Loaded adds a row that the backend has stored.
func (w *Waiting[R]) Loaded(ref CallRef, row R) { w.put(ref, waiting[R]{row, true}) }

func (w *Waiting[R]) add(ref CallRef, row R) { w.put(ref, waiting[R]{row, false}) }

func (w *Waiting[R]) put(ref CallRef, row waiting[R]) {
	if w.rows == nil {
		w.rows = map[CallRef]waiting[R]{}
	}
	w.rows[ref] = row
}

// take removes and returns a waiting row.
func (w *Waiting[R]) take(ref CallRef) (row R, stored, ok bool) {
	found, ok := w.rows[ref]
	delete(w.rows, ref)
	if found.stored {
		w.met = append(w.met, ref)
	}
	return found.row, found.stored, ok
}

// drop removes the rows of a conversation.
func (w *Waiting[R]) drop(id events.ConversationID) {
	maps.DeleteFunc(w.rows, func(ref CallRef, _ waiting[R]) bool { return ref.Conversation == id })
}

// New lists the rows to store, sorted by conversation and call.
func (w *Waiting[R]) New() []CallRef {
	var list []CallRef
	for ref, row := range w.rows {
		if !row.stored {
			list = append(list, ref)
		}
	}
	slices.SortFunc(list, func(a, b CallRef) int {
		return cmp.Or(
			cmp.Compare(a.Conversation.Tenant, b.Conversation.Tenant),
			cmp.Compare(a.Conversation.ID, b.Conversation.ID),
			cmp.Compare(a.ToolCallID, b.ToolCallID))
	})
	return list
}

// Row returns the row that waits for a call.
func (w *Waiting[R]) Row(ref CallRef) R { return w.rows[ref].row }

// Met lists the stored rows that no longer wait and must be deleted.
func (w *Waiting[R]) Met() []CallRef { return w.met }
