package summarizer

import (
	"context"
	"errors"
	"time"

	"mneme/events"
	"mneme/pkg/summary"
	"mneme/pkg/summary/llm"
)

// ready takes as many conversations as can be worked on now.
func (r *Reactor) ready() (list []events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for now := time.Now(); r.working < r.Parallel; {
		id, ok := r.queue.take(now)
		if !ok {
			break
		}
		if _, busy := r.busy[id]; busy { // with a request
			r.busy[id] = true
			continue
		}
		r.busy[id] = false
		r.working++
		list = append(list, id)
	}
	return list
}

// idle tells whether there is a worker without work, and when the next conversation can
// be worked on; zero if none waits.
func (r *Reactor) idle() (next time.Time, idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue.next(), r.working < r.Parallel
}

// take marks a conversation as worked on, unless it is.
func (r *Reactor) take(id events.ConversationID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, busy := r.busy[id]; busy {
		return false
	}
	r.busy[id] = false
	return true
}

// give ends what take began, and has the conversation looked at again.
func (r *Reactor) give(id events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, id)
	r.queue.add(id, time.Now())
	r.awake()
}

// work does what there is to do in a conversation, and notes when to try again.
func (r *Reactor) work(ctx context.Context, id events.ConversationID) {
	err := r.conversation(ctx, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	touched := r.busy[id]
	delete(r.busy, id)
	r.working--
	r.awake()
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrNobody) {
		delete(r.trouble, id)
		if touched {
			r.queue.add(id, time.Now().Add(settle))
		}
		return
	}
	if len(r.trouble) == 0 {
		r.slog.Warn("conversations wait to be summarised, they are tried again", "tenant", id.Tenant, "conversation", id.ID, "error", err)
	}
	t := r.trouble[id].with(err)
	r.trouble[id] = t
	r.queue.put(id, time.Now().Add(t.wait()))
}

// trouble is why a conversation waits.
type trouble struct {
	since  time.Time
	silent time.Time // since when its model does not answer; zero if it was not asked
	tries  int
	err    error
}

// silence is that of a model which is not available, and for which a conversation waits no
// longer than the deadline.
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
	if t.silent.IsZero() && errors.Is(err, summary.ErrUnavailable) {
		t.silent = now
	}
	t.tries++
	t.err = err
	return t
}

// How long a conversation waits that could not be worked on.
const (
	minWait = time.Second
	maxWait = time.Minute
)

// wait is how long the conversation waits for its next try: twice as long each time, or as
// long as its model asks for, but not beyond the deadline.
func (t trouble) wait() time.Duration {
	wait := maxWait
	if t.tries < 7 {
		wait = min(wait, minWait<<(t.tries-1))
	}
	if of, ok := errors.AsType[*llm.Error](t.err); ok && !of.NotBefore.IsZero() {
		wait = min(time.Until(of.NotBefore), 10*maxWait)
	}
	if of, ok := errors.AsType[*silence](t.err); ok {
		wait = min(wait, time.Until(t.silent.Add(of.deadline)))
	}
	return max(minWait, wait)
}

// silentFor is how long a conversation has waited for its model.
func (r *Reactor) silentFor(id events.ConversationID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.trouble[id]; !t.silent.IsZero() {
		return time.Since(t.silent)
	}
	return 0
}

// answered says that the model of a conversation has answered.
func (r *Reactor) answered(id events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.trouble[id]; ok {
		t.silent = time.Time{}
		r.trouble[id] = t
	}
}
