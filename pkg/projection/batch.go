package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// entry is a decoded message, as one projection applies it.
type entry struct {
	*decoded
	reduced    bool   // the projection has a reducer for it
	result     result // the outcome of the last attempt
	derivation *derivation
}

// result is the outcome of an event: one of these, or the [Class] of its failure.
type result string

const (
	resultIgnored   result = "ignored" // the projection has no reducer for it
	resultApplied   result = "applied"
	resultDuplicate result = "duplicate"
)

// entries does the work on decoded messages that depends on the projection but needs no store.
func (p *Projection[U]) entries(list []*decoded) []*entry {
	room, entries := make([]entry, len(list)), make([]*entry, len(list))
	for i, d := range list {
		e := &room[i]
		e.decoded, entries[i] = d, e
		if _, e.reduced = p.Reducers[d.event.Type]; e.reduced {
			d.hash()
		}
	}
	return entries
}

// decode decodes a message that no feed has read.
func (p *Projection[U]) decode(m eventlog.Message) *entry {
	return p.entries([]*decoded{decodeMessage(m)})[0]
}

// PayloadKey returns the claim key of a payload that must be unique within its conversation (see
// [events.Payload]).
func PayloadKey(id events.ConversationID, key string) events.Digest {
	return events.DigestOf("payload", id.Tenant, id.ID, key)
}

// maxFailedText limits each text of a failed event's record. An unreadable event has no size limits
// of its own, and the reason quotes from it.
const maxFailedText = 1 << 10

func short(text string) string {
	if len(text) <= maxFailedText {
		return text
	}
	return strings.ToValidUTF8(text[:maxFailedText], "") + "…"
}

// poison is the set of events whose reducers failed, by sequence. The batch's work so far is
// unusable, because these events hold claims.
type poison map[uint64]error

func (p poison) Error() string { return fmt.Sprintf("reducers failed: %v", map[uint64]error(p)) }

// outcome counts what a batch did.
type outcome struct {
	checkpoint Checkpoint
	applied    int
	duplicates int
	failed     int

	apply, commit time.Duration // how long the work inside the transaction took, and the commit
}

// reducible returns the events of entries that have a reducer.
func reducible(entries []*entry, skip map[uint64]error) (list []*events.Recorded) {
	for _, e := range entries {
		if e.invalid == nil && e.reduced && skip[e.seq] == nil {
			list = append(list, &e.event)
		}
	}
	return list
}

// prepare does the work that a transaction must not wait for.
func (p *Projection[U]) prepare(ctx context.Context, entries []*entry, skip map[uint64]error) (give func(U), err error) {
	gives := p.derive(entries)
	if list := reducible(entries, skip); p.Prepare != nil && len(list) > 0 {
		if give, err = p.Prepare(ctx, list); err != nil {
			return nil, err
		}
		gives = append(gives, give)
	}
	return together(gives), nil
}

// together returns a function that calls all of these, in order.
func together[U Unit](gives []func(U)) func(U) {
	return func(u U) {
		for _, give := range gives {
			give(u)
		}
	}
}

// reduceIn runs a batch in one transaction that is already fenced: everything between reading the
// checkpoint and the commit. skip holds events that failed before, and known the keys that were passed on in the
// transaction before.
func (p *Projection[U]) reduceIn(ctx context.Context, tx Tx[U], entries []*entry, skip map[uint64]error, known *freed, give func(U)) (out outcome, err error) {
	var failed []Failed
	fail := func(e *entry, class Class, reason string) {
		e.result = result(class)
		failed = append(failed, Failed{
			Projection: p.Name, Seq: e.seq, Conversation: e.conv, EventID: short(e.event.ID), Type: short(e.event.Type), Class: class, Reason: short(reason),
		})
	}

	u, err := tx.Load(ctx, reducible(entries, skip))
	if err != nil {
		return out, err
	}
	give(u)
	var claims []Claim
	for _, e := range entries {
		if e.invalid == nil && e.reduced && skip[e.seq] == nil && u.Tombstone(e.conv) == 0 {
			for _, key := range e.keys[:e.nkeys] {
				claims = append(claims, Claim{Conversation: e.conv, Key: key, Content: e.content, Seq: e.seq})
			}
		}
	}
	held, err := tx.Claim(ctx, claims)
	if err != nil {
		return out, err
	}

	bad := poison{}
	keys := holders{claims: claims, held: held, freed: known}
	next := 0 // index of the entry's first claim
	for _, e := range entries {
		if e.invalid != nil {
			fail(e, ClassInvalid, e.invalid.Error())
			continue
		}
		if !e.reduced {
			e.result = resultIgnored
			continue
		}
		if err := skip[e.seq]; err != nil {
			fail(e, classOf(err), err.Error())
			continue
		}
		claimed := next < len(claims) && claims[next].Seq == e.seq
		own := 0 // how many claims the entry has
		if claimed {
			own = e.nkeys
		}
		first := next
		next += own
		holder := keys.of(first, own)
		switch deleted := u.Tombstone(e.conv); {
		case deleted != 0:
			fail(e, ClassInvalid, fmt.Sprintf("the conversation was deleted at sequence %d", deleted))
		case holder.Seq == 0:
			if err := p.reduce(u, &e.event); err != nil {
				bad[e.seq] = err
				keys.refuse(e.seq)
				if !errors.Is(err, ErrInvalid) {
					return out, bad
				}
				continue // the unit is unchanged
			}
			keys.applied(first, own)
			e.result = resultApplied
			out.applied++
		case holder.Content == e.content:
			e.result = resultDuplicate
			out.duplicates++
		default:
			fail(e, ClassInvalid, fmt.Sprintf("the event at sequence %d has the same identity and other content; the first one counts", holder.Seq))
		}
		if keys.none != nil && e.result != resultApplied { // the store may have given it keys that another event holds now
			keys.refuse(e.seq)
		}
	}
	if len(bad) > 0 {
		return out, bad
	}
	out.failed = len(failed)
	if err := tx.Save(ctx, u); err != nil {
		return out, err
	}
	return out, tx.Fail(ctx, failed)
}

func classOf(err error) Class {
	if errors.Is(err, ErrInvalid) {
		return ClassInvalid
	}
	return ClassError
}

// holders knows who holds the keys of a batch. The store has given each free key to the first event that claims it. If
// that event is refused, its keys pass to the next event that claims them, which the store does not know.
type holders struct {
	claims []Claim
	held   map[int]Claim // by index of the claim, as [Tx.Claim] returned it
	*freed
}

// freed says what became of the keys of refused events.
type freed struct {
	none   map[uint64]bool         // events that hold no keys, whatever the store says; nil until a reducer refuses one
	passed map[events.Digest]Claim // keys of events that were applied since
}

// of returns another event that holds one of the n claims from an index on.
func (h *holders) of(first, n int) Claim {
	for i := first; i < first+n; i++ {
		if c, ok := h.passed[h.claims[i].Key]; ok {
			return c
		}
		if c, ok := h.held[i]; ok && c.Seq != h.claims[i].Seq && !h.none[c.Seq] {
			return c
		}
	}
	return Claim{}
}

// refuse takes an event's keys away.
func (h *holders) refuse(seq uint64) {
	if h.none == nil {
		h.none, h.passed = map[uint64]bool{}, map[events.Digest]Claim{}
	}
	h.none[seq] = true
}

// applied gives an event its n claims from an index on.
func (h *holders) applied(first, n int) {
	if h.none == nil {
		return // the store did
	}
	for _, c := range h.claims[first : first+n] {
		h.passed[c.Key] = c
	}
}

// reduce calls the reducer; a panic is an error of this event.
func (p *Projection[U]) reduce(u U, e *events.Recorded) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("reducer panicked: %v", r)
		}
	}()
	return p.Reducers[e.Type](u, e)
}

// Apply applies messages of one partition, in order, to a store that was acquired with cp, as a
// projector would, and returns the new checkpoint. It is for replays into stores that no projector
// drives.
func (p *Projection[U]) Apply(ctx context.Context, s Store[U], cp Checkpoint, messages []eventlog.Message) (Checkpoint, error) {
	for len(messages) > 0 {
		n := min(len(messages), maxBatchEvents)
		entries := make([]*entry, n)
		for i, m := range messages[:n] {
			entries[i] = p.decode(m)
		}
		out, err := p.apply(ctx, s, cp, entries, nil)
		if err != nil {
			return cp, err
		}
		cp, messages = out.checkpoint, messages[n:]
	}
	return cp, nil
}

// mostAttempts is how often a whole batch is tried before it is halved. A reducer's error, unlike one of [ErrInvalid],
// ends the attempt, so a batch with many of them would be tried once for each.
const mostAttempts = 3

// apply applies a batch in one transaction, or in several if the store refuses its data, it is too
// large for one, or many of its events fail. entries are in sequence order and must not be empty.
func (p *Projection[U]) apply(ctx context.Context, s Store[U], cp Checkpoint, entries []*entry, skip map[uint64]error) (outcome, error) {
	if skip == nil {
		skip = map[uint64]error{}
	}
	for attempt := 1; ; attempt++ {
		out, err := p.applyOnce(ctx, s, cp, entries, skip)
		var bad poison
		poisoned := errors.As(err, &bad)
		maps.Copy(skip, bad)
		switch {
		case err == nil:
			return out, nil
		case poisoned && (attempt < mostAttempts || len(entries) == 1):
		case errors.Is(err, ErrRejected) && len(entries) == 1 && skip[entries[0].seq] == nil:
			skip[entries[0].seq] = err
		case (poisoned || errors.Is(err, ErrRejected) || errors.Is(err, ErrTooLarge)) && len(entries) > 1:
			middle := len(entries) / 2
			first, err := p.apply(ctx, s, cp, entries[:middle], skip)
			if err != nil {
				return first, err
			}
			// An event may have been invalid only because of another event, which the store has now refused.
			maps.DeleteFunc(skip, func(seq uint64, err error) bool { return seq >= entries[middle].seq && errors.Is(err, ErrInvalid) })
			second, err := p.apply(ctx, s, cp, entries[middle:], skip)
			second.applied += first.applied
			second.duplicates += first.duplicates
			second.failed += first.failed
			second.apply += first.apply
			second.commit += first.commit
			return second, err
		default:
			return out, err
		}
	}
}

func (p *Projection[U]) applyOnce(ctx context.Context, s Store[U], mine Checkpoint, entries []*entry, skip map[uint64]error) (out outcome, err error) {
	give, err := p.prepare(ctx, entries, skip)
	if err != nil {
		return out, err
	}
	var began, done time.Time
	err = s.Update(ctx, mine.Partition, func(tx Tx[U]) error {
		began = time.Now()
		defer func() { done = time.Now() }()
		cp, err := tx.Checkpoint(ctx)
		if err != nil {
			return err
		}
		if cp.Epoch != mine.Epoch {
			return ErrFenced
		}
		rest := entries
		for len(rest) > 0 && rest[0].seq <= cp.Seq {
			rest = rest[1:]
		}
		if out = (outcome{checkpoint: cp}); len(rest) == 0 {
			return nil
		}
		if out, err = p.reduceIn(ctx, tx, rest, skip, &freed{}, give); err != nil {
			return err
		}
		last := rest[len(rest)-1]
		cp.Seq, cp.Event = last.seq, last.message.Digest()
		cp.Halted = "" // clear a halt that an older build recorded when it could not take over
		cp.Applied += uint64(out.applied)
		cp.Duplicates += uint64(out.duplicates)
		out.checkpoint = cp
		return tx.Advance(ctx, cp)
	})
	out.apply, out.commit = done.Sub(began), time.Since(done)
	return out, err
}
