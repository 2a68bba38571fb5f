package projection

import (
	"context"
	"time"

	"mneme.dev/mneme/pkg/eventlog"
)

// FinishWithin sets how long the current batch may take when a partition is given back.
func (l *Leases) FinishWithin(d time.Duration) { l.finish = d }

// Window sets how many events a reader's window holds.
func (f *Feed) Window(events int) { f.window = events }

// Readers returns for each reader of a partition how many projectors share it.
func (f *Feed) Readers(partition int) []int {
	l := f.lanes[partition]
	l.mu.Lock()
	defer l.mu.Unlock()
	sizes := []int{}
	for _, r := range l.readers {
		sizes = append(sizes, r.size())
	}
	return sizes
}

// ReplayUpTo replays a partition as Verify does when the event at the goal was erased after Verify saw it.
func ReplayUpTo[U Unit](ctx context.Context, p Projection[U], log *eventlog.Log, store Store[U], cp Checkpoint, goal uint64) error {
	r := &replay[U]{projection: p, log: log, store: store, cp: cp}
	return r.follow(ctx, goal, map[uint64]error{}, nil)
}
