package projection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Inheritor is a store whose rows name the partition of their conversation.
type Inheritor interface {
	// Inherit makes a new partition, whose first checkpoint is cp, the owner of the conversations that now belong to
	// it, so that readers see what they saw before. The conversations come from its ancestors: after several splits,
	// some may still be in an ancestor of its parent. It may be repeated.
	Inherit(ctx context.Context, ancestors []int, cp Checkpoint, belong func(events.ConversationID) bool) error
}

// Bounds of the wait before a new partition looks again whether its parent is far enough.
const (
	minLook = 20 * time.Millisecond
	maxLook = time.Second
)

// inherit gives a partition that a split made its first checkpoint, the last sequence before the
// split, once the read model has applied what its conversations had until then. It returns cp
// unchanged if the partition is as old as the log or has a checkpoint, or if ctx ends or stop is closed.
func (p *Projector[U]) inherit(ctx context.Context, stop <-chan struct{}, cp Checkpoint) (Checkpoint, error) {
	_, upTo, ok := p.log.Parent(cp.Partition)
	if !ok || cp.Seq >= upTo {
		return cp, nil
	}
	for wait := minLook; ; wait = min(2*wait, maxLook) {
		cps, err := p.store.Checkpoints(ctx)
		if err != nil {
			return cp, err
		}
		behind, err := precedes(ctx, p.log, cps, cp.Partition)
		if err != nil {
			return cp, err
		}
		if behind < 0 {
			break
		}
		p.update(cp.Partition, func(s *Status) {
			s.State, s.Checkpoint = StateCatchingUp, cp
			s.Error = fmt.Sprintf("waits until partition %d, whose conversations it continues, has applied sequence %d", behind, upTo)
		})
		if rest(ctx, stop, wait); ended(ctx, stop) {
			return cp, nil
		}
	}
	first := cp
	first.Seq = upTo
	message, err := p.log.Get(ctx, upTo)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return cp, err
	}
	if err == nil {
		first.Event = message.Digest()
	}
	if s, ok := any(p.store).(Inheritor); ok {
		belong := func(id events.ConversationID) bool { return p.log.PartitionOf(id.Tenant, id.ID) == cp.Partition }
		if err := s.Inherit(ctx, ancestors(p.log, cp.Partition), first, belong); err != nil {
			return cp, err
		}
	}
	err = p.store.Update(ctx, cp.Partition, func(tx Tx[U]) error {
		now, err := tx.Checkpoint(ctx)
		if err != nil {
			return err
		}
		if now.Epoch != cp.Epoch {
			return ErrFenced
		}
		return tx.Advance(ctx, first)
	})
	if err != nil {
		return cp, err
	}
	p.update(cp.Partition, func(s *Status) { s.Error = "" }) // it waits no longer
	return first, nil
}

// ancestors returns the partitions that a partition continues, the nearest first.
func ancestors(log *eventlog.Log, partition int) (list []int) {
	for parent, _, ok := log.Parent(partition); ok; parent, _, ok = log.Parent(parent) {
		list = append(list, parent)
	}
	return list
}

// precedes returns an ancestor of a new partition that a read model must first apply further, -1 if the new partition
// may begin.
func precedes(ctx context.Context, log *eventlog.Log, cps []Checkpoint, partition int) (behind int, err error) {
	for {
		parent, upTo, ok := log.Parent(partition)
		if !ok || seqOf(cps, partition) >= upTo {
			return -1, nil
		}
		next, err := log.NextOf(ctx, parent, seqOf(cps, parent)+1)
		if err != nil {
			return -1, err
		}
		if next > 0 && next <= upTo {
			return parent, nil
		}
		partition = parent // the parent may be just as new, and still empty
	}
}

func seqOf(cps []Checkpoint, partition int) uint64 {
	if n := slices.IndexFunc(cps, func(cp Checkpoint) bool { return cp.Partition == partition }); n >= 0 {
		return cps[n].Seq
	}
	return 0
}

// AppliedOf returns the sequence up to which a read model with these checkpoints has applied a conversation.
func AppliedOf(log *eventlog.Log, cps []Checkpoint, id events.ConversationID) uint64 {
	partition, most := log.PartitionOf(id.Tenant, id.ID), ^uint64(0)
	for {
		seq := seqOf(cps, partition)
		parent, upTo, ok := log.Parent(partition)
		if seq > 0 || !ok {
			return min(seq, most)
		}
		partition, most = parent, min(most, upTo)
	}
}
