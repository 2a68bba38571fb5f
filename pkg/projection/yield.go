package projection

import (
	"context"
	"time"
)

// How long a projector that yields waits before a batch at most: a while, or so many
// times as long as its last batch took. So it gets a fifth of the time at least.
const (
	minYield   = 200 * time.Millisecond
	yieldRatio = 4
)

// yieldPoll is how often it looks whether the others are done.
const yieldPoll = time.Millisecond

// Yield makes a projector wait before each batch while busy says that others work, for
// a bounded time: it is slowed down, but not kept from ending. Near the end of the log,
// where no batch would be full, it waits no more: it could not keep up with the others.
// What the log holds when it begins is history, wherever it goes on from, and is not
// traced.
func Yield(busy func() bool) Option {
	return func(o *options) { o.busy = busy }
}

// Busy tells whether the projector works or should: it applies a batch, or lags, or
// tries again. One that is halted does nothing.
func (p *Projector[U]) Busy() bool {
	if p.applying.Load() > 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.statuses {
		if s.State != StateIdle && s.State != StateHalted && (s.Lag > 0 || s.Error != "") {
			return true
		}
	}
	return false
}

// yield waits for others before a batch; took is how long the one before it took.
func (p *Projector[U]) yield(ctx context.Context, stop <-chan struct{}, took time.Duration) {
	if p.busy == nil || !p.busy() {
		return
	}
	enough := time.After(max(minYield, yieldRatio*took))
	ticker := time.NewTicker(yieldPoll)
	defer ticker.Stop()
	for p.busy() {
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
