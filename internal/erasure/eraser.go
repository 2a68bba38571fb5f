package erasure

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// Config is what an eraser works with.
type Config struct {
	Log         *eventlog.Log
	Leases      *projection.Leases
	Store       string // name of the backend
	Generations projection.Generations
	Projections []readmodel.Info // that exist in this version
	// Graph and Projects lend the read models in the serving generations.
	Graph     func(ctx context.Context, read func(graph.Reader) error) error
	Projects  func(ctx context.Context, read func(project.Reader) error) error
	Retention map[string]time.Duration // by tenant; empty for none
	// Audited begins an erasure that a retention requires, and records that in the audit log. If it can't record it, it
	// returns an error and does not begin.
	Audited func(ctx context.Context, s Scope, ask func() error) error
	Logger  *slog.Logger
	// Patience is how long an erasure waits for a read model that only enriches others and does not get on, because it
	// may not run, or wait for an endpoint that does not answer; and for a NATS server of a cluster that is down or
	// behind. Default: 30 seconds.
	Patience time.Duration
	// EmbeddedServer says that the NATS server is the one of the package embedded: when it starts, it overwrites what a kill kept it from overwriting.
	EmbeddedServer bool
	// Now is the clock of this machine. Default: [time.Now]. Tests set it wrong.
	Now func() time.Time
	// Step, if not nil, is called before each step at which a kill matters. Tests kill the process there.
	Step func(step string)
}

// Eraser carries out erasures, and begins those that a tenant's retention demands.
type Eraser struct {
	Config
	records records
	wake    chan struct{}

	recorded time.Time // when the record was last updated with what is waited for
	progress progress

	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// New returns an eraser that is not started.
func New(c Config) (*Eraser, error) {
	js, err := jetstream.New(c.Log.Conn())
	if err != nil {
		return nil, err
	}
	c.Patience = cmp.Or(c.Patience, 30*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Step == nil {
		c.Step = func(string) {}
	}
	return &Eraser{Config: c, records: records{js}, wake: make(chan struct{}, 1)}, nil
}

// Source is the source of the events that erasures publish.
const Source = "mneme/erase"

var (
	kindDeleted = events.Kind(events.TypeConversationDeleted)
	kindStory   = events.Kind(events.TypeStoryWritten)
)

// isTombstone reports whether a message was published by an erasure, which keeps it.
func isTombstone(m *eventlog.Message) bool {
	r, _, err := m.Decode()
	p, ok := r.Payload.(*events.ConversationDeleted)
	return err == nil && ok && r.Source == Source && p.Reason == ""
}

// Look lists what a scope holds now. It changes nothing.
func (e *Eraser) Look(ctx context.Context, s Scope) (list []Found, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	err = e.Graph(ctx, func(g graph.Reader) error {
		if s.Project == "" {
			list, err = s.Find(ctx, e.Log, g, nil)
			return err
		}
		return e.Projects(ctx, func(r project.Reader) error {
			list, err = s.Find(ctx, e.Log, g, r)
			return err
		})
	})
	return list, err
}

// Ask begins an erasure, which continues by itself. It returns [ErrNothing], and [ErrRunning] with the record of the
// running one.
func (e *Eraser) Ask(ctx context.Context, s Scope) (Record, error) {
	list, err := e.Look(ctx, s)
	if err != nil {
		return Record{}, err
	}
	if len(list) == 0 {
		return Record{}, fmt.Errorf("%s: %w", s.Text(), ErrNothing)
	}
	now, err := e.records.get(ctx)
	if err != nil {
		return now, err
	}
	if now.Running() {
		return now, ErrRunning
	}
	r := Record{ID: strings.ToLower(rand.Text()[:16]), State: Marking, revision: now.revision,
		Report: Report{Scope: s, AskedAt: time.Now().UTC().Truncate(time.Millisecond), Events: map[string]uint64{}, Stores: []StoreReport{}, NotReached: notReached}}
	for _, f := range list {
		r.Todo += f.Events
	}
	if err := e.records.put(ctx, &r); errors.Is(err, errChanged) {
		return r, ErrRunning
	} else if err != nil {
		return r, err
	}
	e.again()
	return r, nil
}

// Last returns the record of the running erasure, or else of the last one; zero if there was none.
func (e *Eraser) Last(ctx context.Context) (Record, error) { return e.records.get(ctx) }

// Ages returns the retention of each tenant that has one.
func (e *Eraser) Ages() map[string]time.Duration { return e.Retention }

// Start begins to carry out erasures.
func (e *Eraser) Start() {
	var ctx context.Context
	ctx, e.cancel = context.WithCancel(context.Background())
	e.ended.Go(func() { e.run(ctx) })
}

// Stop ends the work between two messages; another process, or the next start, continues it. It is legal before Start.
func (e *Eraser) Stop() {
	if e.cancel != nil {
		e.cancel()
	}
	e.ended.Wait()
}

func (e *Eraser) again() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// How often an eraser looks for an erasure of another process, and for conversations that are too old.
const (
	lookEvery   = 2 * time.Second
	retainEvery = time.Hour
)

func (e *Eraser) run(ctx context.Context) {
	said := ""
	var retained time.Time
	for ctx.Err() == nil {
		err := e.work(ctx)
		if err == nil && len(e.Retention) > 0 && time.Since(retained) > retainEvery {
			var asked bool
			if asked, err = e.retain(ctx); err == nil && !asked {
				retained = time.Now()
			}
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			e.Logger.Warn("erasing failed; will retry", "error", err)
		}
		select {
		case <-time.After(lookEvery):
		case <-e.wake:
		case <-ctx.Done():
		}
	}
}

// work carries out the erasure in the record, if there is one and no other process is doing it.
func (e *Eraser) work(ctx context.Context) error {
	r, err := e.records.get(ctx)
	if err != nil || !r.Running() {
		return err
	}
	_, err = e.Leases.Exclusively(ctx, "erase", func(ctx context.Context) error {
		if r, err = e.records.get(ctx); err != nil || !r.Running() { // another process may have ended it
			return err
		}
		err := e.carryOut(ctx, &r)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errChanged) {
			r.Doing = err.Error()
			err = errors.Join(err, e.records.put(ctx, &r))
		}
		return err
	})
	return err
}

// earliest returns the time by the clock of this machine or of the NATS server, whichever is earlier: a clock that is
// ahead would have an erasure take what is not due, and nothing brings that back.
func (e *Eraser) earliest(ctx context.Context) (time.Time, error) {
	state, err := e.Log.State(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := e.Now()
	ahead := now.Sub(state.Now)
	if state.Now.IsZero() || ahead <= 0 {
		return now, nil
	}
	if ahead > time.Minute {
		e.Logger.Warn("the clock of this machine is ahead of the NATS server's; retention goes by the latter: correct the one that is wrong", "ahead", ahead.Truncate(time.Second))
	}
	return state.Now, nil
}

// retain begins an erasure of what a tenant may no longer keep.
func (e *Eraser) retain(ctx context.Context) (asked bool, err error) {
	now, err := e.earliest(ctx)
	if err != nil {
		return false, err
	}
	for _, tenant := range slices.Sorted(maps.Keys(e.Retention)) {
		age := e.Retention[tenant]
		s := Scope{Tenant: tenant, Before: now.UTC().Add(-age).Truncate(time.Second), Retention: true}
		if list, err := e.Look(ctx, s); err != nil {
			return false, err
		} else if len(list) == 0 {
			continue
		}
		if r, err := e.records.get(ctx); err != nil || r.Running() { // another process may have begun one
			return err == nil, err
		}
		err := e.Audited(ctx, s, func() error { _, err := e.Ask(ctx, s); return err })
		switch {
		case err == nil:
			e.Logger.Info("erasing conversations that are older than the tenant's retention", "retention", age)
			return true, nil
		case errors.Is(err, ErrRunning):
			return true, nil
		case !errors.Is(err, ErrNothing):
			return false, err
		}
	}
	return false, nil
}
