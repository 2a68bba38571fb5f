package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// maxHeldBytes limits the messages that a repair keeps in memory. It reads the rest of a longer
// conversation inside the transaction, piece by piece; a shorter one is read before it, so that the
// log can't keep the transaction open.
const maxHeldBytes = 2 * maxBatchBytes

// repair drops a conversation and reapplies its events up to the checkpoint.
func (p *Projection[U]) repair(ctx context.Context, log *eventlog.Log, s Store[U], mine Checkpoint, id events.ConversationID) (outcome, error) {
	return p.reapply(ctx, s, mine, id, func(yield func(eventlog.Message) error) error {
		return log.Conversation(ctx, id.Tenant, id.ID, mine.Seq, yield)
	})
}

// Reapply rebuilds one conversation in one transaction of a store that was acquired with cp: it
// deletes the conversation's rows and applies messages, which must be all of its messages up to the
// checkpoint, in order. It returns how many were applied and how many failed. Like
// [Projection.Apply] it is for stores that no projector drives.
//
// If the store cannot take the conversation in one transaction, it returns [ErrTooLarge] and
// changes nothing; then only a rebuild repairs the conversation.
func (p *Projection[U]) Reapply(ctx context.Context, s Store[U], cp Checkpoint, id events.ConversationID, messages []eventlog.Message) (applied, failed int, err error) {
	out, err := p.reapply(ctx, s, cp, id, func(yield func(eventlog.Message) error) error {
		for _, m := range messages {
			if err := yield(m); err != nil {
				return err
			}
		}
		return nil
	})
	return out.applied, out.failed, err
}

// history is the events of a conversation that is being repaired. Only the first are in memory.
type history struct {
	read   func(yield func(eventlog.Message) error) error // reads all messages from the log
	decode func(eventlog.Message) *entry
	held   []*entry // the first maxHeldBytes of messages, and one message more
	count  int      // of all events
}

// hold reads the conversation once: it keeps the first events and counts all.
func (h *history) hold() error {
	size := 0
	return h.read(func(m eventlog.Message) error {
		if size < maxHeldBytes {
			h.held = append(h.held, h.decode(m))
		}
		size += len(m.Data)
		h.count++
		return nil
	})
}

// pieces yields all events in order, at most limit at a time. If not all are held, it reads the log
// again.
func (h *history) pieces(limit int, yield func([]*entry) error) error {
	var piece []*entry
	size := 0
	add := func(e *entry) error {
		piece = append(piece, e)
		if size += len(e.message.Data); len(piece) < limit && size < maxBatchBytes {
			return nil
		}
		full := piece
		piece, size = nil, 0
		return yield(full)
	}
	for _, e := range h.held {
		if err := add(e); err != nil {
			return err
		}
	}
	if len(h.held) < h.count {
		var refused error // the error of yield, kept because the log would wrap it as if reading had failed
		last := h.held[len(h.held)-1].seq
		err := h.read(func(m eventlog.Message) error {
			if m.Seq > last {
				refused = add(h.decode(m))
			}
			return refused
		})
		if refused != nil {
			return refused
		}
		if err != nil {
			return err
		}
	}
	if len(piece) == 0 {
		return nil
	}
	return yield(piece)
}

func (p *Projection[U]) reapply(ctx context.Context, s Store[U], mine Checkpoint, id events.ConversationID, read func(yield func(eventlog.Message) error) error) (outcome, error) {
	h := &history{read: read, decode: p.decode}
	if err := h.hold(); err != nil {
		return outcome{}, err
	}
	skip := map[uint64]error{}
	limit, scan := maxBatchEvents, false
	for attempt := 1; ; attempt++ {
		out, err := p.repairOnce(ctx, s, mine, id, h, limit, scan, skip)
		scan = false
		var bad poison
		switch {
		case errors.As(err, &bad):
			maps.Copy(skip, bad)
			scan = attempt%mostAttempts == 0
		case errors.Is(err, ErrRejected) && limit > 1:
			limit = 1 // one by one, to see which event is refused
		case errors.Is(err, ErrTooLarge):
			// Readers would see the rows deleted before they are written again, so it is not split.
			return out, fmt.Errorf("repair %q: its %d events are too much for one transaction of the store, nothing was changed; raise the server's limit of memory or time for a transaction and try again, or run mneme rebuild %s, which has no such limit: %w", id.ID, h.count, p.Name, ErrTooLarge)
		default:
			return out, err
		}
	}
}

// prepared is what [Projection.Prepare] returned for a piece.
type prepared[U Unit] struct {
	last uint64 // sequence of the piece's last event
	give func(U)
}

// repairOnce is one attempt: one transaction, limit events at a time. An attempt ends at the first piece with an event
// whose reducer fails, and a conversation with many of them would be repeated once for each. So a scan applies one event
// at a time and goes on without those that fail, to find all of them in one attempt, which is then undone.
func (p *Projection[U]) repairOnce(ctx context.Context, s Store[U], mine Checkpoint, id events.ConversationID, h *history, limit int, scan bool, skip map[uint64]error) (total outcome, err error) {
	if scan {
		limit = 1
	}
	ready := map[uint64]prepared[U]{} // by the sequence of the piece's first event
	if p.Prepare != nil {
		err := h.pieces(limit, func(piece []*entry) error {
			give, err := p.prepare(ctx, piece, skip)
			if errors.Is(err, ErrRejected) && len(piece) == 1 {
				return poison{piece[0].seq: err}
			}
			ready[piece[0].seq] = prepared[U]{piece[len(piece)-1].seq, give}
			return err
		})
		if err != nil {
			return total, err
		}
	}
	p.derive(h.held)
	err = s.Update(ctx, mine.Partition, func(tx Tx[U]) error {
		total = outcome{}
		found, known := poison{}, &freed{} // of a scan
		cp, err := tx.Checkpoint(ctx)
		if err != nil {
			return err
		}
		if cp.Epoch != mine.Epoch {
			return ErrFenced
		}
		if err := tx.Drop(ctx, id); err != nil {
			return err
		}
		err = h.pieces(limit, func(piece []*entry) error {
			give := together(p.derive(piece))
			if p.Prepare != nil {
				of := ready[piece[0].seq]
				if of.last != piece[len(piece)-1].seq {
					return fmt.Errorf("repair %q: the log lost some of its events during the repair, and nothing was changed; try again", id.ID)
				}
				give = of.give
			}
			out, err := p.reduceIn(ctx, tx, piece, skip, known, give)
			if bad, ok := errors.AsType[poison](err); ok && scan {
				maps.Copy(found, bad)
				return nil
			}
			if errors.Is(err, ErrRejected) && len(piece) == 1 && skip[piece[0].seq] == nil {
				return poison{piece[0].seq: err}
			}
			if err != nil {
				return err
			}
			total.applied += out.applied
			total.duplicates += out.duplicates
			total.failed += out.failed
			return nil
		})
		if err == nil && len(found) > 0 {
			err = found
		}
		return err
	})
	return total, err
}
