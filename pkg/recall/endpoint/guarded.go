package endpoint

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"mneme.dev/mneme/pkg/internal/modelapi"
)

// guarded asks an endpoint for a T, and stops asking for a while after five failures in a row. S counts what it did.
type guarded[T, S any] struct {
	api     modelapi.Endpoint
	breaker *gobreaker.CircuitBreaker[T]

	mu     sync.Mutex
	stats  S
	reason error // of the last failure
}

func newGuarded[T, S any](address, key string, maxBody int) (*guarded[T, S], error) {
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the http or https URL of an API", address)
	}
	g := &guarded[T, S]{api: modelapi.Endpoint{URL: address, Header: http.Header{}, MaxBody: maxBody}}
	if key != "" {
		g.api.Header.Set("Authorization", "Bearer "+key)
	}
	g.breaker = gobreaker.NewCircuitBreaker[T](gobreaker.Settings{
		Timeout:      30 * time.Second,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 },
		IsSuccessful: func(err error) bool { return err == nil || refusal(err) },
		IsExcluded:   gaveUp,
	})
	return g, nil
}

// Stats returns the current counters.
func (g *guarded[T, S]) Stats() S {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}

func (g *guarded[T, S]) count(change func(*S)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.stats)
}

// call asks, unless the breaker answers. It counts what ask did with asked, also whether that was a failure.
func (g *guarded[T, S]) call(ask func() (T, error), asked func(s *S, failed bool)) (T, error) {
	answer, err := g.breaker.Execute(func() (T, error) {
		answer, err := ask()
		failed := err != nil && !gaveUp(err)
		g.count(func(s *S) {
			if asked(s, failed); failed {
				g.reason = err
			}
		})
		return answer, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		g.mu.Lock()
		defer g.mu.Unlock()
		return answer, fmt.Errorf("not asked, because it has failed: %w", g.reason)
	}
	return answer, err
}
