// Package salvage compares the log with the read model "graph" when the log has lost
// events: it finds what only the read model still holds, and writes that back.
//
// The log is the truth, but a disk can lose a part of it, and then the read models are
// the last copy. The result decides whether a rebuild may discard a generation. Deleted
// conversations are left out because they have nothing to lose.
//
// A row becomes an event with its old identity (source and id), so the read models know
// it: they drop it as a duplicate and count it. Four things cannot come back:
//
//   - a body of which the read model holds only the first 64 KiB,
//   - members of the data that the read model does not keep (the event then has the same
//     identity and other content, which is counted as inexact), and the extensions,
//   - an image or another file in base64, which comes back as its name and is inexact too,
//   - the old sequence: the event is now at the end of the log. If that changes the order
//     of a conversation, summaries of the moved events cannot come back either; otherwise
//     their ranges are adapted. A summary comes back only if a rebuild will accept it after
//     the summaries that the log still holds.
package salvage

import (
	"context"
	"errors"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Source reads the read model "graph".
type Source interface {
	Checkpoints(ctx context.Context) ([]projection.Checkpoint, error)
	Hashes(ctx context.Context, yield func(projection.ConversationHash) error) error
	Holders(ctx context.Context, claims []projection.Claim) (map[int]projection.Claim, error)
	Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error)
	Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error)
	Summaries(ctx context.Context, id events.ConversationID, q graph.SummaryQuery) ([]graph.Summary, error)
	Condensations(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.Condensed, error)
}

// Unrestorable is an event that cannot be written back.
type Unrestorable struct {
	Seq    uint64 // old sequence in the log
	Kind   string // see [events.Kind]
	ID     string // of the event
	Reason string
}

// Loss lists what the log lacks of a conversation that was not deleted.
type Loss struct {
	Conversation events.ConversationID
	Unrestorable []Unrestorable

	events    []restored      // in the order of their old sequences
	summaries []graph.Summary // that a rebuild accepts after these events, see [fitting]
	places    []place         // of the rows of the transcript that the log holds, or holds again afterwards
	held      *known          // what the log holds of the conversation
	inexact   int             // number of events whose content is not exactly what was published
	moved     []uint64        // old sequences of events that earlier repairs wrote back
}

// restored is an event to publish, with its old sequence; 0 for an event that describes the
// conversation and replaces several.
type restored struct {
	seq   uint64
	event events.Event
}

// Restorable returns how many events can be written back.
func (l *Loss) Restorable() int { return len(l.events) + len(l.summaries) }

// Count returns how many events of the conversation only the read model holds.
func (l *Loss) Count() int { return l.Restorable() + len(l.Unrestorable) }

// Find calls yield for each living conversation of which the read model holds events that the log does not, or which an
// earlier repair wrote back. It reads
// the whole log and the whole read model, one family of partitions (see [eventlog.Log.Families]) after the other, and
// keeps the identities of one family's events in memory. Events may be published and applied during the comparison:
// what the read model applies after the start is not compared.
func Find(ctx context.Context, log *eventlog.Log, source Source, yield func(Loss) error) error {
	checkpoints, err := source.Checkpoints(ctx) // before the head: everything applied by now is in the log before it
	if err != nil {
		return err
	}
	state, err := log.State(ctx)
	if err != nil {
		return err
	}
	// Conversations are listed first: a store may hold a snapshot while it lists.
	families := log.Families()
	all := make([][]events.ConversationID, len(families))
	err = source.Hashes(ctx, func(h projection.ConversationHash) error {
		n := log.PartitionOf(h.Conversation.Tenant, h.Conversation.ID) % len(families)
		all[n] = append(all[n], h.Conversation)
		return nil
	})
	if err != nil {
		return err
	}
	appliedOf := func(id events.ConversationID) uint64 { return projection.AppliedOf(log, checkpoints, id) }
	for n, ids := range all {
		if len(ids) == 0 {
			continue
		}
		held := inventory{appliedOf: appliedOf, head: state.Head, identities: map[events.Digest]uint64{}, conversations: map[events.ConversationID]*known{}}
		for _, partition := range families[n] {
			if err := log.Scan(ctx, partition, state.Head, held.add); err != nil {
				return err
			}
		}
		for _, id := range ids {
			loss, err := find(ctx, source, &held, id)
			if err != nil {
				return fmt.Errorf("conversation %q of tenant %q: %w", id.ID, id.Tenant, err)
			}
			if loss.Count() > 0 || len(loss.moved) > 0 {
				if err := yield(loss); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// inventory lists what the log holds of a family of partitions.
type inventory struct {
	appliedOf     func(events.ConversationID) uint64 // what is compared: everything that the read model had applied up to here
	head          uint64                             // of the log; what is written back gets higher sequences
	identities    map[events.Digest]uint64           // sequence of the first event with this identity
	conversations map[events.ConversationID]*known
}

func (i *inventory) add(m eventlog.Message) error {
	r, _, err := m.Decode()
	if err != nil {
		return nil // no read model holds it either
	}
	identity := r.Identity(r.Tenant)
	if _, repeated := i.identities[identity]; repeated {
		return nil
	}
	i.identities[identity] = m.Seq
	c := i.conversations[r.Conversation()]
	if c == nil {
		c = &known{}
		i.conversations[r.Conversation()] = c
	}
	c.replay(r.Payload, m.Seq)
	if r.Source != descriptionSource && m.Seq > i.appliedOf(r.Conversation()) {
		return nil
	}
	switch p := r.Payload.(type) {
	case *events.ConversationStarted:
		c.description.Started(p)
	case *events.ConversationUpdated:
		c.description.Updated(p)
	}
	return nil
}

// seq returns where the log holds the event of a row, 0 if nowhere.
func (i *inventory) seq(id events.ConversationID, o graph.Origin) uint64 {
	e := events.Event{Subject: id.ID, Source: o.Source, ID: o.EventID}
	return i.identities[e.Identity(id.Tenant)]
}

func find(ctx context.Context, source Source, held *inventory, id events.ConversationID) (Loss, error) {
	s := salvager{source: source, inventory: held, applied: held.appliedOf(id), gone: map[string]bool{}, Loss: Loss{Conversation: id}}
	c, err := source.Conversation(ctx, id, s.applied)
	if errors.Is(err, graph.ErrNotFound) { // deleted, or began a moment ago
		return s.Loss, nil
	}
	if err != nil {
		return s.Loss, err
	}
	if s.held = held.conversations[id]; s.held == nil {
		s.held = &known{}
	}
	for _, step := range []func(context.Context) error{s.transcript, s.condensations} {
		if err := step(ctx); err != nil {
			return s.Loss, err
		}
	}
	s.describe(c.Description, s.held.description)
	for _, step := range []func(context.Context) error{s.summarized, s.compare} {
		if err := step(ctx); err != nil {
			return s.Loss, err
		}
	}
	return s.Loss, nil
}
