package salvage

import (
	"context"
	"errors"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// errDiffers means that the log does not have the event of a checkpoint.
var errDiffers = errors.New("the log does not have the event of a checkpoint")

// follows reports whether the log still holds, at each checkpoint of the read model, the
// event that was applied there. It does not if the log was restored from an old backup.
func follows(ctx context.Context, log *eventlog.Log, source Source) (bool, error) {
	check := func(ctx context.Context, cp projection.Checkpoint) error {
		if cp.Seq == 0 {
			return nil
		}
		m, err := log.Get(ctx, cp.Seq)
		if errors.Is(err, eventlog.ErrNotFound) || err == nil && m.Digest() != cp.Event {
			return errDiffers
		}
		return err
	}
	checkpoints, err := source.Checkpoints(ctx)
	if err != nil {
		return false, err
	}
	for _, cp := range checkpoints {
		err := check(ctx, cp)
		if errors.Is(err, errDiffers) {
			err = projection.Differs(ctx, source, cp.Partition, check)
		}
		if errors.Is(err, errDiffers) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
