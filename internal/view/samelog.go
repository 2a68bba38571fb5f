package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

const (
	// sameLogFor is how long the result of a comparison with the log stays valid. It is
	// short because the log can be replaced while the server runs.
	sameLogFor = time.Second
	// compareWithin limits a comparison. It holds its read model after the callers have left,
	// so it must end before a shutdown stops waiting for readers.
	compareWithin = 4 * time.Second
)

// errLeft means that the caller that started a comparison left before it began.
var errLeft = errors.New("no caller is left")

// OtherLogError means that a read model was built from another log, or that the log has since
// lost its end. The model's position then says nothing about this log, and a read of what
// was just written would return old rows.
type OtherLogError struct{ Projection, Reason string }

func (e *OtherLogError) Error() string {
	return fmt.Sprintf("the read model %s does not follow this log: %s; see mneme status", e.Projection, e.Reason)
}

// followsLog returns an [*OtherLogError] if a model was built from a different log. The projector
// halts for the same reason, but it may run elsewhere, or not at all. Callers share one
// comparison.
func (vs *Views) followsLog(ctx context.Context, m Model, number int) error {
	key := fmt.Sprint(m.Name, " ", m.Generation, " ", number)
	vs.compared.Lock()
	recent := time.Since(vs.compared.at[key]) < sameLogFor
	vs.compared.Unlock()
	if recent {
		return nil
	}
	result := vs.comparing.DoChan(key, func() (any, error) {
		if !m.hold.retain() {
			return nil, errLeft
		}
		defer m.hold.drop()
		ctx, cancel := context.WithTimeout(context.Background(), compareWithin)
		defer cancel()
		err := vs.compare(ctx, m, number)
		if err == nil {
			vs.compared.Lock()
			vs.compared.at[key] = time.Now()
			vs.compared.Unlock()
		}
		return nil, err
	})
	select {
	case r := <-result:
		if errors.Is(r.Err, errLeft) && ctx.Err() == nil { // another caller, not this one
			return vs.followsLog(ctx, m, number)
		}
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compare compares a checkpoint with the log.
func (vs *Views) compare(ctx context.Context, m Model, number int) error {
	return projection.Differs(ctx, m.Store, number, func(ctx context.Context, cp projection.Checkpoint) error {
		if cp.Seq == 0 {
			return nil
		}
		return vs.holds(ctx, m.Name, cp)
	})
}

// holds returns an error unless the log holds what a checkpoint says was applied, as far as it
// can be known: it may have been purged.
func (vs *Views) holds(ctx context.Context, model string, cp projection.Checkpoint) error {
	if cp.Halted != "" {
		return &OtherLogError{model, cp.Halted}
	}
	state, err := vs.Log.State(ctx)
	if err != nil {
		return err
	}
	if cp.Seq > state.Head {
		return &OtherLogError{model, fmt.Sprintf("it has applied sequence %d, and the log ends at %d", cp.Seq, state.Head)}
	}
	message, err := vs.Log.Get(ctx, cp.Seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	if err == nil && message.Digest() != cp.Event {
		return &OtherLogError{model, fmt.Sprintf("at sequence %d it has applied another event", cp.Seq)}
	}
	return err
}
