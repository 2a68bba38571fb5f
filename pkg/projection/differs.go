package projection

import (
	"context"
	"time"
)

// differsFor is how long a checkpoint must differ from the log before that counts.
const differsFor = 500 * time.Millisecond

// Checkpointed has checkpoints, as every [ReadStore] does.
type Checkpointed interface {
	Checkpoints(ctx context.Context) ([]Checkpoint, error)
}

// CheckpointOf reads the checkpoint of a partition, an empty one if there is none.
func CheckpointOf(ctx context.Context, store Checkpointed, partition int) (Checkpoint, error) {
	all, err := store.Checkpoints(ctx)
	for _, cp := range all {
		if cp.Partition == partition {
			return cp, err
		}
	}
	return Checkpoint{}, err
}

// Differs checks the checkpoint of a partition that a projector may be writing. It returns the error of check only if
// the checkpoint has stayed the same for half a second, and until then reads it again: while Neo4j commits, a reader
// can see a half-written checkpoint, with the new sequence and the old event.
func Differs(ctx context.Context, store Checkpointed, partition int, check func(context.Context, Checkpoint) error) error {
	var before Checkpoint
	for began := time.Now(); ; {
		cp, err := CheckpointOf(ctx, store, partition)
		if err != nil {
			return err
		}
		differs := check(ctx, cp)
		if differs == nil {
			return nil
		}
		if cp != before {
			before, began = cp, time.Now()
		} else if time.Since(began) > differsFor {
			return differs
		}
		select {
		case <-time.After(differsFor / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
