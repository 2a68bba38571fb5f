package salvage

import (
	"context"
	"errors"

	"mneme.dev/mneme/pkg/eventlog"
)

// follows reports whether the log still holds, at each checkpoint of the read model, the
// event that was applied there. It does not if the log was restored from an old backup.
func follows(ctx context.Context, log *eventlog.Log, source Source) (bool, error) {
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
