package projection

import (
	"cmp"
	"slices"

	"mneme.dev/mneme/events"
)

// ConversationState is what every unit of work knows of a conversation. The state of a read model embeds it.
type ConversationState struct {
	ID         events.ConversationID
	Key        int64  // the backend's key of the stored row, 0 if there is none
	LastSeq    uint64 // of the newest event
	DeletedSeq uint64 // of the event that deleted the conversation, 0 if none did
	Touched    bool   // an event of the batch changed it: save it
	Dropped    bool   // an event of the batch deleted it: delete its other rows before it is saved
}

// Common returns the part of a state that all read models have.
func (s *ConversationState) Common() *ConversationState { return s }

// StateOf is a pointer to a state that embeds a [ConversationState].
type StateOf[S any] interface {
	*S
	Common() *ConversationState
}

// States are the conversations of a unit of work, each with its state. A unit that embeds them is a [Unit].
type States[S any, P StateOf[S]] map[events.ConversationID]*S

// Of is a new row and the state of the conversation that it belongs to.
type Of[S, R any] struct {
	State *S
	Row   R
}

// RowOf returns a new row of a conversation.
func RowOf[S, R any](s *S, row R) Of[S, R] { return Of[S, R]{s, row} }

// Without removes the rows of a conversation, which was deleted. It changes the list.
func Without[S, R any](rows []Of[S, R], s *S) []Of[S, R] {
	return slices.DeleteFunc(rows, func(r Of[S, R]) bool { return r.State == s })
}

// Begin adds an empty state for each conversation of these events that has none, and returns the new ones in the order of
// the events. A store then loads those that it has.
func (m States[S, P]) Begin(list []*events.Recorded) (added []events.ConversationID) {
	for _, e := range list {
		if id := e.Conversation(); m[id] == nil {
			m.add(id)
			added = append(added, id)
		}
	}
	return added
}

func (m States[S, P]) add(id events.ConversationID) *S {
	s := new(S)
	P(s).Common().ID = id
	m[id] = s
	return s
}

// Touch returns the state of an event's conversation, which the event changes.
func (m States[S, P]) Touch(e *events.Recorded) *S {
	s := m[e.Conversation()]
	if s == nil {
		s = m.add(e.Conversation())
	}
	c := P(s).Common()
	c.LastSeq, c.Touched = e.Seq, true
	return s
}

// Delete empties the state of an event's conversation, which the event deletes. The caller also drops the rows of the
// batch, see [Without].
func (m States[S, P]) Delete(e *events.Recorded) *S {
	s := m.Touch(e)
	was := P(s).Common()
	id, key := was.ID, was.Key
	*s = *new(S)
	*P(s).Common() = ConversationState{ID: id, Key: key, LastSeq: e.Seq, DeletedSeq: e.Seq, Touched: true, Dropped: true}
	return s
}

// Touched returns the states that events changed, in the order of their newest events.
func (m States[S, P]) Touched() []*S {
	list := make([]*S, 0, len(m))
	for _, s := range m {
		if P(s).Common().Touched {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *S) int { return cmp.Compare(P(a).Common().LastSeq, P(b).Common().LastSeq) })
	return list
}

// Tombstone implements [Unit].
func (m States[S, P]) Tombstone(id events.ConversationID) uint64 {
	if s := m[id]; s != nil {
		return P(s).Common().DeletedSeq
	}
	return 0
}

// Lives reports whether the unit has a conversation that is not deleted.
func (m States[S, P]) Lives(id events.ConversationID) bool {
	return m[id] != nil && m.Tombstone(id) == 0
}
