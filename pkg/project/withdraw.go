package project

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Withdrawal says that what an event taught is no longer shown.
type Withdrawal struct {
	Key string `json:"k"`           // of the event, see eventKey
	Of  uint64 `json:"o,omitempty"` // its sequence; 0 while nothing is known that it taught
	Seq uint64 `json:"s"`           // of the event that withdrew it
}

// maxWithdrawn is how many withdrawals a digest knows, the newest.
const maxWithdrawn = 128

// eventKey names an event within its conversation, also in another log.
func eventKey(source, id string) string {
	sum := events.DigestOf(source, id)
	return hex.EncodeToString(sum[:8])
}

// teaches reports whether a change may add lines to what was learnt.
func (c *Change) teaches(before *Digest) bool {
	solves := c.Outcome != nil && c.Outcome.Success != nil && *c.Outcome.Success && len(before.Troubles) > 0
	return solves || len(c.Taught) > 0 || c.Summary != nil && len(c.Summary.Findings) > 0 || c.Insight != nil && len(c.Insight.Findings) > 0
}

func (r reducer) withdrew(d *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.LessonWithdrawn)
	key := eventKey(p.EventSource, p.EventID)
	if d.withdrawal(key) != nil {
		return nil
	}
	return &Change{Withdrawn: key}
}

func (d *Digest) withdrawal(key string) *Withdrawal {
	for i := range d.Withdrawn {
		if d.Withdrawn[i].Key == key {
			return &d.Withdrawn[i]
		}
	}
	return nil
}

// withdraw removes what the event with this key taught, if that was withdrawn, before or after.
func (d *Digest) withdraw(key string) {
	w := d.withdrawal(key)
	if w == nil {
		return
	}
	d.Taught = slices.DeleteFunc(d.Taught, func(t Said) bool { return w.covers(t.Key, t.Seq) })
	d.Fixes = slices.DeleteFunc(d.Fixes, func(f Fix) bool { return w.covers(f.Key, f.Seq) })
	if d.Summary != nil && w.covers(d.Summary.Key, d.Summary.Seq) {
		d.Summary.Findings = nil
	}
	if d.Insight != nil && w.covers(d.Insight.Key, d.Insight.Seq) {
		d.Insight.Findings = nil
	}
}

// covers reports whether a withdrawal is of the event with this key, and then notes the event's sequence.
func (w *Withdrawal) covers(key string, seq uint64) bool {
	if key != w.Key {
		return false
	}
	w.Of = cmp.Or(w.Of, seq)
	return true
}

// IsWithdrawn reports whether what the event at a sequence taught was withdrawn.
func (d *Digest) IsWithdrawn(seq uint64) bool {
	return slices.ContainsFunc(d.Withdrawn, func(w Withdrawal) bool { return w.Of == seq })
}

// Withdrew reports whether what the event with this source and id taught was withdrawn. Only the newest withdrawals are known.
func (d *Digest) Withdrew(source, id string) bool { return d.withdrawal(eventKey(source, id)) != nil }

// Teaches reports whether the event at a sequence taught something that may be shown.
func (d *Digest) Teaches(seq uint64) bool {
	return slices.ContainsFunc(d.Lessons(), func(l Lesson) bool { return l.Seq == seq })
}

// withdrawalSource is the CloudEvents source of withdrawals.
const withdrawalSource = "mneme/projects"

// NewWithdrawal makes the event that withdraws what an event taught. It has the same identity whoever withdraws it.
func NewWithdrawal(conversation, source, id, reason string) (events.Event, error) {
	return events.New(conversation, withdrawalSource, "withdrawn/"+eventKey(source, id), &events.LessonWithdrawn{EventSource: source, EventID: id, Reason: reason})
}

// WithdrawnAt returns the sequence of the event that [NewWithdrawal] made for an event, 0 if none was applied.
func WithdrawnAt(ctx context.Context, r Reader, id events.ConversationID, withdrawal *events.Event) (uint64, error) {
	held, err := r.Holders(ctx, []projection.Claim{{Conversation: id, Key: withdrawal.Identity(id.Tenant)}})
	if holder, ok := held[0]; err == nil && ok && !holder.Content.IsZero() {
		return holder.Seq, nil
	}
	return 0, err
}
