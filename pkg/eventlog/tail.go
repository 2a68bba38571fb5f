package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mneme.dev/mneme/events"
)

// Filter selects messages of the log. An empty field selects all.
type Filter struct {
	Tenant, Conversation string
	Kinds                []string // as [events.Kind] names them
}

// subjects returns the filters for a consumer, none for everything.
func (f Filter) subjects() []string {
	if f.Tenant == "" && f.Conversation == "" && len(f.Kinds) == 0 {
		return nil
	}
	if len(f.Kinds) == 0 {
		return []string{events.StoredFilter(f.Tenant, f.Conversation, "")}
	}
	var list []string
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(f.Kinds))) { // the server refuses a filter that it has twice
		list = append(list, events.StoredFilter(f.Tenant, f.Conversation, kind))
	}
	return list
}

// TailOptions say where a tail begins and when it ends.
type TailOptions struct {
	// From is the sequence to begin at. 0 begins with the newest Last messages or, without Last,
	// with the next new message.
	From uint64
	Last int
	// ToEnd stops at the end that the log had when the tail began. With Last it yields at most
	// that many messages, even while others publish.
	ToEnd bool
	// Trouble is called with the reason for an interruption. The tail retries by itself.
	Trouble func(error)
}

// tailRetry is how long a tail waits before it asks an unavailable server again.
const tailRetry = 500 * time.Millisecond

// Tail reads the messages that a filter selects, in order and each once, and continues after the
// server was away. It ends when ctx does, or with the error that yield returns.
//
// It returns [ErrBeyondEnd] if the log ends before From. If a power cut takes the end of the
// log, the tail reports that as trouble and continues from the new end.
func (l *Log) Tail(ctx context.Context, filter Filter, o TailOptions, yield func(Message) error) error {
	state, err := l.extent(ctx)
	if err != nil {
		return err
	}
	if o.From > state.Head+1 {
		return fmt.Errorf("sequence %d is %w, which is %d", o.From, ErrBeyondEnd, state.Head)
	}
	t := tail{log: l, filters: filter.subjects(), next: o.From, yield: yield}
	switch {
	case t.next > 0:
	case o.Last > 0:
		n := uint64(o.Last)
		if t.next, t.skip, err = l.newest(ctx, t.filters, state.Head, n); err != nil {
			return err
		}
		if o.ToEnd { // the counted messages may have come after the state was read
			t.most = n
			if state, err = l.extent(ctx); err != nil {
				return err
			}
		}
	default:
		t.next = state.Head + 1
	}
	if o.ToEnd {
		t.end = state.Head
		if t.next > state.Head {
			return nil
		}
	}
	for {
		done, err := t.run(ctx)
		if done || err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil && o.Trouble != nil {
			o.Trouble(err)
		}
		select {
		case <-time.After(tailRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newest finds where the newest n messages begin, and how many more than n follow from there. It
// looks at ever longer ends of the log, so it costs little if they are new, and at most as much as
// a scan.
func (l *Log) newest(ctx context.Context, filters []string, head, n uint64) (from, more uint64, err error) {
	for reach := n; ; reach *= 4 {
		from = 1
		if reach < head {
			from = head - reach + 1
		}
		if head == 0 {
			return from, 0, nil
		}
		count, err := l.countFrom(ctx, filters, from)
		if err != nil {
			return 0, 0, fmt.Errorf("look for the newest %d events: %w", n, err)
		}
		if count >= n || from == 1 {
			return from, max(count, n) - n, nil
		}
	}
}

// tail is where a [Log.Tail] is.
type tail struct {
	log     *Log
	filters []string
	next    uint64 // sequence to continue at
	skip    uint64 // messages to skip
	end     uint64 // last sequence to read, 0 for none
	most    uint64 // how many more messages to yield, 0 for no limit
	yield   func(Message) error
}

// run reads until it is interrupted. done reports that nothing is left to read.
func (t *tail) run(ctx context.Context) (done bool, err error) {
	state, err := t.log.extent(ctx)
	if err != nil {
		return false, err
	}
	if t.next > state.Head+1 {
		err := fmt.Errorf("the log ends at %d, before sequence %d: %w", state.Head, t.next, ErrBeyondEnd)
		t.next = state.Head + 1
		return false, err
	}
	f, err := t.log.follow(ctx, t.filters, t.next, followMessages, everything)
	if err != nil {
		return false, err
	}
	defer f.Stop()
	if t.end > 0 && f.Pending() == 0 {
		return true, nil
	}
	var idle <-chan time.Time // nil without an end: it may be long until something is published
	if t.end > 0 {
		ticker := time.NewTicker(idleScan)
		defer ticker.Stop()
		idle = ticker.C
	}
	for {
		m, ok, err := f.next(ctx, idle)
		if errors.Is(err, errIdle) {
			if done, err := t.isAtEnd(ctx); done || err != nil {
				return done, err
			}
			continue
		}
		if !ok || err != nil {
			return err != nil, err
		}
		if t.end > 0 && m.Seq > t.end {
			return true, nil
		}
		t.next = m.Seq + 1
		if t.skip > 0 {
			t.skip--
		} else if err := t.yield(m); err != nil {
			return true, err
		} else if t.most > 0 {
			if t.most--; t.most == 0 {
				return true, nil
			}
		}
		if t.end > 0 && (m.Seq == t.end || m.Pending == 0) {
			if done, err := t.isAtEnd(ctx); done || err != nil {
				return done, err
			}
		}
	}
}

// isAtEnd reports whether nothing is left to read up to the end.
func (t *tail) isAtEnd(ctx context.Context) (bool, error) {
	if t.next > t.end {
		return true, nil
	}
	return t.log.isExhausted(ctx, t.filters, t.next, t.end)
}
