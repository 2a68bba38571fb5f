package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// defaultWait is how long AtLeast waits if At does not say.
const defaultWait = 5 * time.Second

// At says which state of a conversation to read.
type At struct {
	// AtLeast waits until all events up to this sequence, of the conversation and of those
	// that it inherits from, are applied: a caller reads what it wrote.
	AtLeast uint64
	// AsOf reads the state as of this sequence; 0 reads the newest. It waits like AtLeast,
	// because otherwise the answer would change a moment later.
	AsOf uint64
	// Wait is how long to wait before a [*BehindError]; 0 means 5 s. It bounds only the wait
	// for events that are not applied, not the reads themselves.
	Wait time.Duration
}

func (at At) seq() uint64 { return cmp.Or(at.AsOf, graph.Latest) }

// wait is a wait that has begun, perhaps for several partitions and read models.
type wait struct {
	limit time.Duration
	until time.Time
}

func (at At) begin() wait {
	limit := cmp.Or(at.Wait, defaultWait)
	return wait{limit, time.Now().Add(limit)}
}

// BeyondError means that the log does not have a requested sequence yet.
type BeyondError struct {
	Name string // at_least or as_of
	Seq  uint64
	Head uint64 // the last sequence of the log
}

func (e *BeyondError) Error() string {
	return fmt.Sprintf("%s=%d is beyond the end of the log, which is %d", e.Name, e.Seq, e.Head)
}

// BehindError means that a read model did not apply a sequence in time.
type BehindError struct {
	Projection string
	Seq        uint64
	Waited     time.Duration
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("%s has not applied sequence %d within %s; see mneme status", e.Projection, e.Seq, e.Waited)
}

// inLog refuses sequences beyond the end of the log. It asks the server only about sequences
// after those it has seen within sameLogFor.
func (vs *Views) inLog(ctx context.Context, at At) error {
	if vs.head.holds(max(at.AtLeast, at.AsOf)) {
		return nil
	}
	state, err := vs.Log.State(ctx)
	if err == nil {
		vs.head.see(state.Head)
	}
	switch {
	case err != nil:
		return err
	case at.AtLeast > state.Head:
		return &BeyondError{"at_least", at.AtLeast, state.Head}
	case at.AsOf > state.Head:
		return &BeyondError{"as_of", at.AsOf, state.Head}
	}
	return nil
}

// head is the end of the log when it was last read. The zero value has seen no event.
type head struct {
	lock sync.Mutex
	seq  uint64
	at   time.Time
}

func (h *head) see(seq uint64) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.seq, h.at = seq, time.Now()
}

// holds reports whether the log certainly reaches a sequence. What it knows expires soon, because the log may be
// replaced by an earlier one.
func (h *head) holds(seq uint64) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return seq <= h.seq && time.Since(h.at) < sameLogFor
}

// awaitConversation waits until models have applied what is asked for, or this
// conversation's last event if that comes earlier.
func (vs *Views) awaitConversation(ctx context.Context, w wait, id events.ConversationID, at At, models []Model) error {
	last, number, err := vs.Log.Last(ctx, id.Tenant, id.ID)
	if err != nil {
		return err
	}
	for _, m := range models {
		if err := vs.await(ctx, w, m, number, min(max(at.AtLeast, at.AsOf), last)); err != nil {
			return err
		}
	}
	return nil
}

// AwaitAll waits until a model has applied AtLeast for all conversations: in each partition,
// AtLeast or the partition's last event if that comes earlier. AsOf must be 0.
func (vs *Views) AwaitAll(ctx context.Context, at At, m Model) error {
	if at.AtLeast == 0 {
		return nil
	}
	if err := vs.inLog(ctx, at); err != nil {
		return err
	}
	w := at.begin()
	for number := range vs.Log.Partitions() {
		last, err := vs.Log.LastOf(ctx, number)
		if err != nil {
			return err
		}
		if err := vs.await(ctx, w, m, number, min(at.AtLeast, last)); err != nil {
			return err
		}
	}
	return nil
}

// AwaitPartition waits until a model has applied a sequence of a partition, which must be in the log.
// After the limit it returns a [*BehindError].
func (vs *Views) AwaitPartition(ctx context.Context, limit time.Duration, m Model, number int, seq uint64) error {
	return vs.await(ctx, At{Wait: limit}.begin(), m, number, seq)
}

// await waits until a model has applied a sequence of a partition. It reads the checkpoint at
// least once, however little time w leaves.
func (vs *Views) await(ctx context.Context, w wait, m Model, number int, goal uint64) error {
	ended := func(error) {}
	waiting := ctx
	if vs.Awaiting != nil {
		waiting, ended = vs.Awaiting(ctx, m.Name, goal)
	}
	if goal == 0 {
		ended(nil)
		return nil
	}
	err := vs.watchers.await(waiting, vs.Log, w.until, m, number, goal)
	ended(err)
	late := errors.Is(err, errLate)
	if err == nil || late {
		if other := vs.followsLog(ctx, m, number); other != nil {
			return other
		}
	}
	if late {
		return &BehindError{m.Name, goal, w.limit}
	}
	return err
}

// AwaitAllAsOf is [Views.AwaitAll] for a read of all conversations as of a sequence.
func (vs *Views) AwaitAllAsOf(ctx context.Context, at At, m Model) error {
	if at.AsOf == 0 {
		return vs.AwaitAll(ctx, at, m)
	}
	if err := vs.inLog(ctx, at); err != nil {
		return err
	}
	return vs.AwaitAll(ctx, At{AtLeast: max(at.AtLeast, at.AsOf), Wait: at.Wait}, m)
}
