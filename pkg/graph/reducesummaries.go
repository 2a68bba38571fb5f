package graph

import (
	"fmt"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// SummaryRef names a summary.
type SummaryRef struct {
	Conversation events.ConversationID
	SummaryID    string
}

// Lookups holds the ids by which the events of a batch look up rows of their conversation.
type Lookups struct {
	Summaries []string // summary_ids, for Unit.Known
	Results   []string // tool_call_ids of results, for Unit.Returned
}

// LookupsOf lists the ids that a backend must look up for a batch, by conversation.
func LookupsOf(list []*events.Recorded) map[events.ConversationID]*Lookups {
	all := map[events.ConversationID]*Lookups{}
	of := func(e *events.Recorded) *Lookups {
		id := e.Conversation()
		if all[id] == nil {
			all[id] = &Lookups{}
		}
		return all[id]
	}
	for _, e := range list {
		switch p := e.Payload.(type) {
		case *events.SummaryWritten:
			l := of(e)
			l.Summaries = append(l.Summaries, p.Children...)
			if p.Supersedes != "" {
				l.Summaries = append(l.Summaries, p.Supersedes)
			}
		case *events.ToolCondensed:
			l := of(e)
			l.Results = append(l.Results, p.ToolCallID)
		}
	}
	return all
}

func reduceSummary(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.SummaryWritten)
	id := e.Conversation()
	s := u.States[id]
	if s == nil || s.FirstSeq == 0 {
		return fmt.Errorf("%w: the summary is of a conversation without events", projection.ErrInvalid)
	}
	known := func(summaryID string) (summary.Range, bool) {
		r, ok := u.Known[SummaryRef{id, summaryID}]
		return r, ok
	}
	if err := s.Ledger.Take(p, s.FirstSeq, s.LastSeq, known); err != nil {
		return fmt.Errorf("%w: the summary %w", projection.ErrInvalid, err)
	}
	u.touch(e)
	s.SummaryCount++
	u.Known[SummaryRef{id, p.SummaryID}] = summary.Range{
		ID: p.SummaryID, Level: p.Level, First: p.FirstSeq, Last: p.LastSeq, FirstTurn: p.FirstTurn, LastTurn: p.LastTurn, Chars: p.CharsOut,
	}
	u.Summaries = append(u.Summaries, projection.RowOf(s, Summary{
		Position: Position{Seq: e.Seq, N: s.SummaryCount, Turn: s.TurnCount, Step: s.StepCount},
		Origin:   originOf(e), SummaryID: p.SummaryID, Level: p.Level,
		FirstSeq: p.FirstSeq, LastSeq: p.LastSeq, FirstTurn: p.FirstTurn, LastTurn: p.LastTurn,
		Children: listOfTexts(p.Children), Supersedes: p.Supersedes,
		Conversation: kept(p.Conversation), Actions: kept(p.Actions),
		Findings: listOfTexts(p.Findings), Topics: listOfTexts(p.Topics), Files: listOfTexts(p.Files), Tools: listOfTexts(p.Tools),
		TurnCount: p.TurnCount, Method: p.Method, FallbackReason: name(p.FallbackReason), Model: name(p.Model), PromptHash: name(p.PromptHash),
		CharsIn: p.CharsIn, CharsOut: p.CharsOut,
	}))
	return nil
}

// listOfTexts returns the kept form of a list; nil means empty.
func listOfTexts(list []string) []string {
	if kept := beginningOfTexts(list); len(kept) > 0 {
		return kept
	}
	return nil
}

func reduceCondensed(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolCondensed)
	id := e.Conversation()
	if !u.returned(id, p.ToolCallID) {
		return fmt.Errorf("%w: no result of call %q", projection.ErrInvalid, p.ToolCallID)
	}
	s := u.touch(e)
	s.CondensedCount++
	u.Condensed = append(u.Condensed, projection.RowOf(s, Condensed{
		Position: Position{Seq: e.Seq, N: s.CondensedCount, Turn: s.TurnCount, Step: s.StepCount},
		Origin:   originOf(e), ToolCallID: p.ToolCallID, Content: NewBody(p.Content),
		Model: name(p.Model), PromptHash: name(p.PromptHash), CharsIn: p.CharsIn, CharsOut: p.CharsOut,
	}))
	return nil
}

// returned reports whether a conversation has the result of a call.
func (u *Unit) returned(id events.ConversationID, callID string) bool {
	return u.Returned[CallRef{id, callID}] || slices.ContainsFunc(u.Results, func(r projection.Of[State, ToolResult]) bool {
		return r.Row.ToolCallID == callID && r.State == u.States[id]
	})
}
