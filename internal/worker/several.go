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

// Stop implements Worker. All stop at the same time: a store that does not answer keeps each of them for 10 s, and whoever
// runs the program may kill it after 30.
func (s Several) Stop() error {
	errs := make([]error, len(s))
	var stopping sync.WaitGroup
	for i, w := range s {
		stopping.Go(func() { errs[i] = w.Stop() })
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// Status implements Worker.
func (s Several) Status() (list []projection.Status) {
	for _, w := range s {
		list = append(list, w.Status()...)
	}
	return list
}

// Ready implements Worker.
func (s Several) Ready(ctx context.Context) error {
	var errs []error
	for _, w := range s {
		errs = append(errs, w.Ready(ctx))
	}
	return errors.Join(errs...)
}
