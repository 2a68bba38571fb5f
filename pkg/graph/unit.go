package graph

import (
	"cmp"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// State is a conversation in a unit of work: as loaded, with the reducers' changes.
type State struct {
	Conversation
	Ledger  summary.Ledger // what its summaries cover; its open amounts are not used here
	Key     int64          // the backend's key of the conversation, 0 if it has none yet
	Touched bool           // something changed: save it
	Dropped bool           // delete its stored rows before saving
	Ended   bool           // the stored current version ends at the first of Versions
}

// Unit is the unit of work of the projection "graph". Rows are in order of sequence.
type Unit struct {
	States   map[events.ConversationID]*State
	Messages []projection.Of[State, Message]
	Calls    []projection.Of[State, ToolCall]
	Results  []projection.Of[State, ToolResult]
	Versions []projection.Of[State, Version]
	said     []projection.Of[State, said]
	made     map[uint64]made // derived bags, by sequence

	Summaries []projection.Of[State, Summary]
	Condensed []projection.Of[State, Condensed]
	// Rows of earlier batches that reducers look up: see [LookupsOf].
	Known    map[SummaryRef]summary.Range // including the summaries of this batch
	Returned map[CallRef]bool             // calls that have a result
}

// Version is a description from the sequence that made it to the sequence that ended it;
// Ended 0 means that it is current.
type Version struct {
	Seq   uint64
	Ended uint64
	Time  string // of the event that made it, as in Origin
	Description
}

// NewUnit makes an empty unit; the backend adds the states that it loads.
func NewUnit() *Unit {
	return &Unit{States: map[events.ConversationID]*State{}, Known: map[SummaryRef]summary.Range{}, Returned: map[CallRef]bool{}, made: map[uint64]made{}}
}

// Tombstone implements projection.Unit.
func (u *Unit) Tombstone(id events.ConversationID) uint64 {
	if s := u.States[id]; s != nil {
		return s.DeletedSeq
	}
	return 0
}

// touch finds or creates the conversation of an event and records its new last sequence.
func (u *Unit) touch(e *events.Recorded) *State {
	id := e.Conversation()
	s := u.States[id]
	if s == nil {
		s = &State{}
		u.States[id] = s
	}
	if s.FirstSeq == 0 {
		s.ID, s.FirstSeq = id, e.Seq
		s.Status = "active"
		u.Versions = append(u.Versions, projection.RowOf(s, Version{Seq: e.Seq, Time: timeText(e), Description: s.Description}))
	}
	s.LastSeq = e.Seq
	s.Touched = true
	if at := timeText(e); at != "" {
		s.CreatedAt = cmp.Or(s.CreatedAt, at)
		s.UpdatedAt = at
	}
	return s
}

// describe makes a new version of the conversation's description.
func (u *Unit) describe(s *State, e *events.Recorded) {
	for i := range u.Versions {
		if v := &u.Versions[i]; v.State == s && v.Row.Ended == 0 {
			if v.Row.Seq == e.Seq { // the version that this event started
				v.Row.Description = s.Description
				return
			}
			v.Row.Ended = e.Seq
		}
	}
	s.Ended = true
	u.Versions = append(u.Versions, projection.RowOf(s, Version{Seq: e.Seq, Time: timeText(e), Description: s.Description}))
}

// drop removes a conversation's rows from the unit and marks its stored rows for deletion.
func (u *Unit) drop(s *State) {
	u.Messages = projection.Without(u.Messages, s)
	u.said = projection.Without(u.said, s)
	u.Calls = projection.Without(u.Calls, s)
	u.Results = projection.Without(u.Results, s)
	u.Versions = projection.Without(u.Versions, s)
	u.Summaries = projection.Without(u.Summaries, s)
	u.Condensed = projection.Without(u.Condensed, s)
	s.Dropped = true
}

func originOf(e *events.Recorded) Origin {
	return Origin{EventID: e.ID, Source: e.Source, Time: timeText(e)}
}

// timeText formats the producer's time for a read model: RFC 3339 in UTC.
func timeText(e *events.Recorded) string {
	if e.Time.IsZero() {
		return ""
	}
	return e.Time.UTC().Format(time.RFC3339Nano)
}
