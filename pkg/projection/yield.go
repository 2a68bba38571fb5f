package projection

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"mneme.dev/mneme/pkg/eventlog"
)

// A projector that yields waits before a batch while others work, so long at most, or
// so many times as long as its last batch took.
const (
	minYield   = 200 * time.Millisecond
	yieldRatio = 4
)

// Others that have worked a moment ago will again. Then what a projector that yields
// does between two looks at them is short, and it rests a while after it: the others
// find a processor that is free, and a server that has little to send before it comes to
// them. Else its batches are whole, and so they are always in a store to which each
// transaction is dear (see [CostlyTransactions]): there others do not wait for its end.
const (
	recently     = 250 * time.Millisecond
	shortBatch   = 2 * time.Millisecond // what one takes, about
	minBatch     = 8                    // events
	maxYielding  = 1000                 // events, of a whole one
	restRatio    = 8
	maxRest      = 100 * time.Millisecond
	yieldingRead = 50 // events that it lets the log send ahead
)

// A store to which each transaction is dear (see [CostlyTransactions]) is burdened when small ones
// take long, one after the other. Then the projector rests after each: more events share
// the next one, and fewer transactions are under way at once. A store that answers as it
// should is never left to rest, nor is one that has batches to catch up with.
const (
	smallShare    = 4 // of a whole batch
	burdened      = 100 * time.Millisecond
	burdenedRatio = 4
	maxRelief     = time.Second
)

// yieldPoll is how often it looks whether the others are done.
const yieldPoll = time.Millisecond

// Yield makes a projector wait before each batch while others work, for a bounded time:
// it is slowed down, but not kept from ending. idle says for how long they had nothing to
// do, 0 while they have. Near the end of the log, where no batch would be full, it waits no
// more: it could not keep up with the others. What the log holds when it begins is history,
// wherever it goes on from, and is not traced.
func Yield(idle func() time.Duration) Option {
	return func(o *options) { o.idle = idle }
}

// Forever is how long nothing was done by who has done nothing yet.
const Forever = time.Duration(math.MaxInt64)

// Idle is for how long the projector had nothing to do: 0 while it applies a batch, or lags,
// or tries again. One that is halted does nothing.
func (p *Projector[U]) Idle() time.Duration {
	if p.applying.Load() > 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.statuses {
		if s.State != StateIdle && s.State != StateHalted && (s.Lag > 0 || s.Error != "") {
			return 0
		}
	}
	if p.worked.IsZero() {
		return Forever
	}
	return time.Since(p.worked)
}

// follow follows the log as its projector may.
func (p *Projector[U]) follow(ctx context.Context, partition int, from uint64) (*eventlog.Follower, error) {
	if p.idle != nil {
		return p.log.FollowAhead(ctx, partition, from, yieldingRead)
	}
	return p.log.Follow(ctx, partition, from)
}

// turns says when a projector may go on, and with how much.
type turns struct {
	idle  func() time.Duration // nil: it yields to nobody
	size  atomic.Int64         // of a batch, in events
	whole int64                // of a whole one
	short bool                 // its batches are short while others work
	dear  bool                 // each transaction of its store is
	slow  bool                 // the last one was small and took long
	last  time.Duration        // what the last one took
}

func newTurns(idle func() time.Duration, batch int, costly bool) *turns {
	t := &turns{idle: idle, whole: int64(batch), short: idle != nil && !costly, dear: costly}
	if t.short {
		t.whole = min(t.whole, maxYielding)
	}
	t.size.Store(t.whole)
	if t.short && idle() < recently {
		t.size.Store(minBatch)
	}
	return t
}

// limit is how many events a batch may have.
func (t *turns) limit() int { return int(t.size.Load()) }

// took notes how long a batch took.
func (t *turns) took(events int, took time.Duration) {
	t.last = took
	if !t.short {
		return
	}
	size := t.whole
	if t.idle() < recently {
		size = min(size, max(minBatch, int64(events)*int64(shortBatch)/int64(took+1)))
	}
	t.size.Store(size)
}

// relief is how long the store is left alone after a transaction of so many events, of
// which so many are pending.
func (t *turns) relief(events int, pending uint64, took time.Duration) time.Duration {
	before := t.slow
	t.slow = t.dear && int64(events) <= t.whole/smallShare && pending < uint64(t.whole) && took >= burdened
	if !before || !t.slow {
		return 0
	}
	return min(burdenedRatio*took, maxRelief)
}

// wait waits for others before a batch.
func (t *turns) wait(ctx context.Context, stop <-chan struct{}) {
	if t.idle == nil {
		return
	}
	pause(ctx, stop, max(minYield, yieldRatio*t.last), t.idle)
	if t.short && t.idle() < recently {
		rest(ctx, stop, min(restRatio*t.last, maxRest))
	}
}

// rest waits for as long.
func rest(ctx context.Context, stop <-chan struct{}, long time.Duration) {
	if long == 0 {
		return
	}
	select {
	case <-time.After(long):
	case <-ctx.Done():
	case <-stop:
	}
}

// pause waits while others work, but no longer than long.
func pause(ctx context.Context, stop <-chan struct{}, long time.Duration, idle func() time.Duration) {
	if idle() > 0 {
		return
	}
	enough := time.After(long)
	ticker := time.NewTicker(yieldPoll)
	defer ticker.Stop()
	for idle() == 0 {
		select {
		case <-ticker.C:
		case <-enough:
			return
		case <-ctx.Done():
			return
		case <-stop:
			return
		}
	}
}
