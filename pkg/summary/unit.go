package summary

import (
	"cmp"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Conversation is the row that the read model "summaries" keeps for each conversation. Its
// size does not depend on the conversation's length.
type Conversation struct {
	projection.ConversationState
	FirstSeq uint64

	Ledger       Ledger
	Turn         int // user messages
	Chars        int // as [Count] counts them
	CoveredTurn  int // the turn where the part not covered by level 1 begins
	CoveredChars int // characters before that part

	MaxContextChars int    // from conversation.started, 0 if not given
	Profile         string // from conversation.started
	Titled          bool   // a title was given
	FirstUser       uint64 // sequence of the first user message
	Answered        bool   // an assistant's message came after FirstUser

	Trimmed bool // its marks covered by level 1 must be deleted
}

// Pending returns the most characters that wait for a summary on any level, including the
// last turns and the last summary of each level.
func (c *Conversation) Pending() int {
	pending := c.Chars - c.CoveredChars
	for _, level := range c.Ledger.Levels {
		pending = max(pending, level.Open)
	}
	return pending
}

// Untitled reports whether it is time for a title.
func (c *Conversation) Untitled() bool { return !c.Titled && c.Answered && c.DeletedSeq == 0 }

// Taken is an accepted summary.
type Taken struct {
	Range
	Seq     uint64 // Sequence of its event.
	Revised bool   // It supersedes another one, which stays in the ledger. This one only adds an id, and has the Chars of the first.
}

// ref identifies a summary.
type ref struct {
	conversation events.ConversationID
	id           string
}

// at is a sequence in a conversation.
type at struct {
	conversation events.ConversationID
	seq          uint64
}

// Unit is the unit of work of the projection "summaries". Rows are in the order of their
// sequences.
type Unit struct {
	projection.States[Conversation, *Conversation]
	Marks []projection.Of[Conversation, Mark]
	Taken []projection.Of[Conversation, Taken]

	known map[ref]Range
	after map[at]Mark
}

// NewUnit returns an empty unit, to which the backend adds what it has loaded.
func NewUnit() *Unit {
	return &Unit{States: projection.States[Conversation, *Conversation]{}, known: map[ref]Range{}, after: map[at]Mark{}}
}

// Loaded adds a stored summary. The backend must call it for each that a summary of the
// batch names.
func (u *Unit) Loaded(id events.ConversationID, r Range) { u.known[ref{id, r.ID}] = r }

// LoadedMark adds the first stored mark after a sequence. The backend must call it for the
// end of each level 1 range in the batch.
func (u *Unit) LoadedMark(id events.ConversationID, seq uint64, m Mark) { u.after[at{id, seq}] = m }

// Projection declares the read model "summaries": which parts of each conversation have a summary, and how much still
// waits for one.
func Projection() projection.Projection[*Unit] {
	return projection.Projection[*Unit]{
		Name:    "summaries",
		Version: 3,
		Reducers: map[string]projection.Reducer[*Unit]{
			events.TypeConversationStarted: reduceStarted,
			events.TypeConversationUpdated: reduceUpdated,
			events.TypeConversationDeleted: reduceDeleted,
			events.TypeMessageCreated:      reduceMessage,
			events.TypeToolCalled:          reduceText,
			events.TypeToolReturned:        reduceText,
			events.TypeSummaryWritten:      reduceSummary,
		},
	}
}

func (u *Unit) touch(e *events.Recorded) *Conversation {
	c := u.Touch(e)
	c.FirstSeq = cmp.Or(c.FirstSeq, e.Seq)
	return c
}

func reduceStarted(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.ConversationStarted)
	c := u.touch(e)
	c.Titled = c.Titled || p.Title != ""
	if p.MaxContextChars > 0 {
		c.MaxContextChars = p.MaxContextChars
	}
	if p.Profile != "" {
		c.Profile = p.Profile[:min(len(p.Profile), maxProfile)]
	}
	return nil
}

// maxProfile limits the stored part of a profile's name, in bytes.
const maxProfile = 256

func reduceUpdated(u *Unit, e *events.Recorded) error {
	c := u.touch(e)
	// Removing a title is a decision too.
	c.Titled = c.Titled || e.Payload.(*events.ConversationUpdated).Title != nil
	return nil
}

func reduceDeleted(u *Unit, e *events.Recorded) error {
	c := u.touch(e)
	first := c.FirstSeq
	c = u.Delete(e)
	c.FirstSeq = first
	u.Marks = projection.Without(u.Marks, c)
	u.Taken = projection.Without(u.Taken, c)
	return nil
}

func reduceMessage(u *Unit, e *events.Recorded) error {
	c := u.touch(e)
	switch e.Payload.(*events.MessageCreated).Role {
	case "user":
		c.Turn++
		c.FirstUser = cmp.Or(c.FirstUser, e.Seq)
	case "assistant":
		c.Answered = c.Answered || c.FirstUser > 0
	default:
		c.Chars += Count(e.Payload)
		return nil
	}
	u.Marks = append(u.Marks, projection.RowOf(c, Mark{Seq: e.Seq, Turn: c.Turn, Chars: c.Chars}))
	c.Chars += Count(e.Payload)
	return nil
}

func reduceText(u *Unit, e *events.Recorded) error {
	u.touch(e).Chars += Count(e.Payload)
	return nil
}

func reduceSummary(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.SummaryWritten)
	id := e.Conversation()
	var first, last uint64
	if c := u.States[id]; c != nil {
		first, last = c.FirstSeq, c.LastSeq
	}
	if first == 0 {
		return fmt.Errorf("%w: the conversation has no events before it", projection.ErrInvalid)
	}
	c := u.States[id]
	if err := c.Ledger.Take(p, first, last, func(name string) (Range, bool) {
		r, ok := u.known[ref{id, name}]
		return r, ok
	}); err != nil {
		return fmt.Errorf("%w: %w", projection.ErrInvalid, err)
	}
	u.touch(e)
	taken := Taken{Seq: e.Seq, Revised: p.Supersedes != "", Range: Range{
		ID: p.SummaryID, Level: p.Level, First: p.FirstSeq, Last: p.LastSeq, FirstTurn: p.FirstTurn, LastTurn: p.LastTurn, Chars: p.CharsOut,
	}}
	if taken.Revised { // as a child it must subtract from Level.Open what the first revision added
		taken.Chars = u.known[ref{id, p.Supersedes}].Chars
	}
	u.known[ref{id, p.SummaryID}] = taken.Range
	u.Taken = append(u.Taken, projection.RowOf(c, taken))
	if p.Level == 1 && !taken.Revised {
		u.cover(c, p.LastSeq)
	}
	return nil
}

// cover records how far level 1 has come and drops the marks up to there, which are no
// longer needed.
func (u *Unit) cover(c *Conversation, last uint64) {
	c.CoveredTurn, c.CoveredChars = c.Turn, c.Chars
	c.Trimmed = true
	kept := u.Marks[:0]
	found := false
	for _, m := range u.Marks {
		if m.State != c {
			kept = append(kept, m)
			continue
		}
		if m.Row.Seq > last {
			kept = append(kept, m)
			if !found {
				found, c.CoveredTurn, c.CoveredChars = true, m.Row.Turn, m.Row.Chars
			}
		}
	}
	u.Marks = kept
	if m, ok := u.after[at{c.ID, last}]; ok {
		c.CoveredTurn, c.CoveredChars = m.Turn, m.Chars
	}
}
