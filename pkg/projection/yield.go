package projection

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// Before a batch, a yielding projector waits while others work: at most this long, or this many
// times as long as its last batch took.
const (
	minYield   = 200 * time.Millisecond
	yieldRatio = 4
)

// Projectors that worked a moment ago will soon work again. So a yielding projector keeps its batches short and rests
// after each. The other projectors then find a free processor, and a NATS server that has few events left to send to
// this one. When the others are idle, batches have full size. In a store with [CostlyTransactions] they always have,
// because the others do not wait for a transaction there.
const (
	recently     = 250 * time.Millisecond
	shortBatch   = 2 * time.Millisecond // how long one takes, approximately
	minBatch     = 8                    // events
	maxYielding  = 1000                 // events of a full one
	restRatio    = 8
	maxRest      = 100 * time.Millisecond
	yieldingRead = 50 // events that the log may send ahead
)

// For a store with [CostlyTransactions], several slow small transactions in a row mean overload.
// The projector then rests after each: more events share the next one, and fewer transactions run
// at once. It never rests while the store responds normally or while it has whole batches to catch
// up with.
const (
	smallShare    = 4 // of a full batch
	burdened      = 100 * time.Millisecond
	burdenedRatio = 4
	maxRelief     = time.Second
)

// yieldPoll is how often it checks whether the others are done.
const yieldPoll = time.Millisecond

// Yield makes a projector wait before each batch while others work, for a bounded time, so it slows
// down but still finishes. idle returns how long they have had nothing to do, 0 while they work.
// Near the end of the log, where no batch would be full, it stops waiting, because it could not
// keep up with the others. Events that the log holds at the start count as history, wherever the
// projector continues, and are not traced.
func Yield(idle func() time.Duration) Option {
	return func(o *options) { o.idle = idle }
}

// Forever is the idle time of a projector that has never worked.
const Forever = time.Duration(math.MaxInt64)

// Idle returns how long the projector has had nothing to do: 0 while it applies a batch, lags or
// retries. A halted projector is idle.
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

// join begins to take the events after a sequence. A projector that yields reads by itself, with
// the limits of its turns.
func (p *Projector[U]) join(ctx context.Context, partition int, after uint64, turn *turns) (*intake, error) {
	if p.idle == nil || turn.over {
		return p.feed.join(ctx, partition, after)
	}
	alone := NewFeed(p.log)
	alone.serve(p.projection.Types(), p.projection.deriver())
	return alone.lanes[partition].join(ctx, after, yieldingRead, func() int { return 2 * turn.limit() })
}

// mayShare reports whether a projector that yielded can use the feed from now on, because it is live
// and has nobody to yield to.
func (p *Projector[U]) mayShare(turn *turns, live bool) bool {
	if live && !turn.over && p.idle != nil && p.idle() == Forever {
		turn.over = true
		return true
	}
	return false
}

// rejoin gives a projector another reader. That reader may have begun after the old one lost its
// place unnoticed, so rejoin first checks that the log still holds what was applied.
func (p *Projector[U]) rejoin(ctx context.Context, in *intake, cp Checkpoint, turn *turns) (*intake, error) {
	in.leave()
	if err := p.confirm(ctx, cp); err != nil {
		return in, err
	}
	next, err := p.join(ctx, cp.Partition, cp.Seq, turn)
	if err != nil {
		return in, err
	}
	return next, nil
}

// turns decides when a projector may continue, and with how many events.
type turns struct {
	idle  func() time.Duration // nil: it yields to nobody
	size  atomic.Int64         // of a batch, in events
	whole int64                // of a full batch
	short bool                 // keep batches short while others work
	dear  bool                 // the store has [CostlyTransactions]
	slow  bool                 // the last one was small and slow
	over  bool                 // it no longer reads by itself
	last  time.Duration        // how long the last one took
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

// limit returns how many events a batch may have.
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

// relief returns how long to leave the store alone after a transaction of this many events with
// this many pending.
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

// rest waits for this long, or until ctx ends or stop, which may be nil, is closed.
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
