package summarizer

import (
	"context"
	"log/slog"
	"sync"
	"time"

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
	wake chan struct{} // there may be something to do

	mu      sync.Mutex
	queue   queue
	busy    map[events.ConversationID]bool // being worked on; true: touched meanwhile
	working int                            // workers, without those of requests
	scanned map[int]bool                   // partitions that were live when last looked at
	trouble map[events.ConversationID]trouble
	seen    map[events.ConversationID]*seen
	figures Figures

	cancel  context.CancelFunc
	stopped bool
	ended   sync.WaitGroup
}

// Figures count what the reactor did since it was started.
type Figures struct {
	Written   int64 `json:"written"`   // summaries
	Fallbacks int64 `json:"fallbacks"` // of these, those that a model was to write and did not
	Titles    int64 `json:"titles"`
	Condensed int64 `json:"condensed"` // results of tools
	Calls     int64 `json:"calls"`     // of models, those that failed too
	Input     int64 `json:"input_tokens"`
	Output    int64 `json:"output_tokens"`
	Queued    int   `json:"queued"`  // conversations whose turn it is, to see whether something is due
	Running   int   `json:"running"` // conversations that are worked on
	Waiting   int   `json:"waiting"` // conversations that wait for a store, a server or a model
}

func (f *Figures) pay(u summary.Usage) {
	f.Calls += int64(u.Calls)
	f.Input += u.InputTokens
	f.Output += u.OutputTokens
}

// New makes a reactor that does nothing yet.
func New(c Config) *Reactor {
	return &Reactor{
		Config: c, slog: c.Logger.With("part", "summarizer"), wake: make(chan struct{}, 1),
		busy: map[events.ConversationID]bool{}, scanned: map[int]bool{}, trouble: map[events.ConversationID]trouble{}, seen: map[events.ConversationID]*seen{},
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
func (r *Reactor) spawn(run func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.ended.Go(run)
	}
	return !r.stopped
}

// Touch says that events of these conversations were applied. What waits in a partition
// that is not live is found when it is: a replay fills no queue.
func (r *Reactor) Touch(ids []events.ConversationID) {
	live := map[int]bool{}
	for _, id := range ids {
		partition := r.Log.PartitionOf(id.Tenant, id.ID)
		if _, known := live[partition]; !known {
			live[partition] = r.drives(partition)
		}
		if live[partition] {
			r.enqueue(id, time.Now().Add(settle))
		}
	}
	r.awake()
}

// drives tells whether this process is to work on a partition. What is not done because
// it is not is found again when it is.
func (r *Reactor) drives(partition int) bool {
	_, live := r.Live(partition)
	if !live {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.scanned, partition)
	}
	return live
}

// awake makes the reactor look what it can do.
func (r *Reactor) awake() {
	select {
	case r.wake <- struct{}{}:
	default: // it is awake
	}
}

// Figures tells what was done so far.
func (r *Reactor) Figures() Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.figures
	f.Queued, f.Running, f.Waiting = r.queue.due(time.Now()), len(r.busy), len(r.trouble)
	return f
}

// Wait says how many conversations of a partition wait for a store, a server or a model,
// and why the one does that has waited longest.
type Wait struct {
	Conversations int
	Err           error
}

// Waits are those of the partitions in which conversations wait.
func (r *Reactor) Waits() map[int]Wait {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits, since := map[int]Wait{}, map[int]time.Time{}
	for id, t := range r.trouble {
		partition := r.Log.PartitionOf(id.Tenant, id.ID)
		w := waits[partition]
		if w.Conversations++; w.Err == nil || t.since.Before(since[partition]) {
			w.Err, since[partition] = t.err, t.since
		}
		waits[partition] = w
	}
	return waits
}

func (r *Reactor) count(add func(f *Figures)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.figures)
}
