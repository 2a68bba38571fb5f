package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// reader keeps the read model "graph" up to date, and opens the log again when it gets more partitions, as the programs
// do.
type reader struct {
	path  string
	ended chan struct{}
	cut   context.CancelFunc

	mu        sync.Mutex
	log       *eventlog.Log // nil while there is none
	store     *sqlitestore.Store[*graph.Unit]
	err       error
	last      map[int]int // the newest applied message by conversation
	reordered int
}

// follow starts a reader.
func follow(ctx context.Context, s *scratch) (*reader, error) {
	conn, err := eventlog.Connect(s.server.ClientURL(), "reader", quiet)
	if err != nil {
		return nil, err
	}
	ctx, cut := context.WithCancel(ctx)
	r := &reader{path: filepath.Join(s.dir, "models", "graph.db"), ended: make(chan struct{}), cut: cut, last: map[int]int{}}
	go func() {
		defer close(r.ended)
		defer conn.Close()
		for {
			log, err := eventlog.Open(ctx, conn)
			if err == nil {
				err = r.serve(ctx, log)
			}
			if ctx.Err() != nil || !errors.Is(err, eventlog.ErrPartitions) {
				r.mu.Lock()
				r.err = err
				r.mu.Unlock()
				return
			}
		}
	}()
	return r, nil
}

// serve applies the log until it has other partitions.
func (r *reader) serve(ctx context.Context, log *eventlog.Log) (err error) {
	store, err := sqlitestore.OpenGraph(ctx, r.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	p := graph.Projection()
	apply := p.Reducers[events.TypeMessageCreated]
	p.Reducers[events.TypeMessageCreated] = func(u *graph.Unit, e *events.Recorded) error {
		r.note(e)
		return apply(u, e)
	}
	projector, err := projection.NewProjector(p, log, store.Store, quiet)
	if err != nil {
		return err
	}
	projector.Start()
	defer projector.Stop()
	r.now(log, store.Store)
	defer r.now(nil, nil)
	return log.AwaitSplit(ctx)
}

func (r *reader) now(log *eventlog.Log, store *sqlitestore.Store[*graph.Unit]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log, r.store = log, store
}

// note counts messages that are applied before their predecessors. A repeated transaction applies messages again.
func (r *reader) note(e *events.Recorded) {
	m, ok := e.Payload.(*events.MessageCreated)
	if !ok {
		return
	}
	c, n, err := numberOf(e.Subject, m.MessageID)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := 0
	if last, known := r.last[c]; known {
		next = last + 1
	}
	if n > next {
		r.reordered++
	}
	r.last[c] = max(r.last[c], n)
}

// await waits until the reader has this many partitions and has applied everything that they hold now.
func (r *reader) await(ctx context.Context, partitions int) error {
	var goals []uint64
	for {
		done, err := r.reached(ctx, partitions, &goals)
		if err != nil || done {
			return err
		}
		select {
		case <-r.ended:
			return errors.Join(errors.New("the reader ended"), r.err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *reader) reached(ctx context.Context, partitions int, goals *[]uint64) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.log == nil || r.log.Partitions() != partitions {
		return false, nil
	}
	if *goals == nil {
		for n := range partitions {
			last, err := r.log.LastOf(ctx, n)
			if err != nil {
				return false, err
			}
			*goals = append(*goals, last)
		}
	}
	list, err := r.store.Checkpoints(ctx)
	if err != nil {
		return false, err
	}
	at := make([]uint64, partitions)
	for _, cp := range list {
		if cp.Halted != "" {
			return false, fmt.Errorf("partition %d is halted: %s", cp.Partition, cp.Halted)
		}
		at[cp.Partition] = cp.Seq
	}
	for n, goal := range *goals {
		if at[n] < goal {
			return false, nil
		}
	}
	return true, nil
}

// stop ends the reader. It can be called again.
func (r *reader) stop() error {
	r.cut()
	<-r.ended
	return r.err
}

// order checks the numbers of one conversation's messages.
type order struct {
	next  int
	early map[int]bool
}

func (o *order) see(n int, out *Order) {
	switch {
	case n < o.next || o.early[n]:
		out.Doubled++
	case n > o.next:
		if o.early == nil {
			o.early = map[int]bool{}
		}
		o.early[n] = true
	default:
		if len(o.early) > 0 {
			out.Reordered++
		}
		for o.next++; o.early[o.next]; o.next++ {
			delete(o.early, o.next)
		}
	}
}

// lost returns how many of the messages were not seen.
func (o *order) lost(count int) int { return count - o.next - len(o.early) }

// inLog checks the whole log.
func (w *writers) inLog(ctx context.Context, conn *nats.Conn) (out Order, err error) {
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		return out, err
	}
	state, err := log.State(ctx)
	if err != nil {
		return out, err
	}
	seen := make([]order, len(w.counts))
	err = log.ScanAll(ctx, 1, state.Head, func(m eventlog.Message) error {
		decoded, _, err := m.Decode()
		if err != nil {
			return err
		}
		message, ok := decoded.Payload.(*events.MessageCreated)
		if !ok {
			return fmt.Errorf("the log holds a %T, which nobody published", decoded.Payload)
		}
		c, n, err := numberOf(decoded.Subject, message.MessageID)
		if err != nil {
			return err
		}
		seen[c].see(n, &out)
		return nil
	})
	for c, count := range w.counts {
		out.Lost += seen[c].lost(count)
	}
	return out, err
}

// inModel checks all conversations in the read model. Its rows are in the order of the log, so rows out of order were
// applied in that order.
func (w *writers) inModel(ctx context.Context, r *reader) (out Order, err error) {
	store, err := sqlitestore.OpenGraph(ctx, r.path)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	const page = 500
	for c, count := range w.counts {
		var seen order
		name := fmt.Sprintf("numbered-%d", c)
		for from := uint64(1); ; {
			list, err := store.Messages(ctx, events.ConversationID{Tenant: tenant, ID: name}, graph.MessageQuery{From: from, Limit: page, OldestFirst: true})
			if err != nil && !errors.Is(err, graph.ErrNotFound) {
				return out, err
			}
			for _, m := range list {
				_, n, err := numberOf(name, m.MessageID)
				if err != nil {
					return out, err
				}
				seen.see(n, &out)
				from = m.Seq + 1
			}
			if len(list) < page {
				break
			}
		}
		out.Lost += seen.lost(count)
	}
	out.Reordered += r.reordered
	return out, nil
}
