package view

import (
	"context"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// lookAgain is how often a follower looks without an announcement, because announcements can be lost.
const lookAgain = 5 * time.Second

// Follow calls changed whenever the graph has applied something to a conversation after seq, at most once in every
// interval, until ctx ends. It also calls it when the conversation is deleted. All followers of a partition share one
// subscription, and each reads only the row of its conversation.
func (vs *Views) Follow(ctx context.Context, id events.ConversationID, seq uint64, every time.Duration, changed func()) error {
	progress, stop, err := vs.announcements.join(ctx, vs.Log, "graph", vs.Log.PartitionOf(id.Tenant, id.ID))
	if err != nil {
		return err
	}
	defer stop()
	for {
		// A signal that comes during a read or a pause stays in the channel, so the newest change is always seen.
		if now, err := vs.position(ctx, id); err == nil && now != seq {
			seq = now
			changed()
		}
		if !pause(ctx, every) {
			return ctx.Err()
		}
		again := time.NewTimer(lookAgain)
		select {
		case <-progress:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
	}
}

// pause reports whether it waited to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// position returns the sequence of the newest event that the graph has applied to a conversation, 0 if there is no
// such conversation.
func (vs *Views) position(ctx context.Context, id events.ConversationID) (uint64, error) {
	pins := vs.Pin()
	defer pins.Release()
	return pins.Position(ctx, id)
}

// announcements share one subscription to the progress of a partition among all who follow it.
type announcements struct {
	mu sync.Mutex
	of map[announced]*audience
}

type announced struct {
	projection string
	number     int
}

// audience is the followers that hear the announcements of a partition.
type audience struct {
	signals map[chan struct{}]bool // guarded by announcements

	ready chan struct{} // closed when the fields below are set
	stop  func()        // ends the subscription; nil if there is none
	err   error         // why there is none
}

// join returns a channel that receives after each announcement; several may count as one. The caller calls leave.
func (a *announcements) join(ctx context.Context, log *eventlog.Log, projection string, number int) (signal <-chan struct{}, leave func(), err error) {
	key, own := announced{projection, number}, make(chan struct{}, 1)
	a.mu.Lock()
	all := a.of[key]
	if all == nil {
		all = &audience{signals: map[chan struct{}]bool{}, ready: make(chan struct{})}
		if a.of == nil {
			a.of = map[announced]*audience{}
		}
		a.of[key] = all
		// Subscribe neither under the lock nor within the caller's context: if the server is down, that takes seconds,
		// and others share the subscription.
		go a.subscribe(context.WithoutCancel(ctx), log, key, all)
	}
	all.signals[own] = true
	a.mu.Unlock()
	leave = func() { a.leave(key, all, own) }
	select {
	case <-all.ready:
		err = all.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return own, leave, nil
}

// subscribe begins the subscription of an audience. If that fails, the next follower to join tries again.
func (a *announcements) subscribe(ctx context.Context, log *eventlog.Log, key announced, all *audience) {
	all.stop, all.err = log.WatchProgress(ctx, key.projection, key.number, func(uint64) { a.tell(all) })
	if all.err != nil {
		a.mu.Lock()
		if a.of[key] == all {
			delete(a.of, key)
		}
		a.mu.Unlock()
	}
	close(all.ready)
}

// leave takes a follower out of an audience. The last one to leave ends the subscription.
func (a *announcements) leave(key announced, all *audience, own chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(all.signals, own)
	if len(all.signals) > 0 || a.of[key] != all {
		return
	}
	delete(a.of, key)
	go func() {
		if <-all.ready; all.stop != nil {
			all.stop()
		}
	}()
}

func (a *announcements) tell(all *audience) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for signal := range all.signals {
		select {
		case signal <- struct{}{}:
		default: // a signal is already waiting
		}
	}
}
