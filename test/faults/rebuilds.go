package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/rebuild"
)

// Rebuilt is a rebuild of a read model, and how it ended.
type Rebuilt struct {
	Model  string        `json:"model"`
	End    string        `json:"end"`
	Took   time.Duration `json:"took"`
	Events int           `json:"events"` // events acknowledged by its end
}

// Ends of a rebuild.
const (
	endServes    = "serves"
	endCanceled  = "canceled"
	endOvertaken = "overtaken by a restored copy" // during which a restored copy made another generation serve
)

// rebuilds holds the running and the ended rebuilds.
type rebuilds struct {
	mu       sync.Mutex
	underWay map[string]bool // by model
	canceled map[string]bool // by model: requested by someone
	done     []Rebuilt
	all      sync.WaitGroup
}

// enter records that a rebuild of the model is being followed, unless one already is.
func (r *rebuilds) enter(model string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.underWay[model] {
		return false
	}
	if r.underWay == nil {
		r.underWay, r.canceled = map[string]bool{}, map[string]bool{}
	}
	r.underWay[model], r.canceled[model] = true, false
	return true
}

// cancel records that the rebuild of a model may be canceled.
func (r *rebuilds) cancel(model string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.canceled[model] = true
}

func (r *rebuilds) wasCanceled(model string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.canceled[model]
}

func (r *rebuilds) leave(b Rebuilt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.underWay, b.Model)
	r.done = append(r.done, b)
}

func (r *rebuilds) list() []Rebuilt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.done)
}

// insist sends a request until it gets an answer other than that the store or the log is
// unavailable.
func insist(ctx context.Context, a *api, method, path string, body []byte) (err error) {
	for ctx.Err() == nil {
		var into json.RawMessage
		err = a.call(ctx, method, path, nil, "application/json", body, &into)
		var answer *answerError
		if err == nil || errors.As(err, &answer) && answer.status != http.StatusServiceUnavailable && answer.status != http.StatusGatewayTimeout {
			return err
		}
		pause(ctx, 200*time.Millisecond)
	}
	return err
}

// answered reports whether an error is an answer with a status.
func answered(err error, status int) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.status == status
}

// rebuild requests a rebuild, and cancels it if that is the fault. The rebuild continues through
// later faults; awaitRebuilds waits for its end. The request is refused while another rebuild of
// the model runs.
func (c *campaign) rebuild(ctx context.Context, f Fault) error {
	projection, store, _ := strings.Cut(f.Target, " in ")
	a := c.system.apis["context-api-"+store]
	followed := c.rebuilds.enter(f.Target)
	began, steady := time.Now(), func() {}
	if followed {
		steady = c.readers[a.name].unsettle()
	}
	err := insist(ctx, a, http.MethodPost, "/v1/rebuilds", fmt.Appendf(nil, `{"projection":%q}`, projection))
	// If the answer to a request was lost, the repeat is told that the rebuild is already running.
	if err != nil && !answered(err, http.StatusConflict) {
		return err
	}
	if f.Kind == Cancel {
		pause(ctx, f.Length)
		c.rebuilds.cancel(f.Target)
		err := insist(ctx, a, http.MethodDelete, "/v1/rebuilds/"+projection, nil)
		if err != nil && !answered(err, http.StatusConflict) { // it is too late
			return err
		}
	}
	if followed {
		c.rebuilds.all.Go(func() {
			defer steady()
			b := Rebuilt{Model: f.Target, End: c.follow(ctx, a, projection, f)}
			b.Took = time.Since(began)
			b.Events, _ = c.ledger.acknowledged()
			c.rebuilds.leave(b)
		})
	}
	return nil
}

// follow waits for the end of a rebuild and records the result.
func (c *campaign) follow(ctx context.Context, a *api, projection string, f Fault) string {
	for ; ctx.Err() == nil; pause(ctx, 500*time.Millisecond) {
		var list struct{ Rebuilds []httpapi.Rebuild }
		if a.get(ctx, "/v1/rebuilds", nil, &list) != nil {
			continue
		}
		i := slices.IndexFunc(list.Rebuilds, func(r httpapi.Rebuild) bool { return r.Projection == projection })
		if i < 0 {
			if !c.rebuilds.wasCanceled(f.Target) {
				c.violated("fault %s: the rebuild has vanished", f)
			}
			return endCanceled
		}
		switch r := list.Rebuilds[i]; r.State {
		case string(rebuild.Serving):
			return endServes
		case string(rebuild.Failed):
			if strings.HasPrefix(r.Error, "it began while generation") && strings.HasSuffix(f.Target, targetSQLite) {
				return endOvertaken
			}
			c.violated("fault %s: the rebuild failed: %s", f, r.Error)
			return "failed"
		}
	}
	return "unknown"
}

// rebuiltWithin is how long rebuilds may run after everything is healed.
const rebuiltWithin = 15 * time.Minute

// awaitRebuilds waits for the end of all of them.
func (c *campaign) awaitRebuilds(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.rebuilds.all.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(rebuiltWithin):
		c.violated("rebuilds still run %s after everything was healed", rebuiltWithin)
	}
	return nil
}
