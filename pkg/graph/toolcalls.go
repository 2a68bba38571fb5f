package graph

import (
	"context"

	"mneme.dev/mneme/events"
)

// ToolUse is a call with its result, nil if there is none.
type ToolUse struct {
	Call   ToolCall
	Result *ToolResult
}

// Outcome says how a call ended, as far as known.
type Outcome string

// The outcomes of a call.
const (
	Succeeded Outcome = "true"
	Failed    Outcome = "false"
	Unknown   Outcome = "unknown" // the result does not say
	Pending   Outcome = "pending" // there is no result
)

// Outcome returns how the call ended.
func (u *ToolUse) Outcome() Outcome {
	switch {
	case u.Result == nil:
		return Pending
	case u.Result.Success == nil:
		return Unknown
	case *u.Result.Success:
		return Succeeded
	default:
		return Failed
	}
}

func (u *ToolUse) bytes() int {
	n := len(u.Call.Arguments.Text)
	if u.Result != nil {
		n += len(u.Result.Result.Text) + len(u.Result.Error)
	}
	return n
}

// CallQuery selects tool calls.
type CallQuery struct {
	ListQuery
	Tool    string  // only of this tool
	Outcome Outcome // only with this outcome
	Turn    *int    // only of this turn
}

// ToolCalls lists calls with their results.
func ToolCalls(ctx context.Context, r Reader, id events.ConversationID, q CallQuery) (page Page[ToolUse], err error) {
	_, s, err := q.open(ctx, r, id)
	if err != nil {
		return page, err
	}
	if err := s.within(ctx, r, id, q.Turn); err != nil {
		return page, err
	}
	size := q.Limit + 1
	if q.Tool != "" || q.Outcome != "" {
		size = chunk
	}
	w := walk{span: s, asOf: q.AsOf, size: size, wanted: func(c *ToolCall) bool { return q.Tool == "" || c.ToolName == q.Tool }}
	page.Next, err = w.calls(ctx, r, id, func(u ToolUse) bool {
		if q.Outcome != "" && u.Outcome() != q.Outcome {
			return true
		}
		if len(page.Rows) == q.Limit {
			return false
		}
		page.Rows = append(page.Rows, u)
		return true
	})
	return page, err
}

// walk visits the calls of a span, within the limits of a page.
type walk struct {
	span
	asOf   uint64 // for reading results
	size   int    // how many calls are probably needed
	wanted func(*ToolCall) bool
}

// calls passes each wanted call with its result to visit, until visit returns false. next
// is where to continue: at the refused call, or after the last one if the limits of a page
// were reached; 0 at the end of the span.
func (w walk) calls(ctx context.Context, r Reader, id events.ConversationID, visit func(ToolUse) bool) (next uint64, err error) {
	examined, bytes := 0, 0
	for !w.empty() {
		size := min(w.size, chunk, MaxExamined-examined)
		entries, err := r.Transcript(ctx, id, TranscriptQuery{From: w.from, Before: w.before, Limit: size, OldestFirst: w.oldestFirst, CallsOnly: true})
		if err != nil {
			return 0, err
		}
		var wanted []Ref
		for _, e := range entries {
			if w.wanted(e.Call) {
				wanted = append(wanted, e.Call.Ref())
			}
		}
		results, err := r.Results(ctx, id, wanted, w.asOf)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			u := ToolUse{Call: *e.Call}
			if result, ok := results[e.Call.Ref()]; ok {
				u.Result = &result
			}
			if w.wanted(e.Call) && !visit(u) {
				return w.at(e.Call.Seq), nil
			}
			bytes += u.bytes()
			w.advance(w.past(e.Call.Seq))
		}
		if len(entries) < size {
			return 0, nil
		}
		if examined += len(entries); examined == MaxExamined || bytes > MaxPageBytes {
			return w.past(entries[len(entries)-1].Call.Seq), nil
		}
	}
	return 0, nil
}
