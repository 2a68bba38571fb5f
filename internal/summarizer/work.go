package summarizer

import (
	"context"
	"errors"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary/llm"
)

// The ways of a conversation through the reactor:
//
//	queued ──ready──▶ busy with a worker ──work──▶ idle; or queued, for a retry or after a touch;
//	                                               or later, when it may be finished, and then queued
//	   any ──take───▶ busy with a request ─give──▶ queued
//
// If a busy conversation is touched or comes due, only busy[id] becomes true: work then queues
// it again, and give always does.

// ready takes as many due conversations as there are free workers and marks them busy.
func (r *Reactor) ready() (list []events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for id, ok := r.later.Take(now); ok; id, ok = r.later.Take(now) {
		r.again(id, now)
	}
	for r.working < r.Parallel {
		id, ok := r.queue.Take(now)
		if !ok {
			break
		}
		if _, busy := r.busy[id]; busy { // a request is working on it
			r.busy[id] = true
			continue
		}
		r.busy[id] = false
		r.working++
		list = append(list, id)
	}
	return list
}

// idle reports whether a worker is free, and when the next conversation is due; zero if
// none is queued.
func (r *Reactor) idle() (next time.Time, idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next = r.queue.Next()
	if later := r.later.Next(); next.IsZero() || !later.IsZero() && later.Before(next) {
		next = later
	}
	return next, r.working < r.Parallel
}

// take marks a conversation as busy for a request. It reports false if it is busy already.
func (r *Reactor) take(id events.ConversationID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, busy := r.busy[id]; busy {
		return false
	}
	r.busy[id] = false
	return true
}

// give ends the work that take began and queues the conversation, so that changes made
// during the work are seen.
func (r *Reactor) give(id events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, id)
	r.queue.Add(id, time.Now())
	r.awake()
}

// work does everything that is due in a conversation. After a failure it queues a retry.
func (r *Reactor) work(ctx context.Context, id events.ConversationID) {
	later, err := r.conversation(r.spend(ctx, id.Tenant), id)
	r.mu.Lock()
	defer r.mu.Unlock()
	touched := r.busy[id]
	delete(r.busy, id)
	r.working--
	r.awake()
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrNobody) {
		delete(r.trouble, id)
		delete(r.unstored, id)
		if touched {
			r.queue.Add(id, time.Now().Add(settle))
		}
		if !later.IsZero() {
			r.later.Put(id, later)
		}
		return
	}
	// The read model "graph" may have applied a deletion that the state of the summaries has not: the next try sees it.
	t := r.trouble[id].with(err)
	if !errors.Is(err, graph.ErrNotFound) {
		if !r.told() {
			r.slog.Warn("summarizing failed; conversation queued again", "tenant", id.Tenant, "conversation", id.ID, "error", err)
		}
		t.told = true
	}
	r.trouble[id] = t
	r.queue.Put(id, time.Now().Add(t.wait()))
}

// told reports whether the failure of a conversation that still waits was logged. The caller holds mu.
func (r *Reactor) told() bool {
	for _, t := range r.trouble {
		if t.told {
			return true
		}
	}
	return false
}

// trouble records why a conversation waits.
type trouble struct {
	since  time.Time
	silent time.Time // when the model that writes its summaries stopped answering; zero if it answered or was not called
	tries  int
	told   bool // it counts as logged: of conversations that wait at the same time, only the first is
	err    error
}

// silence is the error of an unavailable model that writes summaries, or of one that does not finish an analysis in time. A
// conversation waits for such a model until the deadline, then goes without it. For a condenser, and for an analysis while the
// model is away, it waits without a deadline.
type silence struct {
	error
	deadline time.Duration
}

func (e *silence) Unwrap() error { return e.error }

func (t trouble) with(err error) trouble {
	now := time.Now()
	if t.tries == 0 {
		t.since = now
	}
	if _, silent := errors.AsType[*silence](err); silent && t.silent.IsZero() {
		t.silent = now
	}
	t.tries++
	t.err = err
	return t
}

// Bounds of the wait after a failure.
const (
	minWait = time.Second
	maxWait = time.Minute
)

// wait returns the time to the next try. It doubles each time, or is what the model's
// server asked for, but it never goes past the deadline.
func (t trouble) wait() time.Duration {
	wait := maxWait
	if t.tries < 7 {
		wait = min(wait, minWait<<(t.tries-1))
	}
	if of, ok := errors.AsType[*llm.Error](t.err); ok && !of.NotBefore.IsZero() {
		if wait = min(time.Until(of.NotBefore), 10*maxWait); of.Class == llm.ClassQuota {
			wait = min(wait, maxWait) // the quota may be raised earlier
		}
	}
	if of, ok := errors.AsType[*silence](t.err); ok {
		wait = min(wait, time.Until(t.silent.Add(of.deadline)))
	}
	return max(minWait, wait)
}

// silentFor returns how long a conversation has waited for its model.
func (r *Reactor) silentFor(id events.ConversationID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.trouble[id]; !t.silent.IsZero() {
		return time.Since(t.silent)
	}
	return 0
}

// answered records that a conversation's model has answered.
func (r *Reactor) answered(id events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.trouble[id]; ok {
		t.silent = time.Time{}
		r.trouble[id] = t
	}
}
