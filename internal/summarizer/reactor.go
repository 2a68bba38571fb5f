package summarizer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/summarizer/queue"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/summary"
)

// Config configures a [Reactor].
type Config struct {
	Log *eventlog.Log
	// State lends the read model "summaries" for the duration of the call.
	State func(func(summary.Reader) error) error
	Views *view.Views // of the graph; they need no cache
	// Live returns the sequence that the "summaries" projector has applied on a partition,
	// and whether this process drives the partition and has caught up.
	Live     func(partition int) (seq uint64, live bool)
	Profiles Profiles
	Files    *files.Table
	Parallel int // conversations worked on at the same time
	// Spend returns a context in which calls of models count against the quota of a tenant. Nil counts nothing.
	Spend  func(ctx context.Context, tenant string) context.Context
	Logger *slog.Logger
}

const (
	// tick is how often the reactor looks for work if nothing wakes it.
	tick = time.Second
	// settle delays work after an event because several often come together.
	settle = 200 * time.Millisecond
	// scanPage is the page size when conversations or summaries are listed.
	scanPage = 200
)

// Reactor writes the summaries that are due. Use [New]; the zero value does not work.
type Reactor struct {
	Config
	slog *slog.Logger
	wake chan struct{} // signals that there may be work

	mu       sync.Mutex
	queue    queue.Queue
	later    queue.Queue                    // conversations that may be finished at a given time
	busy     map[events.ConversationID]bool // being worked on; true if touched since, so look again
	working  int                            // busy workers, not counting requests
	scanned  map[int]bool                   // partitions already scanned since they became live
	trouble  map[events.ConversationID]trouble
	seen     map[events.ConversationID]*seen
	stories  map[storyOf]*telling
	unusable map[events.ConversationID]unusable
	unstored map[events.ConversationID][]events.Event // not published yet, see made
	figures  Figures

	cancel  context.CancelFunc
	stopped bool
	ended   sync.WaitGroup
}

// Figures counts what the reactor has done since it started.
type Figures struct {
	Written   int64 `json:"written"`   // summaries
	Fallbacks int64 `json:"fallbacks"` // summaries written without the configured model
	Titles    int64 `json:"titles"`
	Condensed int64 `json:"condensed"` // tool results
	Insights  int64 `json:"insights"`  // sessions analysed
	Chapters  int64 `json:"chapters"`  // of stories of projects
	Calls     int64 `json:"calls"`     // model calls, failed ones included
	Input     int64 `json:"input_tokens"`
	Output    int64 `json:"output_tokens"`
	Queued    int   `json:"queued"`  // conversations waiting for a worker
	Running   int   `json:"running"` // conversations being worked on
	Waiting   int   `json:"waiting"` // conversations waiting for a store, a server or a model
}

func (f *Figures) pay(u summary.Usage) {
	f.Calls += int64(u.Calls)
	f.Input += u.InputTokens
	f.Output += u.OutputTokens
}

// spend returns a context in which calls of models count against the quota of a tenant.
func (r *Reactor) spend(ctx context.Context, tenant string) context.Context {
	if r.Spend == nil {
		return ctx
	}
	return r.Spend(ctx, tenant)
}

// New returns a reactor that does nothing until Start.
func New(c Config) *Reactor {
	return &Reactor{
		Config: c, slog: c.Logger.With("part", "summarizer"), wake: make(chan struct{}, 1),
		busy: map[events.ConversationID]bool{}, scanned: map[int]bool{}, trouble: map[events.ConversationID]trouble{}, seen: map[events.ConversationID]*seen{},
		stories: map[storyOf]*telling{}, unusable: map[events.ConversationID]unusable{}, unstored: map[events.ConversationID][]events.Event{},
	}
}

// Start begins to work. Summaries that are already due are found when their partition is
// live.
func (r *Reactor) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.ended.Go(func() { r.run(ctx) })
}

// Stop cancels the work under way, model calls included, and waits until it has ended.
func (r *Reactor) Stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
	}
	r.ended.Wait()
}

// spawn starts a goroutine that Stop waits for. It reports false after Stop.
func (r *Reactor) spawn(run func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.ended.Go(run)
	}
	return !r.stopped
}

// Touch reports that events of these conversations were applied. Conversations in a
// partition that is not live are ignored, so a replay fills no queue; a scan finds them
// once it is live.
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

// Rescan makes the reactor look for work in all conversations again, because another generation of the read model
// serves: it may lack summaries that the log has lost.
func (r *Reactor) Rescan() {
	r.mu.Lock()
	clear(r.scanned)
	r.mu.Unlock()
	r.awake()
}

// drives reports whether this process may work on a partition. If not, the partition is
// marked for a new scan, which finds the work left undone.
func (r *Reactor) drives(partition int) bool {
	_, live := r.Live(partition)
	if !live {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.scanned, partition)
	}
	return live
}

// awake makes the reactor look for work.
func (r *Reactor) awake() {
	select {
	case r.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// Figures returns what was done so far.
func (r *Reactor) Figures() Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.figures
	f.Queued, f.Running, f.Waiting = r.queue.Due(time.Now()), len(r.busy), len(r.trouble)
	return f
}

// Wait describes the conversations of a partition that wait for a store, a server or a
// model. Err is the reason of the conversation that has waited longest.
type Wait struct {
	Conversations int
	Err           error
	// Unusable counts finished conversations for which the model's answer could not be used; Reason is the reason for
	// one.
	Unusable int
	Reason   error
}

// Waits returns the waits by partition, only for partitions where conversations wait or could not be analysed.
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
	for id, failed := range r.unusable {
		partition := r.Log.PartitionOf(id.Tenant, id.ID)
		w := waits[partition]
		w.Unusable, w.Reason = w.Unusable+1, failed.err
		waits[partition] = w
	}
	return waits
}

func (r *Reactor) count(add func(f *Figures)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.figures)
}
