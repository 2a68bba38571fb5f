package graph

import (
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall/static"
	"mneme.dev/mneme/pkg/summary"
)

// Projection declares the read model "graph": conversations, messages, tool calls
// and results, summaries and condensations. Values that depend on the conversation so far
// (turn, step and counts) are set when a row is appended and never change.
//
// A turn is a user message with everything up to the next user message, all
// including assistant messages and tool calls in between. A step is an assistant
// message with everything up to the next one.
func Projection() projection.Projection[*Unit] {
	return projection.Projection[*Unit]{
		Name:     "graph",
		Version:  7,
		Settings: static.Model, // rows hold its embeddings
		Derive:   derive,
		Reducers: map[string]projection.Reducer[*Unit]{
			events.TypeConversationStarted: reduceStarted,
			events.TypeConversationUpdated: reduceUpdated,
			events.TypeConversationDeleted: reduceDeleted,
			events.TypeMessageCreated:      reduceMessage,
			events.TypeToolCalled:          reduceCall,
			events.TypeToolReturned:        reduceResult,
			events.TypeSummaryWritten:      reduceSummary,
			events.TypeToolCondensed:       reduceCondensed,
		},
	}
}

func reduceStarted(u *Unit, e *events.Recorded) error {
	s := u.touch(e)
	s.Description.Started(e.Payload.(*events.ConversationStarted))
	u.describe(s, e)
	return nil
}

// Started changes the description as the event does: what the event leaves out stays.
func (d *Description) Started(p *events.ConversationStarted) {
	set(&d.Title, kept(p.Title))
	set(&d.Agent, name(p.Agent))
	set(&d.Model, name(p.Model))
	set(&d.Cwd, name(p.Cwd))
	set(&d.Project, name(p.Project))
	set(&d.Profile, name(p.Profile))
	set(&d.MaxContextChars, p.MaxContextChars)
	if len(p.Tags) > 0 {
		d.Tags = beginningOfTexts(p.Tags)
	}
	if p.BranchedFrom != nil {
		d.BranchedFrom = p.BranchedFrom
	}
}

func reduceUpdated(u *Unit, e *events.Recorded) error {
	s := u.touch(e)
	s.Description.Updated(e.Payload.(*events.ConversationUpdated))
	u.describe(s, e)
	return nil
}

// Updated changes the description as the event does: what the event leaves out stays.
func (d *Description) Updated(p *events.ConversationUpdated) {
	if p.Title != nil {
		d.Title = kept(*p.Title)
	}
	if p.Tags != nil {
		d.Tags = beginningOfTexts(*p.Tags)
	}
	set(&d.Status, p.Status)
}

func reduceDeleted(u *Unit, e *events.Recorded) error {
	s := u.touch(e)
	u.drop(s)
	s.Conversation = Conversation{ID: s.ID, FirstSeq: s.FirstSeq, Counts: Counts{LastSeq: e.Seq}, DeletedSeq: e.Seq}
	s.Ledger = summary.Ledger{}
	return nil
}

func reduceMessage(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.MessageCreated)
	s := u.touch(e)
	content := NewBody(p.Content)
	usage := string(p.Usage)
	if len(usage) > MaxBodyBytes { // a part of it would not be valid JSON
		usage = ""
	}
	s.MessageCount++
	s.TotalChars += content.Chars
	switch p.Role {
	case "user":
		s.TurnCount++
	case "assistant":
		s.StepCount++
	}
	u.Messages = append(u.Messages, projection.RowOf(s, Message{
		Position: Position{Seq: e.Seq, N: s.MessageCount, Turn: s.TurnCount, Step: s.StepCount},
		Origin:   originOf(e), MessageID: p.MessageID, Role: p.Role,
		Content: content, Reasoning: NewBody(p.Reasoning),
		Speaker: name(p.Speaker), Session: name(p.Session), Model: name(p.Model), Usage: usage, Via: name(p.Origin),
		References: beginning(p.References, func(r events.Reference) int { return len(r.File) + len(r.Name) }), CumChars: s.TotalChars,
	}))
	u.said = append(u.said, projection.RowOf(s, said{e.Seq, s.MessageCount, messageOf(e, p)}))
	return nil
}

func reduceCall(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolCalled)
	s := u.touch(e)
	s.ToolCallCount++
	u.Calls = append(u.Calls, projection.RowOf(s, ToolCall{
		Position: Position{Seq: e.Seq, N: s.ToolCallCount, Turn: s.TurnCount, Step: s.StepCount},
		Origin:   originOf(e), ToolCallID: p.ToolCallID, MessageID: p.MessageID, ToolName: p.ToolName,
		Arguments: NewBody(p.Text()), Iteration: p.Iteration,
	}))
	return nil
}

func reduceResult(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolReturned)
	s := u.touch(e)
	s.ToolResultCount++
	u.Results = append(u.Results, projection.RowOf(s, ToolResult{
		Position: Position{Seq: e.Seq, N: s.ToolResultCount, Turn: s.TurnCount, Step: s.StepCount},
		Origin:   originOf(e), ToolCallID: p.ToolCallID, Success: p.Success,
		Result: NewBody(p.Text()), Error: kept(p.Error), DurationMS: p.DurationMS,
	}))
	return nil
}

// set overwrites a value if the event has one.
func set[T comparable](dst *T, value T) {
	var none T
	if value != none {
		*dst = value
	}
}
