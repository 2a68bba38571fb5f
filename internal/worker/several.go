package worker

import (
	"context"
	"errors"
	"sync"

	"mneme.dev/mneme/pkg/projection"
)

// Several are workers that one program runs.
type Several []Worker

// Start implements Worker.
func (s Several) Start() {
	for _, w := range s {
		w.Start()
	}
}

// Stop implements Worker. It stops all at the same time: a store that does not answer keeps each of them for 10 s, and
// whoever runs the program may kill it after 30.
func (s Several) Stop() error { return s.each(Worker.Stop) }

// each calls one method of all workers at the same time.
func (s Several) each(call func(Worker) error) error {
	errs := make([]error, len(s))
	var all sync.WaitGroup
	for i, w := range s {
		all.Go(func() { errs[i] = call(w) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Status implements Worker.
func (s Several) Status() (list []projection.Status) {
	for _, w := range s {
		list = append(list, w.Status()...)
	}
	return list
}

// Ready implements Worker. It asks all at the same time, because a store that hangs is silent for seconds.
func (s Several) Ready(ctx context.Context) error {
	return s.each(func(w Worker) error { return w.Ready(ctx) })
}
