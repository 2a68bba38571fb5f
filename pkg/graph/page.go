package graph

import (
	"cmp"
	"context"

	"mneme.dev/mneme/events"
)

// Limits of the work for one page. A page that reaches one of them ends early; its Next
// continues the list.
const (
	// MaxExamined is how many rows are examined to find the rows of a page.
	MaxExamined = 2000
	// MaxPageBytes is about how much text a page holds.
	MaxPageBytes = 8 << 20
	// chunk is how many rows are read at once. A page reads at most this many texts too
	// many.
	chunk = 100
)

// Page is a part of a list. Next is the Start of the next page; 0 means that there is no
// more. Only Next says so: a page can hold fewer rows than requested, even none, although
// there are more.
type Page[T any] struct {
	Rows []T
	Next uint64
}

// ListQuery selects a page of a conversation's rows, newest first by default.
type ListQuery struct {
	AsOf        uint64 // 0 means Latest
	Start       uint64 // Next of the previous page; 0 starts the list
	Limit       int    // 0 means 50
	OldestFirst bool
}

// span is the part of a conversation that a page is made from: the sequences from from to
// before, which is excluded.
type span struct {
	from, before uint64
	oldestFirst  bool
}

// open finds the conversation of a list and the part left for this page. The list ends at
// the conversation's current sequence, so that all reads of a page see the same state.
func (q *ListQuery) open(ctx context.Context, r Reader, id events.ConversationID) (Conversation, span, error) {
	q.AsOf = cmp.Or(q.AsOf, Latest)
	if q.Limit <= 0 {
		q.Limit = 50
	}
	c, err := r.Conversation(ctx, id, q.AsOf)
	q.AsOf = c.LastSeq
	s := span{before: c.LastSeq + 1, oldestFirst: q.OldestFirst}
	if q.Start != 0 {
		s.advance(q.Start)
	}
	return c, s, err
}

// at returns the Next that continues with this sequence.
func (s *span) at(seq uint64) uint64 {
	if s.oldestFirst {
		return seq
	}
	return seq + 1
}

// past returns the Next that continues after this sequence.
func (s *span) past(seq uint64) uint64 {
	if s.oldestFirst {
		return seq + 1
	}
	return seq
}

// advance cuts off the part of the span before next, in list order.
func (s *span) advance(next uint64) {
	if s.oldestFirst {
		s.from = max(s.from, next)
	} else {
		s.before = min(s.before, next)
	}
}

// within limits the span to a turn; nil means all turns.
func (s *span) within(ctx context.Context, r Reader, id events.ConversationID, turn *int) error {
	if turn == nil {
		return nil
	}
	begins := func(number int) (uint64, error) {
		list, err := r.Messages(ctx, id, MessageQuery{Turn: number, Limit: 1})
		if err != nil || len(list) == 0 {
			return Latest, err
		}
		return list[0].Seq, nil
	}
	if *turn > 0 {
		first, err := begins(*turn)
		if err != nil {
			return err
		}
		s.from = max(s.from, first)
	}
	next, err := begins(*turn + 1)
	s.before = min(s.before, next)
	return err
}

func (s *span) empty() bool { return s.from >= s.before }

// messages reads up to n messages of the span, or fewer if their texts are long. more
// means that there are more.
func (s span) messages(ctx context.Context, r Reader, id events.ConversationID, role string, n int) (list []Message, more bool, err error) {
	for bytes := 0; !s.empty(); {
		size := min(n+1-len(list), chunk)
		found, err := r.Messages(ctx, id, MessageQuery{From: s.from, Before: s.before, Limit: size, Role: role, OldestFirst: s.oldestFirst})
		if err != nil {
			return nil, false, err
		}
		for _, m := range found {
			if len(list) == n || bytes > MaxPageBytes {
				return list, true, nil
			}
			bytes += m.Bytes()
			list = append(list, m)
			s.advance(s.past(m.Seq))
		}
		if len(found) < size {
			break
		}
	}
	return list, false, nil
}
