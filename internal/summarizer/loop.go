package summarizer

import (
	"context"
	"time"

	"github.com/sourcegraph/conc/pool"

	"mneme/events"
	"mneme/pkg/summary"
)

// run looks for work until ctx ends, and waits for what is under way.
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
			workers.Go(func() { r.work(ctx, id) }) // there is room
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

// sleep waits until a time, or until there may be something to do.
func (r *Reactor) sleep(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-ctx.Done():
	}
}

// scan is the search for what waits in partitions that have become live, page by page:
// the next one is read when there is nothing else to do, so that little is held at once.
type scan struct {
	partitions map[int]bool
	query      summary.WaitingQuery
	failed     time.Time // when a page could not be read; zero if it could
}

// scanFresh begins a search, or begins it anew, if partitions have become live.
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

// scanOn reads the next page; nil if it was the last one.
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
			r.slog.Warn("what waits to be summarised is not known, it is looked up again", "error", err)
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

// listenLive takes requests for the partitions that are live, and for no others.
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
			r.slog.Warn("nobody can ask for summaries", "partition", partition, "error", err)
			continue
		}
		listening[partition] = stop
	}
}

// enqueue has a conversation worked on, from a time on unless it waits already.
func (r *Reactor) enqueue(id events.ConversationID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again(id, at)
}

// again is enqueue for those who have the lock.
func (r *Reactor) again(id events.ConversationID, at time.Time) {
	if _, busy := r.busy[id]; busy {
		r.busy[id] = true
		return
	}
	r.queue.add(id, at)
}
