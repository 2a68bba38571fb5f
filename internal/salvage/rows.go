package salvage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// pageRows is how many rows are read at once.
const pageRows = 500

// salvager turns the rows of one conversation back into events.
type salvager struct {
	Loss
	source    Source
	inventory *inventory
	applied   uint64          // the read model had applied everything up to this sequence, so only that is compared
	calls     []graph.Ref     // with a result
	gone      map[string]bool // calls whose result does not come back
}

// find returns where the log holds the event of a row, 0 if nowhere.
func (s *salvager) find(p graph.Position, o graph.Origin) (now uint64) {
	now = s.inventory.seq(s.Conversation, o)
	if now > p.Seq {
		s.moved = append(s.moved, p.Seq)
	}
	return now
}

// take notes an event that only the read model has, and reports whether it can come back.
func (s *salvager) take(p graph.Position, o graph.Origin, payload events.Payload, whole bool) bool {
	if !whole {
		s.refuse(p, o, payload, "the read model holds only the beginning of its text")
		return false
	}
	e, err := event(s.Conversation, o, payload)
	if err != nil {
		s.refuse(p, o, payload, err.Error())
		return false
	}
	s.events = append(s.events, restored{p.Seq, e})
	return true
}

func (s *salvager) refuse(p graph.Position, o graph.Origin, payload events.Payload, reason string) {
	s.Unrestorable = append(s.Unrestorable, Unrestorable{Seq: p.Seq, Kind: events.Kind(payload.EventType()), ID: o.EventID, Reason: reason})
}

// event returns the event that made a row.
func event(id events.ConversationID, o graph.Origin, payload events.Payload) (events.Event, error) {
	e, err := events.New(id.ID, o.Source, o.EventID, payload)
	if err == nil && o.Time != "" {
		e.Time, err = time.Parse(time.RFC3339Nano, o.Time)
	}
	return e, err
}

func (s *salvager) transcript(ctx context.Context) error {
	for from := uint64(0); ; {
		page, err := s.source.Transcript(ctx, s.Conversation, graph.TranscriptQuery{From: from, Limit: pageRows, OldestFirst: true})
		if err != nil {
			return err
		}
		for _, entry := range page {
			if from = entry.Position().Seq + 1; from <= s.applied+1 {
				s.entry(entry)
			}
		}
		if len(page) == 0 || from > s.applied {
			return nil
		}
	}
}

func (s *salvager) entry(entry graph.Entry) {
	placed := func(p graph.Position, o graph.Origin) (lost bool) {
		now := s.find(p, o)
		s.places = append(s.places, place{p.Seq, now})
		return now == 0
	}
	switch m, c, r := entry.Message, entry.Call, entry.Result; {
	case m != nil:
		if placed(m.Position, m.Origin) {
			p := &events.MessageCreated{
				MessageID: m.MessageID, Role: m.Role, Content: m.Content.Text, Reasoning: m.Reasoning.Text, Speaker: m.Speaker, Session: m.Session,
				Model: m.Model, Usage: []byte(m.Usage), References: m.References, Origin: m.Via,
			}
			s.take(m.Position, m.Origin, p, m.Content.Whole() && m.Reasoning.Whole())
		}
	case c != nil:
		if placed(c.Position, c.Origin) {
			p := &events.ToolCalled{ToolCallID: c.ToolCallID, MessageID: c.MessageID, ToolName: c.ToolName, Arguments: []byte(c.Arguments.Text), Iteration: c.Iteration}
			s.take(c.Position, c.Origin, p, c.Arguments.Whole())
		}
	case r != nil:
		s.calls = append(s.calls, graph.Ref{ID: r.ToolCallID})
		if placed(r.Position, r.Origin) {
			p := &events.ToolReturned{ToolCallID: r.ToolCallID, Success: r.Success, Result: events.TextResult(r.Result.Text), Error: r.Error, DurationMS: r.DurationMS}
			if !s.take(r.Position, r.Origin, p, r.Result.Whole()) {
				s.gone[r.ToolCallID] = true
			}
		}
	}
}

// condensations takes the newest condensed text of each result.
func (s *salvager) condensations(ctx context.Context) error {
	for len(s.calls) > 0 {
		n := min(len(s.calls), pageRows)
		found, err := s.source.Condensations(ctx, s.Conversation, s.calls[:n], s.applied)
		if err != nil {
			return err
		}
		for _, call := range s.calls[:n] {
			if c, ok := found[call]; ok && s.find(c.Position, c.Origin) == 0 {
				p := &events.ToolCondensed{ToolCallID: c.ToolCallID, Content: c.Content.Text, Model: c.Model, PromptHash: c.PromptHash, CharsIn: c.CharsIn, CharsOut: c.CharsOut}
				if s.gone[call.ID] {
					s.refuse(c.Position, c.Origin, p, "its result does not come back")
					continue
				}
				s.take(c.Position, c.Origin, p, c.Content.Whole())
			}
		}
		s.calls = s.calls[n:]
	}
	slices.SortStableFunc(s.events, func(a, b restored) int { return cmp.Compare(a.seq, b.seq) })
	return nil
}

// summarized takes the summaries that a rebuild will accept.
func (s *salvager) summarized(ctx context.Context) error {
	// A row that does not come back moves no other.
	s.places = slices.DeleteFunc(s.places, func(p place) bool {
		_, comes := slices.BinarySearchFunc(s.events, p.was, func(e restored, seq uint64) int { return cmp.Compare(e.seq, seq) })
		return p.now == 0 && !comes
	})
	acks := make([]uint64, len(s.events)) // as if nobody else published meanwhile
	for i := range acks {
		acks[i] = s.inventory.head + 1 + uint64(i)
	}
	fitting := s.fit(acks)
	for from := uint64(0); ; {
		page, err := s.source.Summaries(ctx, s.Conversation, graph.SummaryQuery{From: from, Superseded: true, Limit: pageRows, OldestFirst: true})
		if err != nil {
			return err
		}
		for _, m := range page {
			from = m.Seq + 1
			if m.Seq > s.applied || s.find(m.Position, m.Origin) != 0 {
				continue
			}
			if _, err := fitting.accept(m); err != nil {
				s.refuse(m.Position, m.Origin, written(m), err.Error())
				continue
			}
			s.summaries = append(s.summaries, m)
		}
		if len(page) == 0 {
			return nil
		}
	}
}

// written returns the payload that made a summary.
func written(m graph.Summary) *events.SummaryWritten {
	return &events.SummaryWritten{
		SummaryID: m.SummaryID, Level: m.Level, FirstSeq: m.FirstSeq, LastSeq: m.LastSeq, FirstTurn: m.FirstTurn, LastTurn: m.LastTurn,
		Children: m.Children, Supersedes: m.Supersedes, Conversation: m.Conversation, Actions: m.Actions, Findings: m.Findings,
		Topics: m.Topics, Files: m.Files, Tools: m.Tools, TurnCount: m.TurnCount, Method: m.Method, FallbackReason: m.FallbackReason,
		Model: m.Model, PromptHash: m.PromptHash, CharsIn: m.CharsIn, CharsOut: m.CharsOut,
	}
}

// compare counts the events whose content differs from the digest in the read model. For
// results it first tries the other form, because a text and other JSON may read the same.
func (s *salvager) compare(ctx context.Context) error {
	claims := make([]projection.Claim, len(s.events))
	for i := range s.events {
		claims[i] = projection.Claim{Conversation: s.Conversation, Key: s.events[i].event.Identity(s.Conversation.Tenant)}
	}
	held, err := s.source.Holders(ctx, claims)
	if err != nil {
		return err
	}
	for i := range s.events {
		e := &s.events[i].event
		holder, ok := held[i]
		if !ok || e.Content() == holder.Content {
			continue
		}
		if other, ok := asJSON(*e); ok && other.Content() == holder.Content {
			*e = other
			continue
		}
		s.inexact++
	}
	return nil
}

// asJSON returns a result with its text read as JSON.
func asJSON(e events.Event) (events.Event, bool) {
	r, err := events.Record(e)
	if err != nil {
		return e, false
	}
	p, ok := r.Payload.(*events.ToolReturned)
	if !ok {
		return e, false
	}
	p.Result = events.JSONResult([]byte(p.Text()))
	other, err := events.New(e.Subject, e.Source, e.ID, p)
	other.Time = e.Time
	return other, err == nil
}

// descriptionSource is the source of events that restore a description. The read model does
// not know which events made it.
const descriptionSource = "mneme/repair"

// describe takes the parts of the conversation's description that the log lacks.
func (s *salvager) describe(have, described graph.Description) {
	var list []restored
	add := func(p events.Payload) {
		e, err := events.New(s.Conversation.ID, descriptionSource, "description", p)
		if err != nil {
			return // cannot happen: the log accepted the event that this was made from
		}
		e.ID += "/" + events.DigestOf(string(e.Data)).String() // the same in each repair
		list = append(list, restored{0, e})
	}
	started := &events.ConversationStarted{
		Title: have.Title, Tags: have.Tags, Agent: have.Agent, Model: have.Model, Cwd: have.Cwd, Project: have.Project, Profile: have.Profile,
		MaxContextChars: have.MaxContextChars, BranchedFrom: have.BranchedFrom,
	}
	if have.Agent != described.Agent || have.Model != described.Model || have.Cwd != described.Cwd || have.Project != described.Project ||
		have.Profile != described.Profile || have.MaxContextChars != described.MaxContextChars || (have.BranchedFrom != nil && described.BranchedFrom == nil) {
		add(started)
		described.Started(started)
	}
	updated := &events.ConversationUpdated{}
	if have.Title != described.Title {
		updated.Title = &have.Title
	}
	if !slices.Equal(have.Tags, described.Tags) {
		updated.Tags = new(slices.Clone(have.Tags))
	}
	const active = "active"
	if cmp.Or(have.Status, active) != cmp.Or(described.Status, active) {
		updated.Status = cmp.Or(have.Status, active)
	}
	if updated.Title != nil || updated.Tags != nil || updated.Status != "" {
		add(updated)
	}
	s.inexact += len(list)
	s.events = append(list, s.events...)
}
