package graph

import (
	"context"
	"slices"

	"mneme.dev/mneme/events"
)

// Step is an assistant message with the calls that follow it in the log, up to the
// next message of an assistant or a user, and the results of those calls.
//
// Calls of a turn before its first assistant message form a step without a message, which
// has the number of the previous step.
type Step struct {
	Turn    int
	Number  int
	Message *Message
	Calls   []ToolUse
	Results []ToolResult // results without a call
	// Continued means that the page ended within the step: if the next page begins with
	// the same turn and number, it continues this step.
	Continued bool
}

// StepQuery selects steps.
type StepQuery struct {
	ListQuery
	Turn *int // only of this turn
}

// place identifies a step.
type place struct{ turn, step int }

func placeOf(p Position) place { return place{p.Turn, p.Step} }

func (p place) before(other place) bool {
	return p.turn < other.turn || p.turn == other.turn && p.step < other.step
}

// Steps lists steps. Together they contain every call of the conversation exactly once.
func Steps(ctx context.Context, r Reader, id events.ConversationID, q StepQuery) (page Page[Step], err error) {
	_, s, err := q.open(ctx, r, id)
	if err != nil {
		return page, err
	}
	if err := s.within(ctx, r, id, q.Turn); err != nil {
		return page, err
	}
	entries, next, cut, err := readSteps(ctx, r, id, s, q.Limit)
	if err != nil {
		return page, err
	}
	results, kept, err := resultsOf(ctx, r, id, entries, q.AsOf)
	if err != nil {
		return page, err
	}
	if kept < len(entries) {
		entries = entries[:kept]
		next, cut = s.past(entries[kept-1].Position().Seq), true
	}
	page.Next = next
	if page.Rows, err = join(ctx, r, id, entries, results, q); err != nil || !cut {
		return page, err
	}
	// Find out whether the next entry belongs to the cut step.
	s.advance(next)
	rest, err := r.Transcript(ctx, id, TranscriptQuery{From: s.from, Before: s.before, Limit: 1, OldestFirst: s.oldestFirst})
	if n := len(page.Rows); err == nil && len(rest) > 0 && n > 0 {
		p := rest[0].Position()
		page.Rows[n-1].Continued = p.Turn == page.Rows[n-1].Turn && p.Step == page.Rows[n-1].Number
	}
	return page, err
}

// readSteps reads the entries of up to limit steps, in list order. cut means that the
// limits of a page ended it, maybe within a step.
func readSteps(ctx context.Context, r Reader, id events.ConversationID, s span, limit int) (list []Entry, next uint64, cut bool, err error) {
	steps, examined, bytes := 0, 0, 0
	var last place
	for !s.empty() {
		size := min(4*(limit+1), chunk, MaxExamined-examined)
		entries, err := r.Transcript(ctx, id, TranscriptQuery{From: s.from, Before: s.before, Limit: size, OldestFirst: s.oldestFirst})
		if err != nil {
			return nil, 0, false, err
		}
		for _, e := range entries {
			p := e.Position()
			s.advance(s.past(p.Seq))
			if e.Message != nil && e.Message.Role != "assistant" {
				continue // not part of a step
			}
			if steps == 0 || placeOf(p) != last {
				if steps == limit {
					return list, s.at(p.Seq), false, nil
				}
				steps, last = steps+1, placeOf(p)
			}
			list = append(list, e)
			bytes += e.Bytes()
		}
		if len(entries) < size {
			return list, 0, false, nil
		}
		if examined += size; examined == MaxExamined || bytes > MaxPageBytes {
			return list, s.past(entries[size-1].Position().Seq), true, nil
		}
	}
	return list, 0, false, nil
}

// resultsOf finds the results of calls, wherever they are. kept is how many of the entries
// fit on a page together with the texts of results from elsewhere.
func resultsOf(ctx context.Context, r Reader, id events.ConversationID, entries []Entry, asOf uint64) (results map[Ref]ToolResult, kept int, err error) {
	results = map[Ref]ToolResult{}
	for _, e := range entries {
		if e.Result != nil {
			results[e.Result.Ref()] = *e.Result
		}
	}
	var elsewhere []Ref
	bytes := 0
	for i, e := range entries {
		if e.Call != nil && results[e.Call.Ref()].Seq == 0 {
			elsewhere = append(elsewhere, e.Call.Ref())
		}
		if len(elsewhere) < chunk && i < len(entries)-1 {
			continue
		}
		found, err := r.Results(ctx, id, elsewhere, asOf)
		if err != nil {
			return nil, 0, err
		}
		for ref, result := range found {
			results[ref] = result
			bytes += Entry{Result: &result}.Bytes()
		}
		if elsewhere = nil; bytes > MaxPageBytes {
			return results, i + 1, nil
		}
	}
	return results, len(entries), nil
}

// join makes steps from their entries and the results of their calls.
func join(ctx context.Context, r Reader, id events.ConversationID, entries []Entry, results map[Ref]ToolResult, q StepQuery) (steps []Step, err error) {
	calls := map[Ref]bool{}
	for _, e := range entries {
		if e.Call != nil {
			calls[e.Call.Ref()] = true
		}
	}
	var noCall []Ref
	for _, e := range entries {
		if e.Result != nil && !calls[e.Result.Ref()] {
			noCall = append(noCall, e.Result.Ref())
		}
	}
	called, err := r.Calls(ctx, id, noCall, q.AsOf)
	if err != nil {
		return nil, err
	}
	if !q.OldestFirst {
		slices.Reverse(entries)
	}
	for _, e := range entries {
		p := e.Position()
		if n := len(steps); n == 0 || placeOf(p) != (place{steps[n-1].Turn, steps[n-1].Number}) {
			steps = append(steps, Step{Turn: p.Turn, Number: p.Step})
		}
		s := &steps[len(steps)-1]
		switch {
		case e.Message != nil:
			s.Message = e.Message
		case e.Call != nil:
			u := ToolUse{Call: *e.Call}
			if result, ok := results[u.Call.Ref()]; ok {
				u.Result = &result
			}
			s.Calls = append(s.Calls, u)
		case !calls[e.Result.Ref()] && called[e.Result.Ref()].Seq == 0:
			s.Results = append(s.Results, *e.Result)
		}
	}
	if !q.OldestFirst {
		slices.Reverse(steps)
	}
	// A step may be empty if it only had results of calls in other steps.
	return slices.DeleteFunc(steps, func(s Step) bool { return s.Message == nil && len(s.Calls)+len(s.Results) == 0 }), nil
}
