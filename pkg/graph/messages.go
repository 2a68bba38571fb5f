package graph

import (
	"context"
	"slices"

	"mneme.dev/mneme/events"
)

// MessageListQuery selects messages for a list.
type MessageListQuery struct {
	ListQuery
	Role  string // only this role
	Calls bool   // with the calls of each assistant message
}

// MessageWithCalls is a message. An assistant message has the calls of its step if they
// were requested.
type MessageWithCalls struct {
	Message
	Calls []ToolUse
	// MoreCalls says that the step has more calls than one page holds: [Steps] and
	// [ToolCalls] list them all.
	MoreCalls bool
}

// Messages lists messages.
func Messages(ctx context.Context, r Reader, id events.ConversationID, q MessageListQuery) (page Page[MessageWithCalls], err error) {
	_, s, err := q.open(ctx, r, id)
	if err != nil {
		return page, err
	}
	list, more, err := s.messages(ctx, r, id, q.Role, q.Limit)
	if err != nil {
		return page, err
	}
	for _, m := range list {
		page.Rows = append(page.Rows, MessageWithCalls{Message: m})
	}
	if q.Calls {
		kept, err := addCalls(ctx, r, id, page.Rows, q)
		if err != nil {
			return page, err
		}
		more = more || kept < len(page.Rows)
		page.Rows = page.Rows[:kept]
	}
	if more {
		page.Next = s.past(page.Rows[len(page.Rows)-1].Seq)
	}
	return page, nil
}

// addCalls adds the calls of their steps to assistant messages. kept is how many of the
// first messages have all their calls; the others belong to the next page. It is at least
// 1, even if the first message has more calls than fit on a page.
func addCalls(ctx context.Context, r Reader, id events.ConversationID, list []MessageWithCalls, q MessageListQuery) (kept int, err error) {
	at := map[place]int{}
	var first, last *Message // assistant messages, in log order
	for i := range list {
		m := &list[i].Message
		if m.Role != "assistant" {
			continue
		}
		at[placeOf(m.Position)] = i
		if first == nil || m.Seq < first.Seq {
			first = m
		}
		if last == nil || m.Seq > last.Seq {
			last = m
		}
	}
	if first == nil {
		return len(list), nil
	}
	s := span{from: first.Seq, before: q.AsOf + 1, oldestFirst: q.OldestFirst}
	for _, role := range []string{"assistant", "user"} { // a message of either role ends the last step
		next, err := r.Messages(ctx, id, MessageQuery{From: last.Seq + 1, Before: s.before, Limit: 1, Role: role, OldestFirst: true})
		if err != nil {
			return 0, err
		}
		if len(next) > 0 {
			s.before = next[0].Seq
		}
	}
	w := walk{span: s, asOf: q.AsOf, size: chunk, wanted: func(c *ToolCall) bool {
		_, ok := at[placeOf(c.Position)]
		return ok
	}}
	var reached place // the step of the last visited call
	next, err := w.calls(ctx, r, id, func(u ToolUse) bool {
		reached = placeOf(u.Call.Position)
		m := &list[at[reached]]
		m.Calls = append(m.Calls, u)
		return true
	})
	if err != nil {
		return 0, err
	}
	for i := range list {
		m := &list[i]
		if !q.OldestFirst {
			slices.Reverse(m.Calls)
		}
		if m.Role != "assistant" || next == 0 {
			continue
		}
		complete := next <= m.Seq+1 // all calls after the message were visited
		if q.OldestFirst {
			complete = placeOf(m.Position).before(reached)
		}
		switch {
		case complete:
		case i > 0:
			return i, nil
		default:
			m.MoreCalls = true
			return 1, nil
		}
	}
	return len(list), nil
}
