package main

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"mneme.dev/mneme/internal/httpapi"
)

// watchEvery is how often an API is asked for the state of its store.
const watchEvery = 150 * time.Millisecond

// freshView is how long an API's answer about its store counts as current.
const freshView = 5 * time.Second

// view is the last answer of an API about its projections.
type view struct {
	asked time.Time // when it was asked
	upTo  uint64    // every partition of every projection has applied everything up to this sequence
	lag   uint64    // of all partitions
	head  uint64    // of the log
	parts int       // partitions of all projections
}

// watcher asks an API for the state of its store continually.
type watcher struct {
	api    *api
	halted func(reason string)

	mu   sync.Mutex
	last view
}

func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.look(ctx)
		pause(ctx, watchEvery)
	}
}

func (w *watcher) look(ctx context.Context) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var s httpapi.Status
	if err := w.api.get(ctx, "/v1/status", nil, &s); err != nil {
		return
	}
	v := view{asked: asked, upTo: math.MaxUint64, head: s.Stream.Head}
	for _, p := range s.Projections {
		if !slices.Contains(projections, p.Name) {
			continue
		}
		switch p.State {
		case "absent", "unavailable":
			return
		case "halted":
			w.halted(p.Error)
		}
		v.parts++
		v.lag += p.Lag
		if p.Lag > 0 {
			v.upTo = min(v.upTo, p.Checkpoint)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = v
}

func (w *watcher) view() view {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// parts returns how many partitions all projections of a store have.
var parts = len(projections) * partitions

// applied reports whether the API, asked after a given time, has reported that everything up to a
// sequence is applied.
func (w *watcher) applied(after time.Time, seq uint64) bool {
	v := w.view()
	return v.asked.After(after) && v.parts == parts && v.upTo >= seq
}
