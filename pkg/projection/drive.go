package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Limits of a batch. A projector applies what has arrived and does not wait to fill a
// batch, except to relieve a burdened store. Large batches save work, because pages shared
// by their events are written once and the writer waits less often for the decoder; 4000
// events take SQLite less than 0.1 s. [BatchOf] sets another limit for a store where a
// large transaction is expensive.
const (
	maxBatchEvents = 4000
	maxBatchBytes  = 8 << 20
)

// Bounds of the wait before a store or a server is tried again.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// drainTime is how long a reader waits for each message that an interrupted follower still delivers.
const drainTime = 50 * time.Millisecond

// tenure drives a partition while this process has its lease. It keeps the lease of a
// halted partition because another process of this version would halt too, and somebody has to
// act anyway. A process of an older version might have continued with a read model that
// this version can't use; the partition stands still until all processes have one version.
func (p *Projector[U]) tenure(ctx context.Context, stop <-chan struct{}, partition int) error {
	gone := make(chan struct{})
	p.mu.Lock()
	p.gone[partition] = gone
	p.mu.Unlock()
	defer p.answer(partition)()
	err := p.own(ctx, stop, partition)
	close(gone)
	if isHalt(err) {
		select {
		case <-ctx.Done():
		case <-stop:
		}
	}
	p.update(partition, func(s *Status) {
		*s = Status{Build: s.Build, Partition: partition, State: StateIdle, Retries: s.Retries, Holder: s.Holder}
		p.meters[partition] = newMeter()
	})
	return err
}

// own drives one partition and retries after trouble with the store or the server. It
// returns nil if ctx ended, or stop was closed and the current batch is finished; otherwise
// why the projector halted, or [ErrFenced] if it shares the partition.
func (p *Projector[U]) own(ctx context.Context, stop <-chan struct{}, partition int) error {
	logger := p.slog.With("partition", partition)
	backoff := minBackoff
	history := uint64(0)
	var known trouble
	for {
		began, seq := time.Now(), p.Status()[partition].Checkpoint.Seq
		err := p.drive(ctx, stop, partition, &history)
		if err == nil || ctx.Err() != nil {
			break
		}
		if p.leases != nil && errors.Is(err, ErrFenced) {
			return err
		}
		if isHalt(err) || errors.Is(err, ErrFenced) {
			level := slog.LevelError
			if p.mended && errors.Is(err, ErrRebuild) {
				level = slog.LevelDebug
			}
			logger.Log(ctx, level, "projector halted", "error", err)
			p.update(partition, func(s *Status) { s.State, s.Error, s.OtherBuild = StateHalted, err.Error(), errors.Is(err, ErrRebuild) })
			return err
		}
		if known.isNews(err) {
			logger.Warn("projector failed; retrying until it succeeds", "error", err)
		}
		p.update(partition, func(s *Status) { s.State, s.Error, s.Retries = StateCatchingUp, err.Error(), s.Retries+1 })
		if time.Since(began) > maxBackoff || p.Status()[partition].Checkpoint.Seq > seq {
			backoff = minBackoff
		}
		rest(ctx, stop, backoff)
		backoff = min(2*backoff, maxBackoff)
	}
	p.update(partition, func(s *Status) { s.State = StateIdle })
	return nil
}

// drive takes the partition over and applies its events until something fails. It returns
// nil if ctx ended or stop was closed. If the read model is being built, it sets history to
// the last event that existed before.
func (p *Projector[U]) drive(ctx context.Context, stop <-chan struct{}, partition int, history *uint64) error {
	if ended(ctx, stop) {
		return nil
	}
	cp, err := p.takeOver(ctx, partition)
	if err != nil {
		return err
	}
	if cp, err = p.inherit(ctx, stop, cp); err != nil {
		return err
	}
	if ended(ctx, stop) {
		return nil
	}
	goal, err := p.log.LastOf(ctx, partition)
	if err != nil {
		return err
	}
	if cp.Seq == 0 || p.idle != nil {
		*history = goal
	}
	turn := newTurns(p.idle, p.batch, p.costly)
	in, err := p.join(ctx, partition, cp.Seq, turn)
	if err != nil {
		return err
	}
	defer func() { in.leave() }()

	p.update(partition, func(s *Status) {
		s.State, s.Checkpoint, s.Lag = StateCatchingUp, cp, in.lag()
		if cp.Seq >= goal {
			s.State, s.Error = StateLive, ""
		}
	})
	// An earlier owner may have died between a commit and its announcement.
	if err := p.log.Announce(p.projection.Name, partition, cp.Seq); err != nil {
		return fmt.Errorf("announce progress: %w", err)
	}
	for !ended(ctx, stop) {
		select {
		case <-ctx.Done():
			continue
		case <-stop:
			continue
		case r := <-p.requests[partition]:
			out, err := r.do(ctx, cp)
			r.done <- answer{out, err}
			if errors.Is(err, ErrFenced) {
				return err
			}
			continue
		case <-in.C():
		}
		move := p.mayShare(turn, cp.Seq >= goal)
		var taken []*decoded
		if !move {
			taken, err = in.take(turn.limit())
			move = errors.Is(err, errMove)
		}
		if move {
			if in, err = p.rejoin(ctx, in, cp, turn); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if len(taken) == 0 {
			continue
		}
		batch := p.projection.entries(taken)
		if batch[len(batch)-1].pending > uint64(p.batch) {
			if turn.wait(ctx, stop); ended(ctx, stop) {
				continue
			}
		}
		out, err := p.applyBatch(ctx, partition, cp, batch, turn, goal, *history)
		if err != nil {
			return err
		}
		cp = out.checkpoint
		p.applying.Add(1) // so that rebuilds yield
		rest(ctx, stop, turn.relief(len(batch), batch[len(batch)-1].pending, out.apply+out.commit))
		p.applying.Add(-1)
		if len(batch) < turn.limit() && cp.Seq >= *history {
			rest(ctx, stop, p.projection.Gather)
		}
	}
	return nil
}

// takeOver makes this projector the owner of a partition: the previous owner is fenced.
func (p *Projector[U]) takeOver(ctx context.Context, partition int) (Checkpoint, error) {
	// Check before the take-over: a process that follows another log must not fence the
	// right one.
	cp, err := p.position(ctx, partition)
	if err != nil {
		return cp, err
	}
	if err := p.checkTail(ctx, cp); err != nil {
		var halt *haltError
		if errors.As(err, &halt) && cp.Epoch == p.Status()[partition].Checkpoint.Epoch { // the partition is still this projector's
			err = errors.Join(err, p.store.Halt(ctx, partition, cp.Epoch, halt.reason))
		}
		return cp, err
	}
	if cp, err = p.store.Acquire(ctx, partition, p.projection.Fingerprint()); err != nil {
		return cp, err
	}
	if err := p.confirm(ctx, cp); err != nil { // an earlier owner may have written since
		return cp, err
	}
	if cp.Halted != "" {
		if err := p.store.Halt(ctx, partition, cp.Epoch, ""); err != nil {
			return cp, err
		}
		cp.Halted = ""
	}
	return cp, nil
}

// applyBatch applies a batch, and reports it to the metrics, to the status, and to readers that wait for its events. The
// partition is live from goal on; until history, the read model is being built.
func (p *Projector[U]) applyBatch(ctx context.Context, partition int, cp Checkpoint, batch []*entry, turn *turns, goal, history uint64) (outcome, error) {
	began := time.Now()
	p.applying.Add(1)
	out, err := p.projection.apply(ctx, p.store, cp, batch, nil)
	p.applying.Add(-1)
	if err != nil {
		return out, err
	}
	turn.took(len(batch), time.Since(began))
	p.observe(partition, batch, out, began, history)
	if out.failed > 0 {
		p.slog.Warn("events were skipped", "partition", partition, "count", out.failed, "up to", out.checkpoint.Seq)
	}
	p.update(partition, func(s *Status) {
		s.Checkpoint, s.Error, s.Lag = out.checkpoint, "", batch[len(batch)-1].pending
		p.worked = time.Now()
		p.meters[partition].add(len(batch))
		if out.checkpoint.Seq >= goal {
			s.State = StateLive
		}
	})
	if err := p.log.Announce(p.projection.Name, partition, out.checkpoint.Seq); err != nil {
		return out, fmt.Errorf("announce progress: %w", err)
	}
	return out, nil
}

// ended reports whether no further work may begin.
func ended(ctx context.Context, stop <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return true
	case <-stop:
		return true
	default:
		return false
	}
}
