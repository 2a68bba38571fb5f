// Package salvage compares the log with the read model "graph" when the log has lost events: it
// finds the events that only the read model still holds, and writes them back.
//
// The log is the truth, but a disk can lose a part of it, and then the read models are the last
// copy. The result decides whether a rebuild may delete a generation. A deleted conversation has
// nothing to lose, so it is left out.
//
// A row becomes an event with its old identity (source and id), so the read models recognize it,
// drop it as a duplicate and count it. Three things cannot come back:
//
//   - a body of which the read model holds only the first 64 KiB,
//   - members of the data that the read model does not keep (the event then has the same
//     identity and other content, which is counted as Inexact), and the extensions,
//   - the old sequence: the event is at the end of the log, after events of its
//     conversation that were not lost. Ranges of summaries move along if the whole
//     conversation was lost.
package salvage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Source is what this package reads of the read model "graph".
type Source interface {
	Hashes(ctx context.Context, yield func(projection.ConversationHash) error) error
	Holders(ctx context.Context, claims []projection.Claim) (map[int]projection.Claim, error)
	Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error)
	Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error)
	Summaries(ctx context.Context, id events.ConversationID, q graph.SummaryQuery) ([]graph.Summary, error)
	Condensations(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.Condensed, error)
}

// Unrestorable is an event that cannot be written back.
type Unrestorable struct {
	Seq    uint64 // its old sequence
	Kind   string // see [events.Kind]
	ID     string // of the event
	Reason string
}

// Loss is what the log lacks of a living conversation.
type Loss struct {
	Conversation events.ConversationID
	Events       []events.Event  // complete events, in the order of their old sequences
	Seqs         []uint64        // of Events, 0 for one without
	Inexact      int             // of Events: those whose content is not exactly what was published
	Summaries    []graph.Summary // of a conversation that is lost as a whole: their ranges move with it
	Unrestorable []Unrestorable
}

// Restorable returns how many events can be written back.
func (l *Loss) Restorable() int { return len(l.Events) + len(l.Summaries) }

// Count returns how many events of the conversation only the read model holds.
func (l *Loss) Count() int { return l.Restorable() + len(l.Unrestorable) }

// Find calls yield, by tenant and id, for each living conversation with events that only the read
// model holds. It reads the whole log and the whole read model once, so it takes as long as a
// verification without its writes.
func Find(ctx context.Context, log *eventlog.Log, source Source, yield func(Loss) error) error {
	state, err := log.State(ctx)
	if err != nil {
		return err
	}
	held := inventory{identities: map[events.Digest]struct{}{}, conversations: map[events.ConversationID]bool{}}
	if err := log.Scan(ctx, state.Head, held.add); err != nil {
		return err
	}
	// Conversations are listed first: a store may hold a snapshot while it lists.
	var all []events.ConversationID
	err = source.Hashes(ctx, func(h projection.ConversationHash) error {
		all = append(all, h.Conversation)
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range all {
		loss, err := find(ctx, source, &held, id)
		if err != nil {
			return fmt.Errorf("conversation %q of tenant %q: %w", id.ID, id.Tenant, err)
		}
		if loss.Count() > 0 {
			if err := yield(loss); err != nil {
				return err
			}
		}
	}
	return nil
}

// inventory is the content of the log.
type inventory struct {
	identities    map[events.Digest]struct{}
	conversations map[events.ConversationID]bool // true if an event describes it
}

func (i *inventory) add(m eventlog.Message) error {
	r, _, err := m.Decode()
	if err != nil {
		return nil // no read model holds it either
	}
	i.identities[r.Identity(r.Tenant)] = struct{}{}
	describes := r.Type == events.TypeConversationStarted || r.Type == events.TypeConversationUpdated
	i.conversations[r.Conversation()] = i.conversations[r.Conversation()] || describes
	return nil
}

func (i *inventory) has(id events.ConversationID, o graph.Origin) bool {
	e := events.Event{Subject: id.ID, Source: o.Source, ID: o.EventID}
	_, ok := i.identities[e.Identity(id.Tenant)]
	return ok
}

// pageRows is how many rows are read at once.
const pageRows = 500

func find(ctx context.Context, source Source, held *inventory, id events.ConversationID) (loss Loss, err error) {
	loss.Conversation = id
	c, err := source.Conversation(ctx, id, graph.Latest)
	if errors.Is(err, graph.ErrNotFound) { // deleted, perhaps just now
		return loss, nil
	}
	if err != nil {
		return loss, err
	}
	if e, ok := description(c); ok && !held.conversations[id] {
		loss.Events, loss.Seqs = append(loss.Events, e), append(loss.Seqs, 0)
		loss.Inexact++
	}
	s := salvager{source: source, held: held, loss: &loss}
	if err := s.transcript(ctx); err != nil {
		return loss, err
	}
	if err := s.summaries(ctx); err != nil {
		return loss, err
	}
	return loss, s.compare(ctx)
}

// descriptionSource is the source of the event that restores a description, because the read model
// does not know which events made it.
const descriptionSource = "mneme/repair"

func description(c graph.Conversation) (events.Event, bool) {
	p := &events.ConversationStarted{
		Title: c.Title, Tags: c.Tags, Agent: c.Agent, Model: c.Model, Cwd: c.Cwd, Project: c.Project, Profile: c.Profile,
		MaxContextChars: c.MaxContextChars, BranchedFrom: c.BranchedFrom,
	}
	if c.Title+c.Agent+c.Model+c.Cwd+c.Project+c.Profile == "" && len(c.Tags) == 0 && c.MaxContextChars == 0 && c.BranchedFrom == nil {
		return events.Event{}, false
	}
	e, err := events.New(c.ID.ID, descriptionSource, "description", p)
	return e, err == nil
}

// salvager makes events of the rows of one conversation.
type salvager struct {
	source Source
	held   *inventory
	loss   *Loss
	lost   []uint64 // missing sequences, in order
	calls  []graph.Ref
}

// take notes an event that only the read model has.
func (s *salvager) take(p graph.Position, o graph.Origin, payload events.Payload, whole bool) {
	s.lost = append(s.lost, p.Seq)
	if !whole {
		s.refuse(p, o, payload, "the read model holds only the beginning of its text")
		return
	}
	e, err := events.New(s.loss.Conversation.ID, o.Source, o.EventID, payload)
	if err != nil {
		s.refuse(p, o, payload, err.Error())
		return
	}
	if o.Time != "" {
		if e.Time, err = time.Parse(time.RFC3339Nano, o.Time); err != nil {
			s.refuse(p, o, payload, "its time cannot be read: "+err.Error())
			return
		}
	}
	s.loss.Events, s.loss.Seqs = append(s.loss.Events, e), append(s.loss.Seqs, p.Seq)
}

func (s *salvager) refuse(p graph.Position, o graph.Origin, payload events.Payload, reason string) {
	s.loss.Unrestorable = append(s.loss.Unrestorable, Unrestorable{Seq: p.Seq, Kind: events.Kind(payload.EventType()), ID: o.EventID, Reason: reason})
}

func (s *salvager) transcript(ctx context.Context) error {
	for from := uint64(0); ; {
		page, err := s.source.Transcript(ctx, s.loss.Conversation, graph.TranscriptQuery{From: from, Limit: pageRows, OldestFirst: true})
		if err != nil {
			return err
		}
		for _, entry := range page {
			s.entry(entry)
			from = entry.Position().Seq + 1
		}
		if len(page) == 0 {
			return nil
		}
	}
}

func (s *salvager) entry(entry graph.Entry) {
	id := s.loss.Conversation
	switch m, c, r := entry.Message, entry.Call, entry.Result; {
	case m != nil && !s.held.has(id, m.Origin):
		p := &events.MessageCreated{
			MessageID: m.MessageID, Role: m.Role, Content: m.Content.Text, Reasoning: m.Reasoning.Text, Speaker: m.Speaker, Session: m.Session,
			Model: m.Model, Usage: []byte(m.Usage), References: m.References, Origin: m.Via,
		}
		s.take(m.Position, m.Origin, p, m.Content.Whole() && m.Reasoning.Whole())
	case c != nil && !s.held.has(id, c.Origin):
		p := &events.ToolCalled{ToolCallID: c.ToolCallID, MessageID: c.MessageID, ToolName: c.ToolName, Arguments: []byte(c.Arguments.Text), Iteration: c.Iteration}
		s.take(c.Position, c.Origin, p, c.Arguments.Whole())
	case r != nil:
		s.calls = append(s.calls, graph.Ref{ID: r.ToolCallID})
		if !s.held.has(id, r.Origin) {
			p := &events.ToolReturned{ToolCallID: r.ToolCallID, Success: r.Success, Result: events.TextResult(r.Result.Text), Error: r.Error, DurationMS: r.DurationMS}
			s.take(r.Position, r.Origin, p, r.Result.Whole())
		}
	}
}

// summaries takes summaries and condensed results. The range of a summary consists of sequences,
// and a restored event gets a new one. If the whole conversation is lost, its order stays, so the
// range can move; otherwise it cannot.
func (s *salvager) summaries(ctx context.Context) error {
	id := s.loss.Conversation
	for from := uint64(0); ; {
		page, err := s.source.Summaries(ctx, id, graph.SummaryQuery{From: from, Superseded: true, Limit: pageRows, OldestFirst: true})
		if err != nil {
			return err
		}
		for _, m := range page {
			from = m.Seq + 1
			if s.held.has(id, m.Origin) {
				continue
			}
			if _, some := s.held.conversations[id]; !some {
				s.loss.Summaries = append(s.loss.Summaries, m)
				continue
			}
			p := written(m)
			if s.lostWithin(m.FirstSeq, m.LastSeq) {
				s.refuse(m.Position, m.Origin, p, "a part of what it summarizes is lost too and gets new sequences; the summarizer writes a new one")
				continue
			}
			s.take(m.Position, m.Origin, p, true)
		}
		if len(page) == 0 {
			break
		}
	}
	for len(s.calls) > 0 {
		n := min(len(s.calls), pageRows)
		found, err := s.source.Condensations(ctx, id, s.calls[:n], graph.Latest)
		if err != nil {
			return err
		}
		for _, call := range s.calls[:n] {
			if c, ok := found[call]; ok && !s.held.has(id, c.Origin) {
				p := &events.ToolCondensed{ToolCallID: c.ToolCallID, Content: c.Content.Text, Model: c.Model, PromptHash: c.PromptHash, CharsIn: c.CharsIn, CharsOut: c.CharsOut}
				s.take(c.Position, c.Origin, p, c.Content.Whole())
			}
		}
		s.calls = s.calls[n:]
	}
	return nil
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

func (s *salvager) lostWithin(first, last uint64) bool {
	i, _ := slices.BinarySearch(s.lost, first)
	return i < len(s.lost) && s.lost[i] <= last
}

// compare counts the events whose content differs from what the read model recorded. For results it
// first tries another form, because a text and other JSON may read the same.
func (s *salvager) compare(ctx context.Context) error {
	id := s.loss.Conversation
	claims := make([]projection.Claim, len(s.loss.Events))
	for i := range s.loss.Events {
		claims[i] = projection.Claim{Conversation: id, Key: s.loss.Events[i].Identity(id.Tenant)}
	}
	held, err := s.source.Holders(ctx, claims)
	if err != nil {
		return err
	}
	for i := range s.loss.Events {
		e := &s.loss.Events[i]
		holder, ok := held[i]
		if !ok || e.Content() == holder.Content {
			continue
		}
		if other, ok := asJSON(*e); ok && other.Content() == holder.Content {
			*e = other
			continue
		}
		s.loss.Inexact++
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
