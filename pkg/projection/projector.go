package projection

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
	"mneme.dev/mneme/pkg/eventlog"
)

// State is the state of a projector on one partition.
type State string

const (
	StateIdle       State = "idle"
	StateCatchingUp State = "catching up"
	StateLive       State = "live"
	StateHalted     State = "halted"
)

// Status is the status of one partition of a projector.
type Status struct {
	Build
	Partition  int
	State      State
	Checkpoint Checkpoint
	Head       uint64  // last sequence of the partition; set only by [Progress]
	Lag        uint64  // events of the partition not yet applied, at the last delivery
	Error      string  // current error of the store, or why the projector halted
	OtherBuild bool    // it halted with [ErrRebuild]: another version or other settings built the read model
	Rate       float64 // events per second over the last seconds
	Retries    uint64  // retries for a store or a server since the start

	// Holder is the process that holds the partition's lease, "" if there is none or there
	// are no leases. On a partition that another process holds, a projector is idle and
	// knows nothing else.
	Holder string
}

// Projector drives a projection. If it is [Shared], it drives the partitions whose leases
// it can take. Otherwise it drives all and must be the only one on its store. A file is
// locked by the process that opens it. A server has no such lock: there the fence keeps the
// read model right, and the older of two projectors halts. A projector that follows another
// log halts without taking over.
type Projector[U Unit] struct {
	projection Projection[U]
	log        *eventlog.Log
	store      Store[U]
	slog       *slog.Logger
	options

	applying atomic.Int32 // batches being applied
	cleaning sync.Mutex   // held while the store is cleaned

	mu       sync.Mutex
	worked   time.Time // when the last batch ended
	statuses []Status
	meters   []meter
	requests []chan request
	gone     []chan struct{} // per partition, closed while nobody accepts requests
	cancel   context.CancelFunc
	stopped  bool
	ended    sync.WaitGroup
}

// request asks the goroutine that drives a partition to do something between two batches.
type request struct {
	do   func(ctx context.Context, cp Checkpoint) (outcome, error)
	done chan answer
}

type answer struct {
	out outcome
	err error
}

// ErrNotRunning is returned for a request to a projector that was not started, was stopped,
// or is halted.
var ErrNotRunning = errors.New("the projector is not running")

// NewProjector returns a projector that does nothing until Start.
func NewProjector[U Unit](p Projection[U], log *eventlog.Log, store Store[U], logger *slog.Logger, with ...Option) (*Projector[U], error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	pr := &Projector[U]{projection: p, log: log, store: store, slog: logger.With("projection", p.Name), options: options{batch: maxBatchEvents, where: "store", generation: FirstGeneration, announced: func(list []Status) []Status { return list }}}
	for _, option := range with {
		option(&pr.options)
	}
	if pr.feed == nil {
		pr.feed = NewFeed(log)
	}
	pr.feed.serve(p.Types(), p.deriver())
	for n := range log.Partitions() {
		pr.statuses = append(pr.statuses, Status{Build: pr.build(), Partition: n, State: StateIdle})
		pr.meters = append(pr.meters, newMeter())
		pr.requests = append(pr.requests, make(chan request))
		pr.gone = append(pr.gone, make(chan struct{}))
		if pr.leases != nil {
			close(pr.gone[n])
		}
	}
	return pr, nil
}

// build names the read model that the projector writes.
func (p *Projector[U]) build() Build { return Build{p.where, p.projection.Name, p.generation} }

// Start begins to drive partitions. A second call does nothing.
func (p *Projector[U]) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	if p.leases != nil {
		s := &share{
			Leases: p.leases, keys: keys{p.build()}, partitions: len(p.statuses), slog: p.slog.With("process", p.leases.process),
			work:    p.tenure,
			about:   func() []byte { return p.leases.Member(p.announced(p.Status())).encode() },
			holder:  func(partition int, process string) { p.update(partition, func(s *Status) { s.Holder = process }) },
			outside: p.outside,
		}
		p.ended.Go(func() { s.run(ctx) })
		return
	}
	for n := range p.statuses {
		p.ended.Go(func() {
			defer p.answer(n)()
			_ = p.own(ctx, nil, n) // the status has the error
			close(p.gone[n])
			<-ctx.Done() // keep answering requests with the reason
		})
	}
}

// Stop gives back the leases and waits until all goroutines have ended. With leases,
// current batches get 10 s to finish; otherwise, or after that, they are cut off and
// applied again later. Stop is idempotent and legal before Start.
func (p *Projector[U]) Stop() {
	p.mu.Lock()
	cancel := p.cancel
	p.stopped = true
	if cancel == nil {
		p.cancel = func() {}
		if p.leases == nil {
			for _, gone := range p.gone {
				close(gone)
			}
		}
	}
	p.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	p.ended.Wait()
}

// Status reports on each partition.
func (p *Projector[U]) Status() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.Clone(p.statuses)
	for n := range list {
		list[n].Rate = p.meters[n].rate()
	}
	return list
}

// outside records on each partition why the process could not join the lease group; nil
// clears it.
func (p *Projector[U]) outside(err error) {
	text := ""
	if err != nil {
		text = "cannot join the lease group: " + err.Error()
	}
	for n := range p.statuses {
		p.update(n, func(s *Status) { s.Error = text })
	}
}

func (p *Projector[U]) update(partition int, change func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.statuses[partition])
}

// Repair deletes the rows of one conversation and applies its events up to the checkpoint again,
// in order, in one transaction. This is how failed events are retried. It returns how many events
// were applied and how many failed. The partition's other events wait until then. At most 16 MiB
// of the conversation's messages and one batch more are in memory; what [Projection.Prepare]
// returned for its events is kept too. Errors: [ErrNotRunning], [ErrElsewhere], and [ErrTooLarge]
// if the store cannot take the conversation in one transaction, which then changes nothing.
func (p *Projector[U]) Repair(ctx context.Context, id events.ConversationID) (applied, failed int, err error) {
	p.mu.Lock()
	started := p.cancel != nil
	p.mu.Unlock()
	if !started {
		return 0, 0, fmt.Errorf("repair %q: %w", id.ID, ErrNotRunning)
	}
	partition := p.log.PartitionOf(id.Tenant, id.ID)
	p.mu.Lock()
	gone := p.gone[partition]
	p.mu.Unlock()
	r := request{done: make(chan answer, 1), do: func(ctx context.Context, cp Checkpoint) (outcome, error) {
		return p.projection.repair(ctx, p.log, p.store, cp, id)
	}}
	select {
	case p.requests[partition] <- r: // the receiver always answers
	case <-gone:
		return 0, 0, fmt.Errorf("repair %q: %w", id.ID, p.refusal(partition))
	case <-ctx.Done():
		return 0, 0, fmt.Errorf("repair %q: %w", id.ID, errors.Join(ctx.Err(), p.trouble(partition)))
	}
	select {
	case a := <-r.done:
		return a.out.applied, a.out.failed, a.err
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

// refusal returns why nobody accepts a partition's requests.
func (p *Projector[U]) refusal(partition int) error {
	p.mu.Lock()
	s, stopped := p.statuses[partition], p.stopped
	p.mu.Unlock()
	if p.leases == nil || stopped || s.State == StateHalted {
		return errors.Join(ErrNotRunning, p.trouble(partition))
	}
	if s.Holder == "" || s.Holder == p.leases.process {
		return fmt.Errorf("%w: no process does at the moment", ErrElsewhere)
	}
	return fmt.Errorf("%w: %s does", ErrElsewhere, s.Holder)
}

// trouble returns the error in a partition's status.
func (p *Projector[U]) trouble(partition int) error {
	if s := p.Status()[partition]; s.Error != "" {
		return errors.New(s.Error)
	}
	return nil
}
