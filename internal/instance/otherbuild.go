package instance

import (
	"context"
	"errors"
	"time"

	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/salvage"
	"mneme.dev/mneme/pkg/projection"
)

// Until every read model has started, it is looked at in these intervals; a request for a rebuild that failed is repeated
// after the longer one.
const (
	lookEvery  = 100 * time.Millisecond
	againAfter = 5 * time.Second
)

// inBackground runs f in a goroutine. stop cancels it and waits until it has returned.
func inBackground(f func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// rebuildOtherBuilds requests a rebuild of each read model that another version of mneme or other settings built, so that an
// update of a single process needs no command. What was built before serves until then. Two kinds are left to the operator:
// vectors of an endpoint, because another model has to be paid for them, and all read models while the graph holds more than the
// log. It returns when every read model has started, or ctx ends.
func (i *Instance) rebuildOtherBuilds(ctx context.Context, rebuilds *rebuild.Rebuilds) {
	asked, told := map[string]bool{i.paid: true}, map[string]string{} // by projection
	for wait := lookEvery; ; {
		starting, serving := false, map[string]int{} // generations
		for _, s := range i.Status() {
			if generation, ok := serving[s.Projection]; ok && generation != s.Generation {
				continue // one that is being built comes after the one that serves
			}
			serving[s.Projection] = s.Generation
			if s.State == projection.StateIdle || s.State == projection.StateCatchingUp && s.Error != "" { // the store is in trouble
				starting = true
			}
			if !s.OtherBuild || asked[s.Projection] {
				continue
			}
			logger := i.logger.With("projection", s.Projection)
			var loss *salvage.LossError
			switch _, err := rebuilds.Ask(ctx, s.Projection, false); {
			case err == nil:
				logger.Warn("another version of mneme or other settings built this read model: it is being rebuilt from the log, and the old one serves until then; mneme status shows the progress")
			case errors.Is(err, rebuild.ErrRebuilding):
			case errors.As(err, &loss):
				logger.Warn("this read model needs a rebuild, which could lose what the log lacks: "+loss.Remedy()+", then run mneme rebuild "+s.Projection+"; with --force it goes on without them", "error", err)
			case ctx.Err() != nil:
				return
			default:
				if told[s.Projection] != err.Error() {
					told[s.Projection] = err.Error()
					logger.Warn("this read model needs a rebuild that can't begin yet; retrying until it does", "error", err)
				}
				starting, wait = true, againAfter
				continue
			}
			asked[s.Projection] = true
		}
		if !starting {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
