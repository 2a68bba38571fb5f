package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mneme/events"
	"mneme/pkg/eventlog"
)

// State is where a projector is on its partition.
type State string

const (
	StateIdle       State = "idle"
	StateCatchingUp State = "catching up"
	StateLive       State = "live"
	StateHalted     State = "halted"
)

// Status is what a projector says about one of its partitions.
type Status struct {
	Projection string
	Partition  int
	State      State
	Checkpoint Checkpoint
	Head       uint64 // last sequence of the partition, if [Progress] has asked
	Lag        uint64 // events of the partition not yet applied, as the server last said
	Error      string // the store's present trouble, or why the projector halted
	Retries    uint64 // how often the projector has waited for a store or a server since it began
}

// The size of a batch. There is no waiting to fill one: what is there is applied. A
// larger one writes the pages that its events share once, and the writer waits less
// often for the decoder; one of 4000 takes less than 0.1 s.
const (
	maxBatchEvents = 4000
	maxBatchBytes  = 8 << 20
)

// aheadBatches is how many batches may be decoded and waiting for the writer: enough
// to bridge a checkpoint of the store, few enough to bound memory (each has at most
// maxBatchBytes).
const aheadBatches = 1

// How long a projector waits before it tries a store or a server again.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// drainTime is enough to decode what an interrupted follower has delivered.
const drainTime = 50 * time.Millisecond

// Projector drives a projection on all partitions of the log. It needs to be the
// only one on its store, which a lock on the data directory ensures; if it is not,
// the fence keeps the read model right and the older one ends.
type Projector[U Unit] struct {
	projection Projection[U]
	log        *eventlog.Log
	store      Store[U]
	slog       *slog.Logger
	observer

	mu       sync.Mutex
	statuses []Status
	requests []chan request
	gone     []chan struct{} // closed when nobody will take a partition's requests any more
	cancel   context.CancelFunc
	ended    sync.WaitGroup
}

// request asks the goroutine that owns a partition to do something between two batches.
type request struct {
	do   func(ctx context.Context, cp Checkpoint) (outcome, error)
	done chan answer
}

type answer struct {
	out outcome
	err error
}

// ErrNotRunning is returned for a request to a projector that was not started, was
// stopped, or is halted.
var ErrNotRunning = errors.New("the projector is not running")

// NewProjector makes a projector; Start sets it going.
func NewProjector[U Unit](p Projection[U], log *eventlog.Log, store Store[U], logger *slog.Logger, options ...Option) (*Projector[U], error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	pr := &Projector[U]{projection: p, log: log, store: store, slog: logger.With("projection", p.Name)}
	for _, option := range options {
		option(&pr.observer)
	}
	for n := range log.Partitions() {
		pr.statuses = append(pr.statuses, Status{Projection: p.Name, Partition: n, State: StateIdle})
		pr.requests = append(pr.requests, make(chan request))
		pr.gone = append(pr.gone, make(chan struct{}))
	}
	return pr, nil
}

// Name is the projection's name.
func (p *Projector[U]) Name() string { return p.projection.Name }

// Start begins to drive every partition. A second Start does nothing.
func (p *Projector[U]) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	for n := range p.statuses {
		p.ended.Go(func() {
			defer close(p.gone[n])
			p.own(ctx, n)
		})
	}
}

// Stop finishes the batches in hand and waits for the goroutines. It is
// idempotent and legal before Start.
func (p *Projector[U]) Stop() {
	p.mu.Lock()
	cancel := p.cancel
	if cancel == nil {
		p.cancel = func() {}
		for _, gone := range p.gone {
			close(gone)
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
	return append([]Status(nil), p.statuses...)
}

func (p *Projector[U]) update(partition int, change func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.statuses[partition])
}

// own drives one partition until ctx ends or the projector halts. Trouble with
// the store or the server is waited out.
func (p *Projector[U]) own(ctx context.Context, partition int) {
	logger := p.slog.With("partition", partition)
	backoff := minBackoff
	history := uint64(0)
	for ctx.Err() == nil {
		began, seq := time.Now(), p.Status()[partition].Checkpoint.Seq
		err := p.drive(ctx, partition, &history)
		if ctx.Err() != nil {
			break
		}
		var halt *haltError
		if errors.As(err, &halt) || errors.Is(err, ErrRebuild) || errors.Is(err, ErrFenced) {
			logger.Error("projector halted", "error", err)
			p.update(partition, func(s *Status) { s.State, s.Error = StateHalted, err.Error() })
			return
		}
		logger.Warn("projector waits and tries again", "error", err, "after", backoff)
		p.update(partition, func(s *Status) { s.State, s.Error, s.Retries = StateCatchingUp, err.Error(), s.Retries+1 })
		if time.Since(began) > maxBackoff || p.Status()[partition].Checkpoint.Seq > seq {
			backoff = minBackoff
		}
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
		}
		backoff = min(2*backoff, maxBackoff)
	}
	p.update(partition, func(s *Status) { s.State = StateIdle })
}

// haltError is a reason to stop for good: the log and the read model do not belong together.
type haltError struct{ reason string }

func (e *haltError) Error() string { return e.reason }

// drive takes the partition over and applies its events until something fails. It sets
// history if the read model is built anew: to the end of what there was before.
func (p *Projector[U]) drive(ctx context.Context, partition int, history *uint64) error {
	cp, err := p.store.Acquire(ctx, partition, p.projection.Fingerprint())
	if err != nil {
		return err
	}
	if err := p.checkTail(ctx, cp); err != nil {
		var halt *haltError
		if errors.As(err, &halt) {
			err = errors.Join(err, p.store.Halt(ctx, partition, cp.Epoch, halt.reason))
		}
		return err
	}
	if cp.Halted != "" {
		if err := p.store.Halt(ctx, partition, cp.Epoch, ""); err != nil {
			return err
		}
		cp.Halted = ""
	}
	goal, err := p.log.LastOf(ctx, partition)
	if err != nil {
		return err
	}
	if cp.Seq == 0 {
		*history = goal
	}
	follower, err := p.log.Follow(ctx, partition, cp.Seq+1)
	if err != nil {
		return err
	}
	defer follower.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := decodeAll(ctx, follower, p.decode)

	p.update(partition, func(s *Status) {
		s.State, s.Checkpoint, s.Error, s.Lag = StateCatchingUp, cp, "", follower.Pending()
		if cp.Seq >= goal {
			s.State = StateLive
		}
	})
	for {
		var batch []*entry
		select {
		case <-ctx.Done():
			return nil
		case <-follower.Interrupted():
			select {
			case batch = <-batches: // delivered before, and valid
			case <-time.After(drainTime):
				return eventlog.ErrInterrupted
			}
		case r := <-p.requests[partition]:
			out, err := r.do(ctx, cp)
			r.done <- answer{out, err}
			continue
		case batch = <-batches:
		}
		began := time.Now()
		out, err := p.projection.apply(ctx, p.store, cp, batch, nil)
		if err != nil {
			return err
		}
		cp = out.checkpoint
		p.observe(partition, batch, out, began, *history)
		if out.failed > 0 {
			p.slog.Warn("events were skipped", "partition", partition, "count", out.failed, "up to", cp.Seq)
		}
		p.update(partition, func(s *Status) {
			s.Checkpoint, s.Lag = cp, batch[len(batch)-1].pending
			if cp.Seq >= goal {
				s.State = StateLive
			}
		})
		if err := p.log.Announce(p.projection.Name, partition, cp.Seq); err != nil {
			return fmt.Errorf("announce progress: %w", err)
		}
	}
}

// decodeAll decodes beside the writer, in order. The writer gets what is there as
// soon as it is ready for it; while it is busy the batch grows, and when it is full
// the next ones begin.
func decodeAll(ctx context.Context, follower *eventlog.Follower, decode func(eventlog.Message) *entry) <-chan []*entry {
	batches := make(chan []*entry)
	go func() {
		var queue [][]*entry // all full but the last
		size := 0            // of the last
		take := func(m eventlog.Message) {
			if n := len(queue); n == 0 || len(queue[n-1]) >= maxBatchEvents || size >= maxBatchBytes {
				queue, size = append(queue, make([]*entry, 0, maxBatchEvents)), 0
			}
			last := &queue[len(queue)-1]
			*last = append(*last, decode(m))
			size += len(m.Data)
		}
		for {
			in := follower.C()
			if len(queue) > aheadBatches {
				in = nil
			}
			var out chan<- []*entry
			var first []*entry
			if len(queue) > 0 {
				out, first = batches, queue[0]
			}
			select {
			case m := <-in:
				take(m)
			case out <- first:
				queue = append(queue[:0], queue[1:]...)
			case <-ctx.Done():
				return
			}
		}
	}()
	return batches
}

// checkTail makes sure that the log still holds what the checkpoint says was
// applied. After a power loss sequences can be used again for other events.
func (p *Projector[U]) checkTail(ctx context.Context, cp Checkpoint) error {
	if cp.Seq == 0 {
		return nil
	}
	state, err := p.log.State(ctx)
	if err != nil {
		return err
	}
	if cp.Seq > state.Head {
		return &haltError{fmt.Sprintf("the log ends at sequence %d but %s has applied %d: the log lost its tail, or this is another log. Rebuild %s from this log, or restore the log",
			state.Head, p.projection.Name, cp.Seq, p.projection.Name)}
	}
	message, err := p.log.Get(ctx, cp.Seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil // purged since
	}
	if err != nil {
		return err
	}
	if message.Digest() != cp.Event {
		return &haltError{fmt.Sprintf("sequence %d holds another event than the one that %s has applied: the log lost its tail and was written again, or this is another log. Rebuild %s from this log",
			cp.Seq, p.projection.Name, p.projection.Name)}
	}
	return nil
}

// Repair makes one conversation anew in one transaction: its rows are deleted and
// its events up to the checkpoint are applied again from the log, in order. It is
// how a failed event is tried again. It returns how many events were applied and
// how many failed, or [ErrNotRunning].
func (p *Projector[U]) Repair(ctx context.Context, id events.ConversationID) (applied, failed int, err error) {
	p.mu.Lock()
	started := p.cancel != nil
	p.mu.Unlock()
	if !started {
		return 0, 0, fmt.Errorf("repair %q: %w", id.ID, ErrNotRunning)
	}
	_, partition, err := p.log.Last(ctx, id.Tenant, id.ID)
	if err != nil {
		return 0, 0, err
	}
	r := request{done: make(chan answer, 1), do: func(ctx context.Context, cp Checkpoint) (outcome, error) {
		return p.projection.repair(ctx, p.log, p.store, cp, id)
	}}
	select {
	case p.requests[partition] <- r: // which is answered in any case
	case <-p.gone[partition]:
		return 0, 0, fmt.Errorf("repair %q: %w", id.ID, errors.Join(ErrNotRunning, p.trouble(partition)))
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

// trouble is the error in a partition's status.
func (p *Projector[U]) trouble(partition int) error {
	if s := p.Status()[partition]; s.Error != "" {
		return errors.New(s.Error)
	}
	return nil
}
