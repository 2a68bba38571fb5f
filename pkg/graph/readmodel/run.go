package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// Options are optional. The zero value logs to slog.Default and reports no progress.
type Options struct {
	// Keep is how long Run leaves a superseded generation to its readers before it removes it; 0 means
	// two minutes.
	Keep     time.Duration
	Logger   *slog.Logger
	Progress func(done, total uint64) // sequences of the log, while a rebuild or a verification runs
}

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Keep = cmp.Or(o.Keep, 2*time.Minute)
	if o.Progress == nil {
		o.Progress = func(uint64, uint64) {}
	}
	return o
}

// How often Run checks which generation serves, and Rebuild how far it has come; how long Run pauses at most while the
// store's server does not answer, and how often it logs that.
const (
	lookEvery = 500 * time.Millisecond
	pollEvery = 50 * time.Millisecond
	maxPause  = 5 * time.Second
	sayEvery  = time.Minute
)

// Run drives the read model until ctx ends, and then returns nil. When a rebuild makes another generation serve, it
// continues with that one, and removes the old one after o.Keep. While the store's server does not answer, even at the
// start, it retries, and logs that once a minute. Only one process may run a read model in a place: in SQLite a second
// one gets sqlitestore.ErrLocked; in Neo4j the older of two is halted. An event that can't be applied becomes a failed
// event; see [projection.Projector] for what halts it.
func (s *Spec[U]) Run(ctx context.Context, log *eventlog.Log, at Place, o Options) (err error) {
	o = o.withDefaults()
	var generations projection.Generations
	err = s.retry(ctx, o.Logger, func() (err error) {
		generations, err = s.Generations(ctx, at)
		return err
	})
	if err == nil {
		defer func() { err = errors.Join(err, generations.Close()) }()
	}
	for err == nil {
		err = s.retry(ctx, o.Logger, func() error { return s.driveServing(ctx, log, at, generations, o) })
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// retry calls do until the store's server answers, with growing pauses. It returns do's other errors,
// and an error once ctx has ended.
func (s *Spec[U]) retry(ctx context.Context, logger *slog.Logger, do func() error) error {
	var said time.Time
	for pause := lookEvery; ; pause = min(2*pause, maxPause) {
		err := do()
		if err == nil || ctx.Err() != nil || !errors.Is(err, projection.ErrUnavailable) {
			return err
		}
		if time.Since(said) > sayEvery {
			said = time.Now()
			logger.Warn("the read model can't be opened; trying again", "projection", s.Name(), "error", err)
		}
		if !wait(ctx, pause) {
			return err
		}
	}
}

// driveServing drives the serving generation until another one serves, and removes older ones at the
// same time.
func (s *Spec[U]) driveServing(ctx context.Context, log *eventlog.Log, at Place, generations projection.Generations, o Options) error {
	builds, err := generations.Builds(ctx, s.Name())
	if err != nil {
		return err
	}
	removing, stop := context.WithCancel(ctx)
	var remover sync.WaitGroup
	remover.Go(func() { s.removeBefore(removing, generations, builds.Serving, o) })
	defer remover.Wait()
	defer stop()
	return s.drive(ctx, log, at, builds.Serving, o, func(*projection.Projector[U]) (bool, error) {
		now, err := generations.Builds(ctx, s.Name())
		if err != nil { // the projector retries, and says so
			return false, nil
		}
		return now.Serving != builds.Serving, nil
	}, lookEvery)
}

// removeBefore removes the generations older than the serving one, after o.Keep. It retries failed removals until ctx
// ends.
func (s *Spec[U]) removeBefore(ctx context.Context, generations projection.Generations, serving int, o Options) {
	for wait(ctx, o.Keep) {
		builds, err := generations.Builds(ctx, s.Name())
		for _, n := range builds.Others {
			if n < serving {
				err = errors.Join(err, generations.Discard(ctx, s.Name(), n))
			}
		}
		if err != nil && ctx.Err() == nil {
			o.Logger.Warn("superseded generations can't be removed; trying again", "projection", s.Name(), "after", o.Keep, "error", err)
		}
	}
}

// wait returns false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// drive runs a generation's projector until done says so, or ctx ends.
func (s *Spec[U]) drive(ctx context.Context, log *eventlog.Log, at Place, generation int, o Options, done func(*projection.Projector[U]) (bool, error), every time.Duration) (err error) {
	store, err := s.Open(ctx, at, generation)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	options := []projection.Option{projection.OfBuild(at.Backend(), generation)}
	if at.Neo4j != nil {
		options = append(options, projection.BatchOf(neo4jstore.BatchEvents), projection.CostlyTransactions())
	}
	p, err := projection.NewProjector(s.Projection, log, store, o.Logger.With("generation", generation), options...)
	if err != nil {
		return err
	}
	p.Start()
	defer p.Stop()
	for {
		if !wait(ctx, every) {
			return ctx.Err()
		}
		if end, err := done(p); end || err != nil {
			return err
		}
	}
}

// Rebuild applies the log to a new generation while the old one serves, then makes the new one serve.
// A process that runs the read model switches to it within a second. If Rebuild fails or ctx ends, the
// old generation keeps serving and the new one is removed; an unfinished one of an earlier Rebuild is
// removed first.
func (s *Spec[U]) Rebuild(ctx context.Context, log *eventlog.Log, at Place, o Options) (err error) {
	o = o.withDefaults()
	generations, err := s.Generations(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, generations.Close()) }()
	builds, err := generations.Builds(ctx, s.Name())
	if err != nil {
		return err
	}
	for _, n := range builds.Others {
		if n < builds.Serving { // superseded: Run removes it, once its readers have had time to leave
			continue
		}
		if err := generations.Discard(ctx, s.Name(), n); err != nil {
			return fmt.Errorf("another rebuild of %s may be running: %w", s.Name(), err)
		}
	}
	next := builds.Last + 1
	if err = s.drive(ctx, log, at, next, o, func(p *projection.Projector[U]) (bool, error) {
		var done, lag uint64
		live := true
		for _, status := range p.Status() {
			if status.State == projection.StateHalted {
				return false, fmt.Errorf("rebuild %s: halted: %s", s.Name(), status.Error)
			}
			live = live && status.State == projection.StateLive
			done, lag = done+status.Checkpoint.Applied, lag+status.Lag
		}
		o.Progress(done, done+lag)
		return live, nil
	}, pollEvery); err == nil {
		err = generations.Supersede(ctx, s.Name(), builds.Serving, next)
	}
	if err != nil {
		err = errors.Join(err, generations.Discard(context.WithoutCancel(ctx), s.Name(), next))
	}
	return err
}

// Verify replays the log into a temporary SQLite file, and compares that with the read model. A read model without a
// codec for SQLite can't be verified. If Verify fails or finds differences, and another generation serves by then, it
// starts over with that one.
func (s *Spec[U]) Verify(ctx context.Context, log *eventlog.Log, at Place, o Options) (projection.Verification, error) {
	if err := s.Check("sqlite"); err != nil {
		return projection.Verification{}, err
	}
	for {
		v, generation, err := s.verifyServing(ctx, log, at, o)
		if err == nil && v.Equal() || ctx.Err() != nil {
			return v, err
		}
		serving, lookErr := s.serving(ctx, at)
		if lookErr != nil || serving == generation {
			return v, errors.Join(err, lookErr)
		}
	}
}

func (s *Spec[U]) verifyServing(ctx context.Context, log *eventlog.Log, at Place, o Options) (v projection.Verification, generation int, err error) {
	store, generation, err := s.OpenReader(ctx, at)
	if err != nil {
		return v, generation, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	dir, err := os.MkdirTemp("", "verify")
	if err != nil {
		return v, generation, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	v, err = s.Compare(ctx, log, store, filepath.Join(dir, s.Name()+"-1.db"), o)
	return v, generation, err
}

// Compare is [Spec.Verify] for a store that is open. It makes the SQLite file at path and leaves it
// there.
func (s *Spec[U]) Compare(ctx context.Context, log *eventlog.Log, store projection.ReadStore, path string, o Options) (v projection.Verification, err error) {
	if err := s.Check("sqlite"); err != nil {
		return v, err
	}
	scratch, err := sqlitestore.Open(ctx, path, *s.SQLite)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	return projection.Verify(ctx, s.Projection, log, store, scratch, o.withDefaults().Progress)
}

// Status returns the position of the serving generation on each partition of the log.
func (s *Spec[U]) Status(ctx context.Context, log *eventlog.Log, at Place) (list []projection.Status, err error) {
	store, generation, err := s.OpenReader(ctx, at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return projection.Progress(ctx, s.build(at, generation), log, store, nil)
}

// Failed lists failed events of the serving generation, oldest first. A limit of 0 means 100.
func (s *Spec[U]) Failed(ctx context.Context, at Place, q projection.FailedQuery) (list []projection.Failed, err error) {
	store, _, err := s.OpenReader(ctx, at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	q.Limit = cmp.Or(q.Limit, 100)
	return store.Failed(ctx, q)
}

// Retry has the process that runs the read model drop a conversation and apply its events again,
// failed ones too. See [projection.RequestRepair] for its errors.
func (s *Spec[U]) Retry(ctx context.Context, log *eventlog.Log, at Place, id events.ConversationID) (applied, failed int, err error) {
	generations, err := s.Generations(ctx, at)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, generations.Close()) }()
	builds, err := generations.Builds(ctx, s.Name())
	if err != nil {
		return 0, 0, err
	}
	return projection.RequestRepair(ctx, log.Conn(), s.build(at, builds.Serving), log.PartitionOf(id.Tenant, id.ID), id)
}
