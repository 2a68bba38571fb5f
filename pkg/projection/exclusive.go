package projection

import (
	"context"
	"errors"
	"fmt"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// Exclusively runs work while holding a lease with this name. It returns false without
// running it if another process holds the lease. The context of work ends if the lease is
// lost; the error then says so, because those of the work only say that they were canceled.
func (l *Leases) Exclusively(ctx context.Context, name string, work func(ctx context.Context) error) (bool, error) {
	bucket, ttl, err := natsdeploy.ApplyLeases(ctx, l.js, l.ttl)
	if err != nil {
		return false, err
	}
	held, err := take(bucket, ttl, "exclusive."+token(name), func() []byte { return []byte(l.process) })
	if errors.Is(err, errTaken) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lease for %s: %w", name, err)
	}
	defer held.release()
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(held.valid, func() { cancel(context.Cause(held.valid)) })()
	err = work(working)
	if err != nil && held.valid.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("lease for %s: %w, so the work was stopped: %w", name, context.Cause(held.valid), err)
	}
	return true, err
}
