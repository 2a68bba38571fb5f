package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/quota"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/projection"
)

// Consumer runs a projection and owns its read model; ingestor, file-tracker and summarizer
// run one for each of theirs. It has a projector on the generation that serves, and during a rebuild one on the next.
type Consumer[U projection.Unit, S projection.Store[U]] struct {
	Parts
	declared *readmodel.Typed[U, S]
	slog     *slog.Logger
	current  Current[S] // for readers of this process
	control  *rebuild.Control
	Hooks
	options []projection.Option // specific to this projection

	mu      sync.Mutex // guards the following fields; only steps changes them
	serving *build[U, S]
	next    *build[U, S]
	old     []*build[U, S]

	steps   steps
	cancel  context.CancelFunc
	stopped sync.Once
	ended   sync.WaitGroup
	err     error // from stopping
}

// Hooks are optional. Set them before Start.
type Hooks struct {
	Touched  func([]events.ConversationID) // called with the conversations of each batch that the serving generation applied
	Switched func()                        // called when another generation serves
	Explain  func([]projection.Status)     // adds to the status what the projectors do not know
}

// build is a generation that this process writes.
type build[U projection.Unit, S projection.Store[U]] struct {
	*Generation[S]
	projector *projection.Projector[U]
	live      atomic.Bool  // it serves, so its projector does not yield
	took      atomic.Int64 // duration of its last batch, in ns
}

// end stops the projector and gives up the store, which its last reader closes.
func (b *build[U, S]) end() {
	b.projector.Stop()
	b.Leave()
}

// Parts are the dependencies of consumers.
type Parts struct {
	Log       *eventlog.Log
	Feed      *projection.Feed // of Log, shared by the consumers of this process; nil: each reads by itself
	Stores    Stores
	Telemetry *telemetry.Telemetry
	Logger    *slog.Logger
	Leases    *projection.Leases // nil if this process alone writes the read models
	Mended    bool               // this process rebuilds a read model that another version built
	Retention Retention          // of superseded generations
	Quotas    *quota.Quotas      // what tenants may spend on models; nil bounds nothing
	Prices    *insight.Prices    // what models cost, for these quotas; nil if nobody says
}

// Worker is a [Consumer] of any projection.
type Worker interface {
	Start()
	Stop() error
	Status() []projection.Status
	Ready(ctx context.Context) error
}

// NewConsumer opens the generation that serves. If its server is down, NewConsumer waits.
func NewConsumer[U projection.Unit, S projection.Store[U]](ctx context.Context, p Parts, declared *readmodel.Typed[U, S], options ...projection.Option) (*Consumer[U, S], error) {
	control, err := rebuild.NewControl(p.Log.Conn(), p.Stores.Backend())
	if err != nil {
		return nil, err
	}
	p.Retention = p.Retention.withDefaults()
	c := &Consumer[U, S]{Parts: p, declared: declared, options: options, slog: p.Logger.With("projection", declared.Name()), control: control}
	c.steps.wake = make(chan struct{}, 1)
	serving, err := p.Stores.Serving(ctx, p.Logger, declared.Name())
	if err != nil {
		return nil, err
	}
	c.serving, err = WaitFor(ctx, p.Stores, p.Logger, func() (*build[U, S], error) { return c.build(ctx, serving) })
	if errors.Is(err, projection.ErrDamaged) {
		c.serving, err = c.replace(ctx, serving, err)
	}
	if err != nil {
		return nil, err
	}
	c.serving.live.Store(true)
	c.current.Put(c.serving.Generation)
	p.Telemetry.Metrics.WatchProjection(p.Log, telemetry.Projection{Name: declared.Name(), Serving: c.served})
	return c, nil
}

// build opens a generation and creates its projector.
func (c *Consumer[U, S]) build(ctx context.Context, generation int) (*build[U, S], error) {
	store, err := c.declared.Open(ctx, c.Stores.place, generation)
	if err != nil {
		return nil, err
	}
	b := &build[U, S]{Generation: NewGeneration(generation, store)}
	options := append(slices.Concat(c.Stores.options(), c.options),
		projection.OfBuild(c.Stores.Backend(), generation),
		projection.OnBatch(func(batch projection.Batch) {
			b.took.Store(int64(batch.Apply + batch.Commit))
			if !b.live.Load() {
				return
			}
			c.Telemetry.Metrics.Applied(batch)
			if c.Touched != nil {
				c.Touched(batch.Conversations)
			}
		}),
		projection.Announced(c.explained),
		projection.WithTracer(c.Telemetry.Tracer("mneme.dev/mneme/pkg/projection")))
	if c.Feed != nil {
		options = append(options, projection.From(c.Feed))
	}
	if c.Mended {
		options = append(options, projection.Mended())
	}
	if c.Leases != nil {
		options = append(options, projection.Shared(c.Leases))
	}
	if c.serving != nil { // this build will supersede it
		options = append(options, projection.Yield(func() time.Duration {
			if b.live.Load() {
				return projection.Forever
			}
			return c.now().projector.Idle()
		}))
	}
	if b.projector, err = projection.NewProjector(c.declared.Projection, c.Log, store, c.Logger.With("generation", generation), options...); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return b, nil
}

// now returns the build that serves.
func (c *Consumer[U, S]) now() *build[U, S] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serving
}

// served returns the build that serves, for telemetry.
func (c *Consumer[U, S]) served() (telemetry.Serving, bool) {
	v := c.current.Take()
	if v == nil {
		return telemetry.Serving{}, false
	}
	return telemetry.Serving{
		Build: projection.Build{Store: c.Stores.Backend(), Projection: c.declared.Name(), Generation: v.Number}, Model: v.Store, Path: c.Stores.Path(c.declared.Name(), v.Number), Statuses: c.Status(), Release: v.Release,
	}, true
}

// Current holds the generation that serves, for readers of this process.
func (c *Consumer[U, S]) Current() *Current[S] { return &c.current }

// Live returns the position of the serving generation on a partition, and whether it has caught up.
func (c *Consumer[U, S]) Live(partition int) (seq uint64, live bool) {
	s := c.now().projector.Status()[partition]
	return s.Checkpoint.Seq, s.State == projection.StateLive
}

// Name is the name of the projection.
func (c *Consumer[U, S]) Name() string { return c.declared.Name() }

// Start begins to follow the log and to carry out requested rebuilds.
func (c *Consumer[U, S]) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		return
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	c.serving.projector.Start()
	declared := c.declared.Name()
	c.ended.Go(func() {
		c.control.Watch(ctx, c.slog, func(projection string) {
			if projection == declared {
				c.steps.again()
			}
		})
	})
	c.ended.Go(func() { c.run(ctx) })
}

// Stop finishes the current batches and closes the stores.
func (c *Consumer[U, S]) Stop() error {
	c.stopped.Do(func() {
		c.mu.Lock()
		if c.cancel == nil {
			c.cancel = func() {}
		}
		cancel := c.cancel
		c.mu.Unlock()
		cancel()
		c.ended.Wait()
		all := append([]*build[U, S]{c.serving}, c.old...)
		if c.next != nil {
			all = append(all, c.next)
		}
		var ending sync.WaitGroup
		for _, b := range all {
			ending.Go(b.end)
		}
		ending.Wait()
		for _, b := range all {
			c.err = errors.Join(c.err, b.AwaitClosed())
		}
	})
	return c.err
}

// readersEnd is how long readers may keep a store open while the process shuts down.
const readersEnd = 5 * time.Second

// AwaitClosed waits until the last reader has gone.
func (v *Generation[S]) AwaitClosed() error {
	select {
	case <-v.closed:
		return v.err
	case <-time.After(readersEnd):
		return fmt.Errorf("generation %d is still being read", v.Number)
	}
}

// Status reports on each partition of the serving generation, and of one being built.
func (c *Consumer[U, S]) Status() []projection.Status {
	c.mu.Lock()
	serving, next := c.serving, c.next
	c.mu.Unlock()
	list := serving.projector.Status()
	if next != nil {
		list = append(list, next.projector.Status()...)
	}
	return c.explained(list)
}

func (c *Consumer[U, S]) explained(list []projection.Status) []projection.Status {
	if c.Explain != nil {
		c.Explain(list)
	}
	return list
}

// Ready returns nil if the store answers.
func (c *Consumer[U, S]) Ready(ctx context.Context) error {
	_, err := c.now().Store.Checkpoints(ctx)
	return err
}
