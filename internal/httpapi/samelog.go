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

// sameLogs remembers when each read model was last compared with the log.
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
	cps, err := m.store.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for _, cp := range cps {
		if cp.Partition != partition || cp.Seq == 0 {
			continue
		}
		if err := a.holds(ctx, m.name, cp); err != nil {
			return err
		}
	}
	a.same.lock.Lock()
	a.same.at[key] = time.Now()
	a.same.lock.Unlock()
	return nil
}

// holds returns a problem if the log contradicts a checkpoint. An event that is missing
// proves nothing, because it may have been purged.
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
