package graph

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mneme/events"
)

// MaxAncestors is how many ancestors of a branch are looked for, found or not. What
// lies further up is not seen.
const MaxAncestors = 16

// Lineage is a conversation with the ancestors that it branched from, as of a
// sequence. A branch sees of its parent what the parent showed up to and with the
// message at which it branched, in front of its own rows.
//
// A branching point counts if the message stands in the log before the first own
// message, call or result of the branch. So what a branch inherits never changes once
// it has a row of its own, and the rows of a lineage are in order of their sequences,
// the ancestors' first. It ends where a parent or a message is unknown, or the parent
// is deleted: then the branch has its own rows, and what it inherited is gone.
type Lineage struct {
	own      Conversation
	asOf     uint64
	segments []segment // the conversation itself, its parent, the parent's parent …
	sought   []events.ConversationID
}

// segment is the part of a lineage that one conversation makes up.
type segment struct {
	id     events.ConversationID
	from   uint64 // first sequence, which lies behind the older segment
	upTo   uint64 // last sequence
	first  uint64 // of the conversation's events
	own    Counts // of the conversation, up to upTo
	before Counts // of the older segments together

	repairs uint64 // of the conversation, see Conversation.Repairs
}

// Inherited is what a branch has from its ancestors.
type Inherited struct {
	events.BranchedAt
	Counts // LastSeq is the sequence of the message
}

// LineageOf finds the ancestors of a conversation as of a sequence. It returns
// ErrNotFound as Reader.Conversation does, which is all that it reads of a
// conversation without a parent.
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

// inheritedBy is what a conversation has from its ancestors, nearest first.
func (l *Lineage) inheritedBy(ctx context.Context, r Reader, c Conversation, asOf uint64) ([]segment, error) {
	if c.BranchedFrom == nil || len(l.sought) == MaxAncestors {
		return nil, nil
	}
	parent := events.ConversationID{Tenant: c.ID.Tenant, ID: c.BranchedFrom.ConversationID}
	l.sought = append(l.sought, parent)
	list, err := l.shownUpTo(ctx, r, parent, c.BranchedFrom.MessageID, asOf)
	if errors.Is(err, ErrNotFound) || len(list) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	precedes, err := precedesRows(ctx, r, c, list[0].upTo)
	if !precedes || err != nil {
		return nil, err
	}
	return list, nil
}

// precedesRows tells whether a sequence lies before the rows of a conversation. Of a
// branch that was made as usual it lies before all its events.
func precedesRows(ctx context.Context, r Reader, c Conversation, seq uint64) (bool, error) {
	if seq < c.FirstSeq {
		return true, nil
	}
	rows, err := r.Transcript(ctx, c.ID, TranscriptQuery{Before: seq + 1, Limit: 1})
	return len(rows) == 0, err
}

// shownUpTo is what a conversation shows up to and with a message, its own or one
// that it inherited itself. None if the message is unknown.
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

// cutAt is a conversation up to one of its own messages, as it was then; nil if it
// does not have the message.
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

// Own is the conversation with its own counts alone.
func (l *Lineage) Own() Conversation { return l.own }

// Conversation is the conversation with the counts of its ancestors added to its own.
func (l *Lineage) Conversation() Conversation {
	c := l.own
	c.Counts = c.Counts.plus(l.segments[0].before)
	c.FirstSeq = min(c.FirstSeq, l.segments[len(l.segments)-1].first)
	return c
}

// Inherited is what the conversation has from its ancestors, nil if nothing.
func (l *Lineage) Inherited() *Inherited {
	if len(l.segments) == 1 {
		return nil
	}
	return &Inherited{*l.own.BranchedFrom, l.segments[0].before}
}

// Descent tells lineages of one conversation apart that may have other rows: it names the
// ancestors, where they end, and how many repairs there were beside each.
func (l *Lineage) Descent() string {
	var w strings.Builder
	fmt.Fprint(&w, l.segments[0].repairs)
	for _, s := range l.segments[1:] {
		fmt.Fprintf(&w, " %q %d %d", s.id.ID, s.upTo, s.repairs)
	}
	return w.String()
}

// Ancestors are the conversations that were looked for, nearest first. The read model
// may not know some of them, or not yet.
func (l *Lineage) Ancestors() []events.ConversationID { return l.sought }

// plus adds the counts of rows that come later.
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
