package salvage

import (
	"context"
	"errors"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// CheckedSource is what [Check] reads.
type CheckedSource interface {
	Source
	Checkpoints(ctx context.Context) ([]projection.Checkpoint, error)
}

// follows reports whether the log still holds, at each checkpoint of the read model, the event
// applied there. It does not after a restore from an old backup, which leaves a shorter log or
// another one.
func follows(ctx context.Context, log *eventlog.Log, source CheckedSource) (bool, error) {
	checkpoints, err := source.Checkpoints(ctx)
	if err != nil {
		return false, err
	}
	for _, cp := range checkpoints {
		if cp.Seq == 0 {
			continue
		}
		m, err := log.Get(ctx, cp.Seq)
		if errors.Is(err, eventlog.ErrNotFound) || err == nil && m.Digest() != cp.Event {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
