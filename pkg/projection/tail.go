package projection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mneme.dev/mneme/pkg/eventlog"
)

// isHalt reports whether a projector must halt at this error because a retry would not help.
func isHalt(err error) bool {
	var halt *haltError
	return errors.As(err, &halt) || errors.Is(err, ErrRebuild) || errors.Is(err, ErrSuperseded) || errors.Is(err, ErrDamaged)
}

// haltError is a reason to halt: the log and the read model do not belong together.
type haltError struct{ reason string }

func (e *haltError) Error() string { return e.reason }

// position reads a partition's checkpoint without taking over the partition. A reader's checkpoint
// will not do: it may lag behind the commit, and not match the event read with it.
func (p *Projector[U]) position(ctx context.Context, partition int) (cp Checkpoint, err error) {
	list, err := p.store.Checkpoints(ctx)
	if err != nil || !slices.ContainsFunc(list, func(cp Checkpoint) bool { return cp.Partition == partition }) {
		return Checkpoint{}, err
	}
	err = p.store.Update(ctx, partition, func(tx Tx[U]) (err error) {
		cp, err = tx.Checkpoint(ctx)
		return err
	})
	return cp, err
}

// confirm is checkTail for a partition that the projector has taken over. It records a halt.
func (p *Projector[U]) confirm(ctx context.Context, cp Checkpoint) error {
	err := p.checkTail(ctx, cp)
	if halt, ok := errors.AsType[*haltError](err); ok {
		err = errors.Join(err, p.store.Halt(ctx, cp.Partition, cp.Epoch, halt.reason))
	}
	return err
}

// checkTail makes sure that the log still holds the event that the checkpoint names. After a power loss, other events
// can get the same sequences.
func (p *Projector[U]) checkTail(ctx context.Context, cp Checkpoint) error {
	lost, err := lostTail(ctx, p.log, cp)
	if err != nil || lost == "" {
		return err
	}
	return p.otherLog(lost)
}

// lostTail says what happened to the event that a checkpoint names, with a place for the projection's name, "" if the log holds it.
func lostTail(ctx context.Context, log *eventlog.Log, cp Checkpoint) (lost string, err error) {
	if cp.Seq == 0 {
		return "", nil
	}
	state, err := log.State(ctx)
	if err != nil {
		return "", err
	}
	if cp.Seq > state.Head {
		return "the log ends before the last event that %s has applied: the log lost its tail, or this is another log", nil
	}
	message, err := log.Get(ctx, cp.Seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return "", nil // purged since
	}
	if err != nil {
		return "", err
	}
	if message.Digest() != cp.Event {
		return "the log holds another event in the place of the last one that %s has applied: the log lost its tail and was written again, or this is another log", nil
	}
	return "", nil
}

// otherLog is a halt because the log is not the one that was applied. What happened names no sequences, which the status
// shows: so all partitions have one text, and are told of together.
func (p *Projector[U]) otherLog(happened string) error {
	name := p.projection.Name
	return &haltError{fmt.Sprintf(happened, name) + ". Name the right NATS server, restore the log from a backup, or have mneme repair log write back what read models still hold; mneme rebuild " + name + " then follows the log as it is"}
}
