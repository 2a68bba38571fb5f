package importer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Patience repeats requests to a server that can't answer at the moment: for a quarter of an hour, first after a second and then
// after longer waits, or when the server says. If the server still can't answer then, or says that it will take longer,
// the error is its last one.
type Patience struct {
	// Busy reports whether an error means that the server can't answer at the moment, and when to try again. If that is
	// not known (0), Patience repeats the request only if this server has answered before: otherwise it is probably the
	// wrong one.
	Busy func(error) (after time.Duration, busy bool)
	// Waiting is called before each wait.
	Waiting func(err error, wait time.Duration)

	answered, waited atomic.Bool
}

// Waited reports whether a request failed and was repeated. If it was a publish, the log may hold events that it did not confirm.
func (p *Patience) Waited() bool { return p.waited.Load() }

const (
	firstWait   = time.Second
	longestWait = 20 * time.Second
	maxPatience = 15 * time.Minute // longer than a database takes to restart, or an update of a cluster
)

// Ask calls ask until it succeeds, or fails for another reason than a busy server.
func (p *Patience) Ask(ctx context.Context, ask func() error) (err error) {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = firstWait, longestWait
	_, ended := backoff.Retry(ctx, func() (struct{}, error) {
		if err = ask(); err == nil {
			p.answered.Store(true)
			return struct{}{}, nil
		}
		after, busy := p.Busy(err)
		switch {
		case busy && after > 0:
			return struct{}{}, &backoff.RetryAfterError{Duration: after}
		case busy && p.answered.Load():
			return struct{}{}, err
		}
		return struct{}{}, backoff.Permanent(err)
	}, backoff.WithBackOff(waits), backoff.WithMaxElapsedTime(maxPatience), backoff.WithNotify(func(_ error, wait time.Duration) {
		p.waited.Store(true)
		p.Waiting(err, wait)
	}))
	if ended != nil && ctx.Err() != nil { // while it waited
		return context.Cause(ctx)
	}
	return err
}

// PatientLog publishes again what a log can't take at the moment. That is safe: an event that the log took without
// confirming it is then a duplicate.
type PatientLog struct {
	Log
	*Patience
}

// Publish implements [Log].
func (l PatientLog) Publish(ctx context.Context, tenant string, e events.Event) (ack eventlog.Ack, err error) {
	err = l.Ask(ctx, func() (err error) {
		ack, err = l.Log.Publish(ctx, tenant, e)
		return err
	})
	return ack, err
}

// PublishAll implements [Log].
func (l PatientLog) PublishAll(ctx context.Context, tenant string, list []events.Event) ([]eventlog.Ack, error) {
	acks := make([]eventlog.Ack, 0, len(list))
	err := l.Ask(ctx, func() error {
		took, err := l.Log.PublishAll(ctx, tenant, list[len(acks):])
		acks = append(acks, took...)
		return err
	})
	return acks, err
}

// Patiently returns an [Options.Lookup] that is repeated while the server is busy.
func (p *Patience) Patiently(lookup func(context.Context, []events.Event) ([]Known, error)) func(context.Context, []events.Event) ([]Known, error) {
	return func(ctx context.Context, list []events.Event) (known []Known, err error) {
		err = p.Ask(ctx, func() (err error) {
			known, err = lookup(ctx, list)
			return err
		})
		return known, err
	}
}
