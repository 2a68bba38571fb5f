package summarizer

import (
	"context"
	"time"

	"github.com/sourcegraph/conc/pool"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/summary"
)

// run looks for work until ctx ends, then waits for the work under way.
func (r *Reactor) run(ctx context.Context) {
	workers := pool.New().WithMaxGoroutines(r.Parallel)
	defer workers.Wait()
	listening := map[int]func(){}
	defer func() {
		for _, stop := range listening {
			stop()
		}
	}()
	var search *scan
	for looked := (time.Time{}); ctx.Err() == nil; {
		if time.Since(looked) >= tick {
			looked = time.Now()
			search = r.scanFresh(search)
			r.listenLive(ctx, listening)
		}
		for _, id := range r.ready() {
			workers.Go(func() { r.work(ctx, id) }) // never blocks: ready returns no more than there are free workers
		}
		until := looked.Add(tick)
		if next, idle := r.idle(); idle && search != nil {
			if search = r.scanOn(ctx, search); search != nil && search.failed.IsZero() {
				continue
			}
		} else if idle && !next.IsZero() && next.Before(until) {
			until = next
		}
		r.sleep(ctx, until)
	}
}

// sleep waits until the given time, or until there may be work.
func (r *Reactor) sleep(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-ctx.Done():
	}
}

// scan searches newly live partitions for waiting conversations. It reads the next page
// only when there is nothing else to do, so little is in memory at once.
type scan struct {
	partitions map[int]bool
	query      summary.WaitingQuery
	failed     time.Time // when the last page could not be read; zero if it could
}

// scanFresh starts the search over if more partitions have become live.
func (r *Reactor) scanFresh(search *scan) *scan {
	fresh := map[int]bool{}
	for partition := range r.Log.Partitions() {
		if !r.drives(partition) {
			continue
		}
		r.mu.Lock()
		if !r.scanned[partition] {
			r.scanned[partition], fresh[partition] = true, true
		}
		r.mu.Unlock()
	}
	if len(fresh) == 0 {
		return search
	}
	if search != nil {
		for partition := range search.partitions {
			fresh[partition] = true
		}
	}
	return &scan{partitions: fresh, query: r.Profiles.waiting()}
}

// scanOn reads the next page and returns nil after the last one.
func (r *Reactor) scanOn(ctx context.Context, search *scan) *scan {
	if time.Since(search.failed) < tick {
		return search
	}
	var list []summary.Conversation
	err := r.State(func(state summary.Reader) (err error) {
		list, err = state.Waiting(ctx, search.query)
		return err
	})
	if err != nil {
		if search.failed.IsZero() && ctx.Err() == nil {
			r.slog.Warn("cannot list conversations waiting for a summary; will retry", "error", err)
		}
		search.failed = time.Now()
		return search
	}
	search.failed = time.Time{}
	for _, c := range list {
		search.query.After = c.ID
		if search.partitions[r.Log.PartitionOf(c.ID.Tenant, c.ID.ID)] {
			r.enqueue(c.ID, time.Now())
		}
	}
	if len(list) < search.query.Limit {
		return nil
	}
	return search
}

// listenLive serves requests for exactly those partitions that are live.
func (r *Reactor) listenLive(ctx context.Context, listening map[int]func()) {
	for partition := range r.Log.Partitions() {
		live := r.drives(partition)
		stop := listening[partition]
		if live == (stop != nil) {
			continue
		}
		if !live {
			stop()
			delete(listening, partition)
			continue
		}
		stop, err := r.listen(ctx, partition)
		if err != nil {
			r.slog.Warn("cannot accept requests for summaries; will retry", "partition", partition, "error", err)
			continue
		}
		listening[partition] = stop
	}
}

// enqueue queues a conversation for the given time; if it is queued already, its time
// stays.
func (r *Reactor) enqueue(id events.ConversationID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again(id, at)
}

// again is enqueue for callers that hold the lock.
func (r *Reactor) again(id events.ConversationID, at time.Time) {
	if _, busy := r.busy[id]; busy {
		r.busy[id] = true
		return
	}
	r.queue.Add(id, at)
}
