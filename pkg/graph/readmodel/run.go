package readmodel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// Options are optional. The zero value logs to slog.Default and reports no progress.
type Options struct {
	Logger   *slog.Logger
	Progress func(done, total uint64) // sequences of the log, while a rebuild or a verification runs
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Progress == nil {
		o.Progress = func(uint64, uint64) {}
	}
	return o
}

// How often Run looks which generation serves, and Rebuild how far it is.
const (
	lookEvery = 500 * time.Millisecond
	pollEvery = 50 * time.Millisecond
)

// Run drives the read model until ctx ends, and then returns nil. When a rebuild makes another
// generation serve, it goes on with that one and removes the old one. Only one process may run a read
// model in a place: in SQLite a second one gets sqlitestore.ErrLocked; in Neo4j the older of two is
// halted. An event that can't be applied becomes a failed event; see [projection.Projector] for what
// halts it.
func (s *Spec[U]) Run(ctx context.Context, log *eventlog.Log, at Place, o Options) (err error) {
	o = o.withDefaults()
	generations, err := s.Generations(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, generations.Close()) }()
	for ctx.Err() == nil {
		builds, err := generations.Builds(ctx, s.Name())
		if err != nil {
			return err
		}
		for _, n := range builds.Others {
			if n < builds.Serving {
				if err := generations.Discard(ctx, s.Name(), n); err != nil {
					return err
				}
			}
		}
		if err := s.drive(ctx, log, at, builds.Serving, o, func(*projection.Projector[U]) (bool, error) {
			now, err := generations.Builds(ctx, s.Name())
			if err != nil { // the projector retries, and says so
				return false, nil
			}
			return now.Serving != builds.Serving, nil
		}, lookEvery); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
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
		select {
		case <-time.After(every):
		case <-ctx.Done():
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
		if err := generations.Discard(ctx, s.Name(), n); err != nil && n > builds.Serving {
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

// Verify replays the log into a temporary SQLite file, and compares that with the read model. A read
// model without a codec for SQLite can't be verified.
func (s *Spec[U]) Verify(ctx context.Context, log *eventlog.Log, at Place, o Options) (v projection.Verification, err error) {
	if err := s.Check("sqlite"); err != nil {
		return v, err
	}
	store, _, err := s.OpenReader(ctx, at)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	dir, err := os.MkdirTemp("", "verify")
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return s.Compare(ctx, log, store, filepath.Join(dir, s.Name()+"-1.db"), o)
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
	if q.Limit == 0 {
		q.Limit = 100
	}
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
