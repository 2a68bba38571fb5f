package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
)

// MaxAncestors is how many ancestors of a branch are looked up, found or not. More
// distant ones are ignored.
const MaxAncestors = 16

// Lineage is a conversation with the ancestors that it branched from, as of a
// sequence. Before its own rows, a branch shows everything that its parent showed up to
// and including the message where it branched.
//
// A branching point is valid if its message precedes the first own message, call or
// result of the branch in the log. So the inherited part never changes once the branch
// has a row, and the rows of a lineage are in order of sequence, ancestors first. A
// lineage ends at an unknown parent or message and at a deleted parent: then the branch
// has only its own rows.
type Lineage struct {
	own      Conversation
	asOf     uint64
	segments []segment // the conversation itself, its parent, the parent's parent …
	sought   []events.ConversationID
}

// segment is the part of a lineage that comes from one conversation.
type segment struct {
	id     events.ConversationID
	from   uint64 // first sequence, after the older segment
	upTo   uint64 // last sequence
	first  uint64 // sequence of the conversation's first event
	own    Counts // of the conversation, up to upTo
	before Counts // of the older segments together

	repairs uint64 // of the conversation, see Conversation.Repairs
}

// Inherited describes what a branch inherits from its ancestors.
type Inherited struct {
	events.BranchedAt
	Counts // LastSeq is the sequence of the message
}

// LineageOf finds the ancestors of a conversation as of a sequence. It returns
// ErrNotFound like Reader.Conversation, which is its only read for a conversation
// without a parent. Any other error of a read is returned too, so a lineage never ends
// because the store has trouble.
func LineageOf(ctx context.Context, r Reader, id events.ConversationID, asOf uint64) (*Lineage, error) {
	own, err := r.Conversation(ctx, id, asOf)
	if err != nil {
		return nil, err
	}
	l := &Lineage{own: own, asOf: asOf}
	above, err := l.inheritedBy(ctx, r, own, asOf)
	if err != nil {
		return nil, err
	}
	l.segments = append([]segment{{id: id, upTo: asOf, first: own.FirstSeq, own: own.Counts, repairs: own.Repairs}}, above...)
	for i := len(l.segments) - 2; i >= 0; i-- {
		s, older := &l.segments[i], l.segments[i+1]
		s.from, s.before = older.upTo+1, older.before.plus(older.own)
	}
	return l, nil
}

// inheritedBy returns the segments that a conversation inherits, the nearest first.
func (l *Lineage) inheritedBy(ctx context.Context, r Reader, c Conversation, asOf uint64) ([]segment, error) {
	if c.BranchedFrom == nil || len(l.sought) == MaxAncestors {
		return nil, nil
	}
	parent := events.ConversationID{Tenant: c.ID.Tenant, ID: c.BranchedFrom.ConversationID}
	l.sought = append(l.sought, parent)
	list, err := l.shownUpTo(ctx, r, parent, c.BranchedFrom.MessageID, asOf)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil || len(list) == 0 {
		return nil, err
	}
	precedes, err := precedesRows(ctx, r, c, list[0].upTo)
	if !precedes || err != nil {
		return nil, err
	}
	return list, nil
}

// precedesRows reports whether a sequence is before all rows of a conversation. For a
// branch made in the usual way it is before all of its events.
func precedesRows(ctx context.Context, r Reader, c Conversation, seq uint64) (bool, error) {
	if seq < c.FirstSeq {
		return true, nil
	}
	rows, err := r.Transcript(ctx, c.ID, TranscriptQuery{Before: seq + 1, Limit: 1})
	return len(rows) == 0, err
}

// shownUpTo returns the segments that a conversation shows up to and including a message,
// its own or inherited; none if the message is unknown.
func (l *Lineage) shownUpTo(ctx context.Context, r Reader, id events.ConversationID, messageID string, asOf uint64) ([]segment, error) {
	s, c, err := cutAt(ctx, r, id, messageID, asOf)
	if err != nil {
		return nil, err
	}
	if s != nil {
		above, err := l.inheritedBy(ctx, r, c, s.upTo)
		return append([]segment{*s}, above...), err
	}
	if c, err = r.Conversation(ctx, id, asOf); err != nil {
		return nil, err
	}
	above, err := l.inheritedBy(ctx, r, c, asOf)
	for i := range above {
		s, _, err := cutAt(ctx, r, above[i].id, messageID, above[i].upTo)
		if err != nil {
			return nil, err
		}
		if s != nil {
			above[i] = *s
			return above[i:], nil
		}
	}
	return nil, err
}

// cutAt returns the conversation as of one of its own messages; nil if it does not have
// the message.
func cutAt(ctx context.Context, r Reader, id events.ConversationID, messageID string, asOf uint64) (*segment, Conversation, error) {
	ref := Ref{ID: messageID}
	found, err := r.MessagesByID(ctx, id, []Ref{ref}, asOf)
	m, ok := found[ref]
	if !ok || err != nil {
		return nil, Conversation{}, err
	}
	c, err := r.Conversation(ctx, id, m.Seq)
	return &segment{id: id, upTo: m.Seq, first: c.FirstSeq, own: c.Counts, repairs: c.Repairs}, c, err
}

// Own returns the conversation with only its own counts.
func (l *Lineage) Own() Conversation { return l.own }

// Conversation returns the conversation with its ancestors' counts added.
func (l *Lineage) Conversation() Conversation {
	c := l.own
	c.Counts = c.Counts.plus(l.segments[0].before)
	c.FirstSeq = min(c.FirstSeq, l.segments[len(l.segments)-1].first)
	return c
}

// Inherited returns what the conversation inherits, nil if nothing.
func (l *Lineage) Inherited() *Inherited {
	if len(l.segments) == 1 {
		return nil
	}
	return &Inherited{*l.own.BranchedFrom, l.segments[0].before}
}

// Descent identifies the inherited rows, for caches: lineages of one conversation that may
// have different rows have different values. It names the ancestors, where they end, and
// the number of repairs counted for each.
func (l *Lineage) Descent() string {
	var w strings.Builder
	fmt.Fprint(&w, l.segments[0].repairs)
	for _, s := range l.segments[1:] {
		fmt.Fprintf(&w, " %q %d %d", s.id.ID, s.upTo, s.repairs)
	}
	return w.String()
}

// Ancestors returns the conversations that were looked up, the nearest first. The read
// model may not know some of them, or not yet.
func (l *Lineage) Ancestors() []events.ConversationID { return l.sought }

// Shows reports whether an event of a conversation belongs to this lineage: what an ancestor said after the branching
// point does not.
func (l *Lineage) Shows(id events.ConversationID, seq uint64) bool {
	return slices.ContainsFunc(l.segments, func(s segment) bool { return s.id == id && seq <= s.upTo })
}

// plus adds the counts of later rows.
func (c Counts) plus(o Counts) Counts {
	return Counts{
		MessageCount:    c.MessageCount + o.MessageCount,
		TurnCount:       c.TurnCount + o.TurnCount,
		StepCount:       c.StepCount + o.StepCount,
		ToolCallCount:   c.ToolCallCount + o.ToolCallCount,
		ToolResultCount: c.ToolResultCount + o.ToolResultCount,
		SummaryCount:    c.SummaryCount + o.SummaryCount,
		CondensedCount:  c.CondensedCount + o.CondensedCount,
		TotalChars:      c.TotalChars + o.TotalChars,
		LastSeq:         max(c.LastSeq, o.LastSeq),
	}
}
