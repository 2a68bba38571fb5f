package llm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
)

// timing holds the durations of waits and time-outs. Tests shorten them.
type timing struct {
	tries    int           // of one call at most
	first    time.Duration // wait before the second try; it doubles, plus or minus half
	longest  time.Duration // a call does not wait longer than this for its next try
	failures uint32        // consecutive failures that open the breaker
	open     time.Duration // until the open breaker lets one call through
}

var defaultTiming = timing{tries: 3, first: time.Second, longest: 20 * time.Second, failures: 5, open: 30 * time.Second}

// DefaultConcurrency is how many calls an endpoint gets at the same time.
const DefaultConcurrency = 4

// Endpoints holds what the writers of a process share: writers with the same provider, URL, key and
// model have one breaker and one limit of concurrent calls, and wait together when the server asks
// for it. The zero value is ready to use. It is safe for concurrent use.
type Endpoints struct {
	// Concurrency is how many calls one endpoint gets at the same time; default
	// [DefaultConcurrency]. Further calls wait. Set it before making the first writer.
	Concurrency int

	timing  timing
	mu      sync.Mutex
	known   map[identity]*endpoint
	writers []*Writer
}

type identity struct{ provider, url, key, model string }

// of returns the endpoint that a profile names.
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

	mu     sync.Mutex
	pause  *Error    // the server asked for no calls before its NotBefore
	opened time.Time // of the breaker
	last   string    // reason of the last failure
}

func newEndpoint(t timing, concurrency int) *endpoint {
	e := &endpoint{timing: t, slots: semaphore.NewWeighted(int64(concurrency))}
	denied := false // of the call that the breaker looks at; it asks these functions one after the other, under its lock
	e.breaker = gobreaker.NewCircuitBreaker[answer](gobreaker.Settings{
		Timeout:     t.open,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= t.failures || denied },
		IsSuccessful: func(err error) bool {
			denied = classOf(err) == ClassDenied
			return err == nil || classOf(err).unusable()
		},
		IsExcluded: func(err error) bool {
			return slices.Contains([]Class{ClassCanceled, ClassCapped, ClassQuota}, classOf(err))
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.opened = time.Now()
			}
		},
	})
	return e
}

// do makes one call when there is room for it, unless the call is bound to fail.
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

// note records what the next calls need to know.
func (e *endpoint) note(err *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err.Class == ClassDenied:
		e.last = err.Reason
	case err.Class.passing():
		e.last = err.Reason
		if !err.NotBefore.IsZero() && (e.pause == nil || err.NotBefore.After(e.pause.NotBefore)) {
			e.pause = err
		}
	}
}

// paused returns the error that asked us to back off, until that time has passed.
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

// rejected returns the error of a call that the breaker stopped.
func (e *endpoint) rejected() *Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := &Error{Class: ClassBreaker, Reason: "not asked, because it has failed: " + e.last}
	if until := e.opened.Add(e.timing.open); time.Now().Before(until) { // otherwise another call is the test call
		err.NotBefore = until
	}
	return err
}

// state returns the breaker's state: closed (all is well), half-open or open.
func (e *endpoint) state() string { return e.breaker.State().String() }
