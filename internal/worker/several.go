package worker

import (
	"context"
	"errors"

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

// Stop implements Worker.
func (s Several) Stop() error {
	var errs []error
	for _, w := range s {
		errs = append(errs, w.Stop())
	}
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
