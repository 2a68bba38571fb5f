package summary

import (
	"fmt"

	"mneme.dev/mneme/events"
)

// Source is the CloudEvents source of the events that the summarizer publishes.
const Source = "mneme/summarizer"

// Written is a summary and how it was written.
type Written struct {
	Draft
	Files    []string
	Tools    []string
	Children []string // Consolidated summary_ids; none for level 1.

	Method         string // llm, extractive
	FallbackReason string
	Model          string
	PromptHash     string
}

// ID returns the summary_id of a revision of a range, counted from 1. It depends on nothing
// else, so writing the same summary again gives an event with the same id.
func ID(level int, first, last uint64, revision int) string {
	id := fmt.Sprintf("L%d-%d-%d", level, first, last)
	if revision > 1 {
		id += fmt.Sprintf("-r%d", revision)
	}
	return id
}

// EventID returns the id of the event that records a summary.
func EventID(summaryID string) string { return "summary/" + summaryID }

// Event returns the event that records the summary of a plan.
func (w *Written) Event(conversation string, p Plan) (events.Event, error) {
	return w.event(conversation, p, 1, "")
}

// Revision returns the event that records a new revision of a plan's summary, replacing the
// superseded one.
func (w *Written) Revision(conversation string, p Plan, revision int, supersedes string) (events.Event, error) {
	return w.event(conversation, p, revision, supersedes)
}

func (w *Written) event(conversation string, p Plan, revision int, supersedes string) (events.Event, error) {
	payload := &events.SummaryWritten{
		SummaryID: ID(p.Level, p.First, p.Last, revision), Level: p.Level, FirstSeq: p.First, LastSeq: p.Last, FirstTurn: p.FirstTurn, LastTurn: p.LastTurn,
		Children: list(w.Children), Supersedes: supersedes,
		Conversation: w.Conversation, Actions: w.Actions, Findings: list(w.Findings), Topics: list(w.Topics), Files: list(w.Files), Tools: list(w.Tools),
		TurnCount: p.LastTurn - max(1, p.FirstTurn) + 1,
		Method:    w.Method, FallbackReason: w.FallbackReason, Model: w.Model, PromptHash: w.PromptHash, CharsIn: p.Chars,
	}
	payload.TurnCount = max(0, payload.TurnCount)
	payload.CharsOut = Chars(payload)
	return events.New(conversation, Source, EventID(payload.SummaryID), payload)
}

// list returns an empty list for nil, because the JSON must not hold null.
func list(values []string) []string {
	if values == nil {
		return []string{}
	}
	return values
}
