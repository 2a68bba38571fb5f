package view

import (
	"context"
	"fmt"
	"sync"
	"time"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// pollEvery is how often a watcher reads a checkpoint if no announcement arrives.
const pollEvery = 50 * time.Millisecond

// errLate means that a wait took too long. It is a context.DeadlineExceeded.
var errLate = fmt.Errorf("not applied in time: %w", context.DeadlineExceeded)

// partition names a partition of one generation of a read model.
type partition struct {
	projection string
	generation int
	number     int
}

// watchers wake those who wait for read models. There is one for each partition for which
// somebody waits, so many waiters cost a store as much as one.
type watchers struct {
	mu      sync.Mutex
	running map[partition]*watcher
}

// watcher reads the checkpoint of one partition, at most one read at a time, until nobody waits
// for it. It reads through the pin of the first waiter, which it shares.
type watcher struct {
	of     partition
	model  Model
	cancel context.CancelFunc

	// The mutex of watchers guards these.
	seq     uint64        // the checkpoint when it was last read
	polls   int           // number of reads that have begun
	hurry   chan struct{} // asks for a read at once
	waiters map[*waiter]bool
}

// waiter waits until goal is applied.
type waiter struct {
	goal   uint64
	answer chan error    // nil once goal is applied
	from   int           // the first poll that began after the waiter joined
	read   chan struct{} // closed after that poll
}

// await waits until a partition has applied goal. It returns [errLate] at the given time, but
// not before a read of the checkpoint that began after the call. An error of the store ends the wait at once.
func (ws *watchers) await(ctx context.Context, log *eventlog.Log, until time.Time, m Model, number int, goal uint64) error {
	own := &waiter{goal: goal, answer: make(chan error, 1), read: make(chan struct{})}
	w, known := ws.join(log, partition{m.Name, m.Generation, number}, m, own)
	if known {
		return nil
	}
	defer ws.leave(w, own)
	if time.Until(until) < pollEvery {
		select {
		case w.hurry <- struct{}{}:
		default: // somebody else has asked
		}
	}
	select {
	case err := <-own.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-own.read:
	}
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	select {
	case err := <-own.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
	}
	select {
	case err := <-own.answer: // it came at the same time
		return err
	default:
		return errLate
	}
}

// join adds a waiter, and starts the partition's watcher if there is none. If the watcher knows
// already that the partition has applied the goal, there is nothing to wait for.
func (ws *watchers) join(log *eventlog.Log, p partition, m Model, own *waiter) (w *watcher, known bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w = ws.running[p]
	if w == nil {
		ctx, cancel := context.WithCancel(context.Background())
		w = &watcher{of: p, model: m, cancel: cancel, hurry: make(chan struct{}, 1), waiters: map[*waiter]bool{}}
		ws.running[p] = w
		m.hold.retain() // the waiter holds it too, so it cannot fail
		go ws.watch(ctx, log, w)
	}
	if w.seq >= own.goal {
		return w, true
	}
	own.from = w.polls + 1
	w.waiters[own] = true
	return w, false
}

// leave removes a waiter. The last one stops the watcher.
func (ws *watchers) leave(w *watcher, own *waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(w.waiters, own)
	if len(w.waiters) == 0 {
		ws.end(w)
	}
}

// end stops a watcher. The next waiter starts another one.
func (ws *watchers) end(w *watcher) {
	w.cancel()
	if ws.running[w.of] == w {
		delete(ws.running, w.of)
	}
}

// watch reads a checkpoint now, at each announcement and every pollEvery, until nobody waits.
func (ws *watchers) watch(ctx context.Context, log *eventlog.Log, w *watcher) {
	defer w.model.hold.drop()
	if ws.poll(ctx, w) {
		return
	}
	announced := make(chan struct{}, 1)
	stop, err := log.WatchProgress(ctx, w.of.projection, w.of.number, func(uint64) {
		select {
		case announced <- struct{}{}:
		default: // one is enough
		}
	})
	if err != nil {
		ws.tell(w, 0, err)
		return
	}
	defer stop()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !ws.poll(ctx, w) {
		select {
		case <-announced:
		case <-w.hurry:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// poll reads the checkpoint once and reports whether nobody waits any longer.
func (ws *watchers) poll(ctx context.Context, w *watcher) (idle bool) {
	ws.mu.Lock()
	w.polls++
	ws.mu.Unlock()
	cp, err := projection.CheckpointOf(ctx, w.model.Store, w.of.number)
	return ws.tell(w, cp.Seq, err)
}

// tell answers the waiters whose sequence is applied, or all of them with an error, and reports
// whether nobody waits any longer.
func (ws *watchers) tell(w *watcher, seq uint64, err error) (idle bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.seq = max(w.seq, seq)
	for waiter := range w.waiters {
		switch {
		case err != nil || w.seq >= waiter.goal:
			waiter.answer <- err
			delete(w.waiters, waiter)
		case waiter.from != 0 && w.polls >= waiter.from:
			waiter.from = 0
			close(waiter.read)
		}
	}
	if len(w.waiters) > 0 {
		return false
	}
	ws.end(w)
	return true
}

// Applied reports whether a read model has applied a sequence of a partition now. Sequence 0 is
// always applied.
func Applied(ctx context.Context, store projection.ReadStore, number int, seq uint64) (bool, error) {
	if seq == 0 {
		return true, nil
	}
	cp, err := projection.CheckpointOf(ctx, store, number)
	return err == nil && cp.Seq >= seq, err
}
