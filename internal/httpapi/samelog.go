package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// sameLogFor is how long the result of a comparison with the log stays valid. It is short
// because the log can be replaced while the server runs.
const sameLogFor = time.Second

// differsFor is how long a checkpoint has to differ from the log.
const differsFor = 500 * time.Millisecond

// sameLogs remembers which read models were compared with the log, and when.
type sameLogs struct {
	lock sync.Mutex
	at   map[string]time.Time
}

// sameLog returns a problem if a model was built from a different log, or if the log has
// since lost its end. The model's position then says nothing about this log, and reads
// with at_least would return old rows. The projector halts for the same reason, but it
// may run elsewhere, or not at all.
func (a *api) sameLog(ctx context.Context, m model, partition int) error {
	key := fmt.Sprint(m.name, " ", m.generation, " ", partition)
	a.same.lock.Lock()
	recent := time.Since(a.same.at[key]) < sameLogFor
	a.same.lock.Unlock()
	if recent {
		return nil
	}
	// Neo4j shows a checkpoint half written while it commits. So the logs differ only if
	// the same checkpoint says so for a while.
	var before projection.Checkpoint
	for began := time.Now(); ; {
		cp, err := checkpointOf(ctx, m, partition)
		if err != nil {
			return err
		}
		if cp.Seq == 0 {
			break
		}
		differs := a.holds(ctx, m.name, cp)
		if differs == nil {
			break
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
	a.same.lock.Lock()
	if a.same.at == nil {
		a.same.at = map[string]time.Time{}
	}
	a.same.at[key] = time.Now()
	a.same.lock.Unlock()
	return nil
}

// checkpointOf is the checkpoint of a partition; the zero value if it has none.
func checkpointOf(ctx context.Context, m model, partition int) (projection.Checkpoint, error) {
	cps, err := m.store.Checkpoints(ctx)
	for _, cp := range cps {
		if cp.Partition == partition {
			return cp, err
		}
	}
	return projection.Checkpoint{}, err
}

// holds is a problem unless the log holds what a checkpoint says was applied, as far as
// it can be known: it may have been purged.
func (a *api) holds(ctx context.Context, model string, cp projection.Checkpoint) error {
	halted := func(reason string) error {
		return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(fmt.Sprintf("the read model %s does not follow this log: %s; see mneme status", model, reason)), later())
	}
	if cp.Halted != "" {
		return halted(cp.Halted)
	}
	state, err := a.Log.State(ctx)
	if err != nil {
		return err
	}
	if cp.Seq > state.Head {
		return halted(fmt.Sprintf("it has applied sequence %d, and the log ends at %d", cp.Seq, state.Head))
	}
	message, err := a.Log.Get(ctx, cp.Seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	if err == nil && message.Digest() != cp.Event {
		return halted(fmt.Sprintf("at sequence %d it has applied another event", cp.Seq))
	}
	return err
}
