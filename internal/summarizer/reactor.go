package summarizer

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"mneme/events"
	"mneme/pkg/eventlog"
	"mneme/pkg/files"
	"mneme/pkg/graph"
	"mneme/pkg/summary"
)

// Config is what a [Reactor] works with.
type Config struct {
	Log *eventlog.Log
	// State and Graph lend the read models for the time of a call.
	State func(func(summary.Reader) error) error
	Graph func(func(graph.Reader) error) error
	// Live tells how far the projector of "summaries" is on a partition, and whether this
	// process drives it and has caught up.
	Live     func(partition int) (seq uint64, live bool)
	Profiles Profiles
	Files    *files.Table
	Parallel int // conversations at once
	Logger   *slog.Logger
}

const (
	// tick is how often the reactor looks what it can do, if nothing wakes it.
	tick = time.Second
	// settle is how long a conversation waits after an event: several often come at once.
	settle = 200 * time.Millisecond
	// scanPage is how many conversations are listed at once when a partition is live.
	scanPage = 200
)

// Reactor writes what is due. Its zero value is of no use, see [New].
type Reactor struct {
	Config
	slog *slog.Logger

	mu      sync.Mutex
	dirty   map[events.ConversationID]time.Time // not before
	running map[events.ConversationID]bool
	trouble map[events.ConversationID]trouble
	figures Figures

	cancel  context.CancelFunc
	stopped bool
	ended   sync.WaitGroup
}

// trouble is why a conversation waits.
type trouble struct {
	since time.Time
	tries int
	err   error
}

// Figures count what the reactor did since it was started.
type Figures struct {
	Written   int64  `json:"written"`   // summaries
	Fallbacks int64  `json:"fallbacks"` // of these, those that a model was to write and did not
	Titles    int64  `json:"titles"`
	Condensed int64  `json:"condensed"` // results of tools
	Calls     int64  `json:"calls"`     // of models, those that failed too
	Input     int64  `json:"input_tokens"`
	Output    int64  `json:"output_tokens"`
	Running   int    `json:"running"`         // conversations that are worked on
	Waiting   int    `json:"waiting"`         // conversations that wait for a store, a server or a model
	Error     string `json:"error,omitempty"` // why one of them does
}

func (f *Figures) pay(u summary.Usage) {
	f.Calls += int64(u.Calls)
	f.Input += u.InputTokens
	f.Output += u.OutputTokens
}

// New makes a reactor that does nothing yet.
func New(c Config) *Reactor {
	return &Reactor{
		Config: c, slog: c.Logger.With("part", "summarizer"),
		dirty: map[events.ConversationID]time.Time{}, running: map[events.ConversationID]bool{}, trouble: map[events.ConversationID]trouble{},
	}
}

// Start begins to work. What was waiting before is found as soon as its partition is live.
func (r *Reactor) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.ended.Go(func() { r.run(ctx) })
}

// Stop ends what is under way, calls of models too, and waits for that.
func (r *Reactor) Stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
	}
	r.ended.Wait()
}

// spawn runs what Stop waits for, unless it was called.
func (r *Reactor) spawn(run func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.ended.Go(run)
	}
}

// Touch says that events of these conversations were applied.
func (r *Reactor) Touch(ids []events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if _, ok := r.dirty[id]; !ok {
			r.dirty[id] = time.Now().Add(settle)
		}
	}
}

// Figures tells what was done so far.
func (r *Reactor) Figures() Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.figures
	f.Running, f.Waiting = len(r.running), len(r.trouble)
	var since time.Time
	for _, t := range r.trouble {
		if since.IsZero() || t.since.Before(since) {
			since, f.Error = t.since, t.err.Error()
		}
	}
	return f
}

func (r *Reactor) count(add func(f *Figures)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.figures)
}

// run looks for work until ctx ends, and waits for what is under way.
func (r *Reactor) run(ctx context.Context) {
	workers := pool.New().WithMaxGoroutines(r.Parallel)
	defer workers.Wait()
	ticker := time.NewTicker(settle)
	defer ticker.Stop()
	scanned := map[int]bool{}
	listening := map[int]func(){}
	defer func() {
		for _, stop := range listening {
			stop()
		}
	}()
	for looked := (time.Time{}); ; {
		if time.Since(looked) >= tick {
			looked = time.Now()
			r.scanLive(ctx, scanned)
			r.listenLive(ctx, listening)
		}
		for _, id := range r.ready() {
			if ctx.Err() != nil {
				return
			}
			workers.Go(func() { r.work(ctx, id) })
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// scanLive lists what waits in partitions that have just become live.
func (r *Reactor) scanLive(ctx context.Context, scanned map[int]bool) {
	fresh := map[int]bool{}
	for partition := range r.Log.Partitions() {
		_, live := r.Live(partition)
		if live && !scanned[partition] {
			fresh[partition] = true
		}
		scanned[partition] = live
	}
	if len(fresh) == 0 {
		return
	}
	if err := r.scan(ctx, fresh); err != nil {
		r.slog.Warn("what waits to be summarised is not known, it is looked up again", "error", err)
		for partition := range fresh {
			scanned[partition] = false
		}
	}
}

// listenLive takes requests for the partitions that are live, and for no others.
func (r *Reactor) listenLive(ctx context.Context, listening map[int]func()) {
	for partition := range r.Log.Partitions() {
		_, live := r.Live(partition)
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

func (r *Reactor) scan(ctx context.Context, partitions map[int]bool) error {
	q := r.Profiles.waiting()
	for {
		var list []summary.Conversation
		err := r.State(func(state summary.Reader) (err error) {
			list, err = state.Waiting(ctx, q)
			return err
		})
		if err != nil {
			return err
		}
		var ids []events.ConversationID
		for _, c := range list {
			if partitions[r.Log.PartitionOf(c.ID.Tenant, c.ID.ID)] {
				ids = append(ids, c.ID)
			}
			q.After = c.ID
		}
		r.Touch(ids)
		if len(list) < q.Limit {
			return nil
		}
	}
}

// ready takes the conversations that can be worked on now, and marks them.
func (r *Reactor) ready() (list []events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for id, after := range r.dirty {
		if r.running[id] || now.Before(after) {
			continue
		}
		list = append(list, id)
	}
	slices.SortFunc(list, func(a, b events.ConversationID) int { return r.dirty[a].Compare(r.dirty[b]) })
	list = list[:min(len(list), max(0, 2*r.Parallel-len(r.running)))]
	for _, id := range list {
		delete(r.dirty, id)
		r.running[id] = true
	}
	return list
}

// work does what there is to do in a conversation, and notes when to try again.
func (r *Reactor) work(ctx context.Context, id events.ConversationID) {
	err := r.conversation(ctx, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, id)
	if err == nil || ctx.Err() != nil {
		delete(r.trouble, id)
		return
	}
	t := r.trouble[id]
	if t.tries == 0 {
		t.since = time.Now()
		r.slog.Warn("a conversation waits to be summarised, it is tried again", "tenant", id.Tenant, "conversation", id.ID, "error", err)
	}
	t.tries++
	t.err = err
	r.trouble[id] = t
	r.dirty[id] = time.Now().Add(backoff(t.tries, err))
}

// waitingSince is since when a conversation waits.
func (r *Reactor) waitingSince(id events.ConversationID) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.trouble[id]; ok {
		return t.since
	}
	return time.Now()
}

// How long a conversation waits that could not be worked on.
const (
	minWait = time.Second
	maxWait = time.Minute
)

func backoff(tries int, err error) time.Duration {
	wait := maxWait
	if tries < 7 {
		wait = min(wait, minWait<<(tries-1))
	}
	if until := retryAt(err); !until.IsZero() {
		wait = max(minWait, min(time.Until(until), 10*maxWait))
	}
	return wait
}
