package summarizer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// conversation writes everything that is due in one conversation. If time alone can make more due, it returns when.
func (r *Reactor) conversation(ctx context.Context, id events.ConversationID) (later time.Time, err error) {
	for ctx.Err() == nil {
		c, profile, err := r.look(ctx, id)
		if err == nil && c.DeletedSeq != 0 {
			err = r.forget(ctx, c)
		}
		if err != nil || c.LastSeq == 0 || c.DeletedSeq != 0 || profile.Off {
			return later, err
		}
		if profile.Titles && c.Untitled() {
			if err := r.title(ctx, c, profile); err != nil {
				return later, err
			}
		}
		done := true
		if mayBeDue(c, profile.Settings) {
			if _, done, err = r.next(ctx, id, false); err != nil {
				return later, err
			}
		}
		if !done {
			continue
		}
		var condensing error // the analysis does without, and does not wait for another model
		if profile.Condense {
			condensing = r.condenseNew(ctx, c, profile.Condenser)
		}
		later, err = r.reflect(ctx, c, profile)
		return later, errors.Join(condensing, err)
	}
	return later, nil
}

// look reads the state of a conversation and its profile. It returns [ErrNobody] if this
// process does not drive the partition.
func (r *Reactor) look(ctx context.Context, id events.ConversationID) (c summary.Conversation, p Profile, err error) {
	if !r.drives(r.Log.PartitionOf(id.Tenant, id.ID)) {
		return c, p, ErrNobody
	}
	err = r.State(func(state summary.Reader) (err error) {
		c, err = state.Conversation(ctx, id)
		return err
	})
	return c, r.Profiles.Of(c.Profile, c.MaxContextChars), err
}

// mayBeDue is a cheap check whether a summary may be due. It reads nothing.
func mayBeDue(c summary.Conversation, s summary.Settings) bool {
	return c.Pending() >= min(s.Threshold(1), s.Threshold(2)) || s.MaxTurns > 0 && c.Turn-c.CoveredTurn >= s.MaxTurns
}

// kindDeleted is the kind of the events that delete conversations.
var kindDeleted = events.Kind(events.TypeConversationDeleted)

// kindSummary is the kind of the events that record summaries.
var kindSummary = events.Kind(events.TypeSummaryWritten)

// next writes the first summary that is due. done means that none is due, or that another
// process was faster.
func (r *Reactor) next(ctx context.Context, id events.ConversationID, force bool) (written string, done bool, err error) {
	newest, err := r.newest(ctx, id, kindSummary)
	if err != nil {
		return "", false, err
	}
	if err := r.awaitOwn(ctx, id, newest); err != nil {
		return "", false, err
	}
	c, profile, err := r.look(ctx, id)
	if err != nil {
		return "", false, err
	}
	var plan summary.Plan
	var due bool
	err = r.State(func(state summary.Reader) (err error) {
		c, plan, due, err = summary.Read(ctx, state, id, profile.Settings, force)
		return err
	})
	if err != nil || !due {
		return "", true, err
	}
	summaryID := summary.ID(plan.Level, plan.First, plan.Last, 1)
	e, err := r.made(id, summary.EventID(summaryID), func() (e events.Event, err error) {
		w, err := r.write(ctx, id, c, plan, profile)
		if err != nil {
			return e, err
		}
		if e, err = w.Event(id.ID, plan); err != nil {
			err = fmt.Errorf("summary %s: %w", summaryID, err)
		}
		return e, err
	})
	if err != nil {
		return "", false, err
	}
	if _, err := r.publish(ctx, id, e, kindSummary, newest); err != nil {
		return "", errors.Is(err, eventlog.ErrConflict), ignoreConflict(err)
	}
	r.count(func(f *Figures) {
		f.Written++
		if isFallback(e) {
			f.Fallbacks++
		}
	})
	return summaryID, false, nil
}

// isFallback reports whether an event records a summary that the configured model failed to write.
func isFallback(e events.Event) bool {
	record, err := events.Record(e)
	if err != nil {
		return false
	}
	written, ok := record.Payload.(*events.SummaryWritten)
	return ok && written.FallbackReason != ""
}

// ignoreConflict drops the error of a lost race: the winner's event touches the
// conversation.
func ignoreConflict(err error) error {
	if errors.Is(err, eventlog.ErrConflict) {
		return nil
	}
	return err
}

// newest returns the sequence of the newest event of a kind, 0 if there is none.
func (r *Reactor) newest(ctx context.Context, id events.ConversationID, kind string) (uint64, error) {
	m, err := r.Log.LastOfKind(ctx, id.Tenant, id.ID, kind)
	if errors.Is(err, eventlog.ErrNotFound) {
		return 0, nil
	}
	return m.Seq, err
}

// deleted returns the sequence of the newest event that deletes a conversation, 0 if there is none. It asks the log,
// because the read model may not have applied it yet. An event on the deletion's subject that is invalid deletes nothing.
func (r *Reactor) deleted(ctx context.Context, id events.ConversationID) (seq uint64, err error) {
	m, err := r.Log.LastOfKind(ctx, id.Tenant, id.ID, kindDeleted)
	if errors.Is(err, eventlog.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if _, _, invalid := m.Decode(); invalid == nil {
		return m.Seq, nil
	}
	// Rarely: an earlier one may be valid.
	filter := eventlog.Filter{Tenant: id.Tenant, Conversation: id.ID, Kinds: []string{kindDeleted}}
	err = r.Log.Tail(ctx, filter, eventlog.TailOptions{From: 1, ToEnd: true}, func(m eventlog.Message) error {
		if _, _, invalid := m.Decode(); invalid == nil {
			seq = m.Seq
		}
		return nil
	})
	return seq, err
}

// publishWithin limits how long the log and then the read model may take for one event.
const publishWithin = 30 * time.Second

// publish publishes an event if newest is still the last of its kind, waits until it is
// applied and returns its sequence. The event has no time because nothing happened in the
// conversation.
func (r *Reactor) publish(ctx context.Context, id events.ConversationID, e events.Event, kind string, newest uint64) (seq uint64, err error) {
	defer func() { r.tried(id, e.ID, err) }()
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	// The model may have worked on it for minutes. If the conversation was deleted in the meantime, a summary would
	// bring back what an erasure removes.
	if deleted, err := r.deleted(ctx, id); err != nil {
		return 0, err
	} else if deleted > 0 {
		return 0, fmt.Errorf("%s: the conversation was deleted: %w", e.ID, eventlog.ErrConflict)
	}
	ack, err := r.Log.PublishAfter(ctx, id.Tenant, e, kind, newest)
	if err == nil && ack.Duplicate || errors.Is(err, eventlog.ErrOtherContent) { // another process was faster, perhaps in other words
		return 0, fmt.Errorf("%s: %w", e.ID, eventlog.ErrConflict)
	}
	if err != nil {
		return 0, err
	}
	if err := r.awaitOwn(ctx, id, ack.Seq); err != nil && !errors.Is(err, ErrNobody) { // the new driver applies it
		return 0, err
	}
	return ack.Seq, nil
}

// awaitOwn waits until the read model "summaries" has applied a sequence. It returns
// [ErrNobody] if this process does not drive the partition or stops driving it.
func (r *Reactor) awaitOwn(ctx context.Context, id events.ConversationID, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	partition := r.Log.PartitionOf(id.Tenant, id.ID)
	err := r.Log.AwaitProgress(ctx, "summaries", partition, tick, func() (bool, error) {
		at, live := r.Live(partition)
		if !live {
			return false, ErrNobody
		}
		return at >= seq, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the read model summaries has not applied sequence %d", seq)
	}
	return err
}

// write writes a summary with the profile's model, or without it if that can't be used.
func (r *Reactor) write(ctx context.Context, id events.ConversationID, c summary.Conversation, plan summary.Plan, profile Profile) (w summary.Written, err error) {
	in, children, err := r.input(ctx, id, c, plan)
	if err != nil {
		return w, err
	}
	w = summary.Written{Files: in.Files, Tools: in.Tools, Children: children, Method: "extractive"}
	if profile.Model != nil {
		draft, usage, err := profile.Model.Write(ctx, in)
		r.count(func(f *Figures) { f.pay(usage) })
		if err == nil {
			r.answered(id)
			w.Draft, w.Method, w.Model, w.PromptHash = draft, "llm", profile.Model.Model(), profile.Model.PromptHash()
			return w, nil
		}
		if ctx.Err() != nil {
			return w, ctx.Err()
		}
		if errors.Is(err, llm.ErrOverQuota) { // the model works: wait for its quota, however long
			return w, err
		}
		if !errors.Is(err, summary.ErrUnusable) && !r.enough(id, c, profile) {
			return w, &silence{err, profile.Deadline}
		}
		w.FallbackReason = err.Error()
	}
	w.Draft, _, err = r.Profiles.Without.Write(ctx, in)
	return w, err
}

// enough reports whether a conversation has waited long enough for its model.
func (r *Reactor) enough(id events.ConversationID, c summary.Conversation, p Profile) bool {
	return r.silentFor(id) >= p.Deadline || c.Chars-c.CoveredChars >= 3*p.Settings.Threshold(1)
}

// modelWithin limits how long to wait for a read model of ingestor.
const modelWithin = time.Minute

// awaitGraph waits until the read model "graph" has applied a sequence.
func (r *Reactor) awaitGraph(ctx context.Context, partition int, seq uint64) error {
	return r.awaitModel(ctx, partition, seq, func(pins *view.Pins) (view.Model, error) {
		_, model, err := pins.Graph(ctx)
		return model, err
	})
}

// awaitProjects waits until the read model "projects" has applied a sequence.
func (r *Reactor) awaitProjects(ctx context.Context, partition int, seq uint64) error {
	return r.awaitModel(ctx, partition, seq, func(pins *view.Pins) (view.Model, error) {
		_, model, err := pins.Projects(ctx)
		return model, err
	})
}

func (r *Reactor) awaitModel(ctx context.Context, partition int, seq uint64, pin func(*view.Pins) (view.Model, error)) error {
	pins := r.Views.Pin()
	defer pins.Release()
	model, err := pin(pins)
	if err != nil {
		return err
	}
	err = r.Views.AwaitPartition(ctx, modelWithin, model, partition, seq)
	if behind := (*view.BehindError)(nil); errors.As(err, &behind) {
		return fmt.Errorf("the read model %s has not applied sequence %d: is ingestor running?", model.Name, seq)
	}
	return err
}

// graph lends the read model "graph" for the duration of the call.
func (r *Reactor) graph(ctx context.Context, read func(graph.Reader) error) error {
	return view.Lend(ctx, r.Views.Models.Graph, read)
}
