package salvage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Options say what [Repair] may do.
type Options struct {
	DryRun bool // only report
	// Accept records whatever is still missing or unreadable at the end as given up: it is
	// no longer reported, and old generations of read models may be removed again.
	Accept bool
}

// Report is what a repair found and did.
type Report struct {
	Missing       uint64 // events missing from the log without a record when the repair began
	Left          uint64 // of Missing: still missing or, if it was a dry run, what would be
	Events        int    // events that only the read model holds
	Restored      int    // of Events: written back, or restorable if it was a dry run
	Inexact       int    // of Restored: content is not exactly what was published
	Conversations []ConversationReport
	// NeedsForce reports whether, even with Accept, only a forced rebuild goes on without the events that were not written
	// back, see [LossError].
	NeedsForce bool
}

// ConversationReport is the part of one conversation.
type ConversationReport struct {
	Conversation events.ConversationID
	Restored     int
	Inexact      int
	Unrestorable []Unrestorable
}

// recordWithin limits how long the server may take to record what was written back.
const recordWithin = 10 * time.Second

// Repair writes the events that only the read model holds back to the log. It can be
// repeated, also after a failure, because it does not write an event that the log holds
// again. The read models know the events by their identity; a rebuild afterwards gives their
// rows the new sequences.
func Repair(ctx context.Context, log *eventlog.Log, source Source, o Options) (Report, error) {
	state, err := log.State(ctx)
	if err != nil {
		return Report{}, err
	}
	unreadable, err := log.Unreadable(ctx)
	if err != nil {
		return Report{}, err
	}
	report := Report{Missing: state.Missing, Left: state.Missing}
	replaced, recorded := uint64(0), uint64(0) // sequences up to the head whose events are in the log again
	// record notes that these events are back. The next repair finds them in the log, so it can't know that they were lost.
	record := func(back []uint64) error {
		for _, seq := range back {
			if seq > 0 && seq <= state.Head { // beyond the head nothing is missing: the server uses these sequences again
				replaced++
			}
		}
		gone := replaced - min(replaced, unreadable) // some of the sequences may belong to unreadable messages
		if o.DryRun {
			report.Left = state.Missing - min(gone, state.Missing)
			return nil
		}
		if gone == recorded {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
		defer cancel()
		var err error
		if report.Left, err = log.RecordRemoved(ctx, gone-recorded); err == nil {
			recorded = gone
		}
		return err
	}
	var moved []uint64
	err = Find(ctx, log, source, func(loss Loss) error {
		id := loss.Conversation
		moved = append(moved, loss.moved...)
		if loss.Count() == 0 {
			return nil
		}
		back, err := loss.sequences(), error(nil)
		if !o.DryRun {
			back, err = writeBack(ctx, log, &loss)
		}
		if err := errors.Join(err, record(back)); err != nil {
			return fmt.Errorf("write back conversation %q of tenant %q (run the repair again to continue): %w", id.ID, id.Tenant, err)
		}
		report.Events += loss.Count()
		report.Restored += loss.Restorable()
		report.Inexact += loss.inexact
		report.Conversations = append(report.Conversations, ConversationReport{
			Conversation: id, Restored: loss.Restorable(), Inexact: loss.inexact, Unrestorable: loss.Unrestorable,
		})
		return nil
	})
	if err != nil {
		return report, err
	}
	back, err := unrecorded(ctx, log, moved, state.Removed)
	if err != nil {
		return report, err
	}
	if err := record(back); err != nil {
		return report, err
	}
	if report.Restored < report.Events {
		same, err := follows(ctx, log, source)
		if err != nil {
			return report, err
		}
		report.NeedsForce = !same
	}
	if o.DryRun {
		if o.Accept {
			report.Left = 0
		}
		return report, nil
	}
	if o.Accept {
		if report.Left, err = log.RecordRemoved(ctx, math.MaxUint64); err != nil {
			return report, err
		}
	}
	if unreadable > 0 && (o.Accept || report.Restored == report.Events) {
		err = log.RecordDamaged(ctx, unreadable)
	}
	return report, err
}

// unrecorded returns which of the sequences that earlier repairs replaced are not among the recorded ones. A repair
// that was killed recorded less than it wrote back. Which ones a record counts is not known, so erasures may hide some.
func unrecorded(ctx context.Context, log *eventlog.Log, moved []uint64, recorded uint64) (list []uint64, err error) {
	if uint64(len(moved)) <= recorded {
		return nil, nil
	}
	for _, seq := range moved {
		_, err := log.Get(ctx, seq)
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
			list = append(list, seq)
		case err != nil:
			return nil, err
		}
	}
	return list[min(recorded, uint64(len(list))):], nil
}

// sequences returns the old sequences of the events that can be written back.
func (l *Loss) sequences() (list []uint64) {
	for _, e := range l.events {
		list = append(list, e.seq)
	}
	for _, s := range l.summaries {
		list = append(list, s.Seq)
	}
	return list
}

// writeBack publishes events, and then the summaries over their new sequences. It returns the old sequences of those that
// are in the log again, also if it fails.
func writeBack(ctx context.Context, log *eventlog.Log, loss *Loss) (back []uint64, err error) {
	tenant, all := loss.Conversation.Tenant, loss.sequences()
	list := make([]events.Event, len(loss.events))
	for i, e := range loss.events {
		list[i] = e.event
	}
	acks, err := log.PublishAll(ctx, tenant, list)
	back = all[:len(acks)]
	if err != nil {
		return back, err
	}
	seqs := make([]uint64, len(acks))
	for i, ack := range acks {
		seqs[i] = ack.Seq
	}
	fitting := loss.fit(seqs)
	var summaries []events.Event
	for _, m := range loss.summaries {
		p, err := fitting.accept(m)
		if err != nil {
			return back, fmt.Errorf("summary %q: %w", m.SummaryID, err) // only if somebody else wrote some of the events back meanwhile
		}
		e, err := event(loss.Conversation, m.Origin, p)
		if err != nil {
			return back, err
		}
		summaries = append(summaries, e)
	}
	acks, err = log.PublishAll(ctx, tenant, summaries)
	return all[:len(back)+len(acks)], err
}

// LossError says that the log holds less of living conversations than the read model.
type LossError struct {
	Missing       uint64 // events missing from the log without a record
	Conversations int    // that would lose events
	Restorable    int    // events that can be written back
	Unrestorable  int    // events that cannot
	// Differs reports whether the log lacks the event of a checkpoint, because it was restored from an older backup or is new.
	// Then the loss can't be recorded as given up: a log that ends early has no gap.
	Differs bool
}

func (e *LossError) Error() string {
	return fmt.Sprintf("the log has lost events: %d are only in the read model graph, which may be their last copy; conversations they belong to: %d", e.Restorable+e.Unrestorable, e.Conversations)
}

// Remedy returns what to do about the loss.
func (e *LossError) Remedy() string {
	if e.Restorable > 0 {
		return "restore the log from a backup, or write them back with mneme repair log"
	}
	if e.Differs {
		return "restore the log from a backup that has them; none of them can be written back"
	}
	return "restore the log from a backup; none of them can be written back, and mneme repair log --accept records that they are given up"
}

// Check returns a [*LossError] if the log holds less of a living conversation than the
// read model. It reads the log once, at about 6 s per million events, and compares only if
// the log has lost events. suspect reports whether it has, also if err is another error.
func Check(ctx context.Context, log *eventlog.Log, source Source) (suspect bool, err error) {
	state, err := log.State(ctx)
	if err != nil {
		return true, err
	}
	suspect = state.Missing > 0
	if !suspect {
		unreadable, err := log.Unreadable(ctx)
		if err != nil {
			return true, err
		}
		suspect = unreadable > 0
	}
	if !suspect {
		same, err := follows(ctx, log, source)
		if err != nil {
			return false, err
		}
		suspect = !same
	}
	if !suspect {
		return false, nil
	}
	loss := LossError{Missing: state.Missing}
	err = Find(ctx, log, source, func(l Loss) error {
		if l.Count() == 0 {
			return nil
		}
		loss.Conversations++
		loss.Restorable += l.Restorable()
		loss.Unrestorable += len(l.Unrestorable)
		return nil
	})
	if err != nil || loss.Conversations == 0 {
		return true, err
	}
	same, err := follows(ctx, log, source)
	if err != nil {
		return true, err
	}
	loss.Differs = !same
	return true, &loss
}
