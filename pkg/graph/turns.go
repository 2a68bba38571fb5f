package graph

import (
	"context"
	"slices"

	"mneme.dev/mneme/events"
)

// Turn is a user message with everything up to the next one. Turn 0 is everything before
// the first user message and has no user message.
type Turn struct {
	Number   int
	User     *Message
	FirstSeq uint64
	Counts   Counts // of this turn alone; LastSeq is its newest event
}

// Turns lists the turns of a conversation. A turn's counts are the difference of the
// counts at its ends, so a turn with thousands of rows is listed as fast as any other.
// Turn 0 is listed if it has a message, a call or a result.
func Turns(ctx context.Context, r Reader, id events.ConversationID, q ListQuery) (page Page[Turn], err error) {
	c, s, err := q.open(ctx, r, id)
	if err != nil {
		return page, err
	}
	users, more, err := s.messages(ctx, r, id, "user", q.Limit+1)
	if err != nil {
		return page, err
	}
	list := make([]Turn, 0, len(users)+1)
	for i := range users {
		list = append(list, Turn{Number: users[i].Turn, User: &users[i], FirstSeq: users[i].Seq})
	}
	keep := q.Limit
	if more { // the last one only marks the end of the previous one
		keep = min(keep, len(list)-1)
	}
	// Turn 0 is at the start or the end of the list, and this page reaches it.
	if zero := (Turn{FirstSeq: c.FirstSeq}); q.OldestFirst && q.Start == 0 {
		if len(list) == 0 || zero.FirstSeq < list[0].FirstSeq {
			list = slices.Insert(list, 0, zero)
		}
	} else if !q.OldestFirst && !more && zero.FirstSeq < s.before {
		if len(list) == 0 || zero.FirstSeq < list[len(list)-1].FirstSeq {
			list = append(list, zero)
		}
	}
	if err := countTurns(ctx, r, id, s, list); err != nil {
		return page, err
	}
	list = slices.DeleteFunc(list, func(t Turn) bool { return t.User == nil && t.Counts.empty() })
	if len(list) > keep {
		list = list[:keep]
		page.Next = s.past(list[keep-1].FirstSeq)
	}
	page.Rows = list
	return page, nil
}

// countTurns fills in the counts of adjacent turns that end where the span ends.
func countTurns(ctx context.Context, r Reader, id events.ConversationID, s span, list []Turn) error {
	if len(list) == 0 {
		return nil
	}
	ends := []uint64{s.before - 1}
	for _, t := range list {
		ends = append(ends, t.FirstSeq-1)
	}
	slices.Sort(ends)
	counts, err := r.Counts(ctx, id, ends)
	if err != nil {
		return err
	}
	for i := range list {
		at, _ := slices.BinarySearch(ends, list[i].FirstSeq-1)
		list[i].Counts = counts[at+1].since(counts[at])
	}
	return nil
}

// since returns the difference to earlier counts.
func (c Counts) since(earlier Counts) Counts {
	c.MessageCount -= earlier.MessageCount
	c.TurnCount -= earlier.TurnCount
	c.StepCount -= earlier.StepCount
	c.ToolCallCount -= earlier.ToolCallCount
	c.ToolResultCount -= earlier.ToolResultCount
	c.TotalChars -= earlier.TotalChars
	return c
}

// empty reports whether there is no message, call or result.
func (c Counts) empty() bool { return c.MessageCount+c.ToolCallCount+c.ToolResultCount == 0 }
