package salvage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Options control [Repair].
type Options struct {
	DryRun bool // only report
	// Accept records whatever is still missing at the end as removed on purpose: it is no longer
	// reported, and old generations of read models may be removed again.
	Accept bool
}

// Report says what a repair found and did.
type Report struct {
	Missing       uint64 // events missing from the log without a record when the repair began
	Left          uint64 // of those, the ones still missing
	Events        int    // that only the read model holds
	Restored      int    // of Events: written back, or restorable in a dry run
	Inexact       int    // of Restored: content is not exactly what was published
	Conversations []ConversationReport
}

// ConversationReport is the part of one conversation.
type ConversationReport struct {
	Conversation events.ConversationID
	Restored     int
	Inexact      int
	Unrestorable []Unrestorable
}

// Repair writes back to the log what only the read model holds. It can be repeated: events that are
// in the log again are not written twice. The read models know the events by their identity; a
// later rebuild gives their rows the new sequences.
func Repair(ctx context.Context, log *eventlog.Log, source Source, o Options) (Report, error) {
	state, err := log.State(ctx)
	if err != nil {
		return Report{}, err
	}
	report := Report{Missing: state.Missing, Left: state.Missing}
	err = Find(ctx, log, source, func(loss Loss) error {
		id := loss.Conversation
		if !o.DryRun {
			if err := writeBack(ctx, log, &loss); err != nil {
				return fmt.Errorf("write back conversation %q of tenant %q (run the repair again to continue): %w", id.ID, id.Tenant, err)
			}
		}
		report.Events += loss.Count()
		report.Restored += loss.Restorable()
		report.Inexact += loss.Inexact
		report.Conversations = append(report.Conversations, ConversationReport{
			Conversation: id, Restored: loss.Restorable(), Inexact: loss.Inexact, Unrestorable: loss.Unrestorable,
		})
		return nil
	})
	if err != nil || o.DryRun {
		return report, err
	}
	known := uint64(report.Restored)
	if o.Accept {
		known = math.MaxUint64
	}
	report.Left, err = log.RecordRemoved(ctx, known)
	return report, err
}

// writeBack publishes events, and then the summaries over their new sequences.
func writeBack(ctx context.Context, log *eventlog.Log, loss *Loss) error {
	tenant := loss.Conversation.Tenant
	acks, err := log.PublishAll(ctx, tenant, loss.Events)
	if err != nil {
		return err
	}
	var summaries []events.Event
	for _, m := range loss.Summaries {
		p := written(m)
		first, _ := slices.BinarySearch(loss.Seqs, m.FirstSeq)
		behind, _ := slices.BinarySearch(loss.Seqs, m.LastSeq+1)
		if first >= behind {
			continue // no part of its range was restorable
		}
		// Ranges leave no gap: each begins right after the event before it, the first one at the
		// beginning of the conversation.
		p.FirstSeq, p.LastSeq = acks[0].Seq, acks[behind-1].Seq
		if first > 0 && loss.Seqs[first-1] > 0 {
			p.FirstSeq = acks[first-1].Seq + 1
		}
		e, err := events.New(loss.Conversation.ID, m.Source, m.EventID, p)
		if err != nil {
			return err
		}
		if m.Time != "" {
			if e.Time, err = time.Parse(time.RFC3339Nano, m.Time); err != nil {
				return err
			}
		}
		summaries = append(summaries, e)
	}
	_, err = log.PublishAll(ctx, tenant, summaries)
	return err
}

// LossError means that the log holds less of living conversations than the read model.
type LossError struct {
	Missing       uint64 // events missing from the log without a record
	Conversations int    // that would lose events
	Events        int    // events that they would lose
}

func (e *LossError) Error() string {
	return fmt.Sprintf("the log has lost events: %d events of %d conversations are only in the read model graph, which may be their last copy", e.Events, e.Conversations)
}

// Check returns a [*LossError] if the log holds less of a living conversation than the read model.
// It reads the log once, at about 6 s per million events, and compares only if that shows a loss.
func Check(ctx context.Context, log *eventlog.Log, source CheckedSource) error {
	state, err := log.State(ctx)
	if err != nil {
		return err
	}
	suspect := state.Missing > 0
	if !suspect {
		same, err := follows(ctx, log, source)
		if err != nil {
			return err
		}
		suspect = !same
	}
	if !suspect {
		if unreadable, err := log.Unreadable(ctx); err != nil || unreadable == 0 {
			return err
		}
	}
	loss := LossError{Missing: state.Missing}
	err = Find(ctx, log, source, func(l Loss) error {
		loss.Conversations++
		loss.Events += l.Count()
		return nil
	})
	if err == nil && loss.Conversations > 0 {
		return &loss
	}
	return err
}
