package llm

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
)

// timing is how long what waits does. Tests make it short.
type timing struct {
	tries    int           // of one call at most
	first    time.Duration // wait before the second try; it doubles, give or take a half
	longest  time.Duration // longer than this a call does not wait for its next try
	failures uint32        // one after the other, which open the breaker
	open     time.Duration // until the open breaker lets one call through
}

var defaultTiming = timing{tries: 3, first: time.Second, longest: 20 * time.Second, failures: 5, open: 30 * time.Second}

// DefaultConcurrency is how many calls an endpoint is given at the same time.
const DefaultConcurrency = 4

// Endpoints are what the writers of a process share: those of the same provider, URL,
// key and model have one breaker, one limit of calls at a time, and wait together when
// the server asks for it. The zero value is ready. It is safe for concurrent use.
type Endpoints struct {
	// Concurrency is how many calls one endpoint is given at the same time; default
	// [DefaultConcurrency]. Others wait. Set it before the first writer is made.
	Concurrency int

	timing  timing
	mu      sync.Mutex
	known   map[identity]*endpoint
	writers []*Writer
}

type identity struct{ provider, url, key, model string }

// of is the endpoint that a profile names.
func (s *Endpoints) of(p *Profile) *endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := identity{p.Provider, p.URL, p.Key, p.Model}
	if s.known == nil {
		s.known = map[identity]*endpoint{}
	}
	if s.known[id] == nil {
		if s.timing == (timing{}) {
			s.timing = defaultTiming
		}
		if s.Concurrency <= 0 {
			s.Concurrency = DefaultConcurrency
		}
		s.known[id] = newEndpoint(s.timing, s.Concurrency)
	}
	return s.known[id]
}

// endpoint is a server that may be slow, down or busy.
type endpoint struct {
	timing  timing
	slots   *semaphore.Weighted
	breaker *gobreaker.CircuitBreaker[answer]
	denied  atomic.Bool // the call that ends now has failed for good: open at once

	mu     sync.Mutex
	pause  *Error    // the server wants not to be asked before its NotBefore
	opened time.Time // of the breaker
	last   string    // reason of the last failure
}

func newEndpoint(t timing, concurrency int) *endpoint {
	e := &endpoint{timing: t, slots: semaphore.NewWeighted(int64(concurrency))}
	e.breaker = gobreaker.NewCircuitBreaker[answer](gobreaker.Settings{
		Timeout:     t.open,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= t.failures || e.denied.Load() },
		IsSuccessful: func(err error) bool {
			return err == nil || classOf(err).unusable()
		},
		IsExcluded: func(err error) bool {
			return classOf(err) == ClassCanceled || classOf(err) == ClassCapped
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				e.denied.Store(false)
				e.mu.Lock()
				defer e.mu.Unlock()
				e.opened = time.Now()
			}
		},
	})
	return e
}

// do makes one call when there is room for it, unless it is known to fail.
func (e *endpoint) do(ctx context.Context, call func() (answer, *Error)) (answer, *Error) {
	if ctx.Err() != nil || e.slots.Acquire(ctx, 1) != nil {
		return answer{}, ended(ctx)
	}
	defer e.slots.Release(1)
	if err := e.paused(); err != nil {
		return answer{}, err
	}
	got, err := e.breaker.Execute(func() (answer, error) {
		got, err := call()
		if err != nil {
			e.note(err)
			return got, err
		}
		return got, nil
	})
	switch {
	case err == nil:
		return got, nil
	case errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests):
		return got, e.rejected()
	}
	failed, _ := errors.AsType[*Error](err)
	return got, failed
}

// note remembers what the next calls have to know.
func (e *endpoint) note(err *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err.Class == ClassDenied:
		e.denied.Store(true)
		e.last = err.Reason
	case err.Class.passing():
		e.last = err.Reason
		if !err.NotBefore.IsZero() {
			e.pause = err
		}
	}
}

// paused is the error of the call in which the server asked not to be asked, until then.
func (e *endpoint) paused() *Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pause == nil {
		return nil
	}
	if !time.Now().Before(e.pause.NotBefore) {
		e.pause = nil
		return nil
	}
	return &Error{Class: e.pause.Class, Reason: e.pause.Reason, NotBefore: e.pause.NotBefore}
}

// rejected is the error of a call that the breaker did not let through.
func (e *endpoint) rejected() *Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := &Error{Class: ClassBreaker, Reason: "not asked, for it has failed: " + e.last}
	if until := e.opened.Add(e.timing.open); time.Now().Before(until) { // otherwise one call is trying
		err.NotBefore = until
	}
	return err
}

// state is that of the breaker: closed (all is well), half-open or open.
func (e *endpoint) state() string { return e.breaker.State().String() }
