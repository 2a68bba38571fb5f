package projection

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Feed reads and decodes each message of the log once for several projectors of a process, see
// [From]. It only shares work: each projector keeps its own checkpoint, batches, pace and failures.
//
// Projectors at about the same position share a reader, which keeps a window of decoded events that
// is bounded in events and bytes:
//
//	               window
//	log ─▶ decode ─▶ ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//	                    ▲        ▲      ▲
//	                  graph  summaries files
//
// When the window is full, the reader waits for the slowest of them, but only for as long as
// reading twice would cost. Then it continues without that projector, which gets a reader of its
// own and shares one again once it is close enough. So a projector whose store is down or slow does
// not stop the others.
type Feed struct {
	log    *eventlog.Log
	lanes  []*lane // by partition
	window int     // in events; see windowEvents

	mu    sync.Mutex
	needs atomic.Pointer[needs] // of all projectors
}

// NewFeed returns a feed without readers. Readers start and end with the projectors that need them.
func NewFeed(log *eventlog.Log) *Feed {
	f := &Feed{log: log, window: windowEvents}
	f.needs.Store(&needs{})
	for n := range log.Partitions() {
		f.lanes = append(f.lanes, &lane{feed: f, partition: n, opening: make(chan struct{}, 1)})
	}
	return f
}

// From makes a projector take its events from a feed that others use too. The feed must be of the
// projector's log. While the projector yields (see [Yield]), it reads by itself.
func From(feed *Feed) Option {
	return func(o *options) { o.feed = feed }
}

// followAhead is how many events the log sends a reader in advance; see [eventlog.Log.FollowAhead].
const followAhead = 1000

// join returns an intake of a partition's events after a sequence.
func (f *Feed) join(ctx context.Context, partition int, after uint64) (*intake, error) {
	return f.lanes[partition].join(ctx, after, followAhead, func() int { return f.window })
}

// needs says what to do for events in advance.
type needs struct {
	types map[string]bool // types that a projector reduces; only their events are hashed
	derivers
}

// serve adds the needs of a projector to those of the feed.
func (f *Feed) serve(types []string, by *deriver) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.needs.Load()
	next := &needs{types: map[string]bool{}, derivers: slices.Clone(now.derivers)}
	maps.Copy(next.types, now.types)
	for _, t := range types {
		next.types[t] = true
	}
	if by != nil && now.derivers.of(by.name) == nil {
		next.derivers = append(next.derivers, by)
	}
	f.needs.Store(next)
}

// decode does all work on a message that does not depend on who reduces it.
func (f *Feed) decode(m eventlog.Message) *decoded {
	d, needs := decodeMessage(m), f.needs.Load()
	if needs.types[d.event.Type] {
		d.hash()
	}
	for _, by := range needs.derivers {
		if d.invalid == nil && by.types[d.event.Type] {
			d.derived = append(d.derived, &derivation{by: by})
		}
	}
	return d
}

// decoded is a message of the log, decoded once for all projectors that read it. Nothing changes it
// later.
type decoded struct {
	seq     uint64
	pending uint64
	message eventlog.Message // for its digest, if it ends a batch
	event   events.Recorded
	conv    events.ConversationID
	invalid error // why event is not valid

	hashing sync.Once // fills the following fields
	content events.Digest
	keys    [2]events.Digest // identity, payload key
	nkeys   int

	derived []*derivation
	took    time.Duration // time spent decoding
}

// decodeMessage decodes and validates a message. It hashes nothing yet.
func decodeMessage(m eventlog.Message) *decoded {
	d := &decoded{seq: m.Seq, pending: m.Pending, message: m}
	var address events.Address
	d.event, address, d.invalid = m.Decode()
	d.event.Share()
	d.conv = events.ConversationID{Tenant: address.Tenant, ID: address.Conversation}
	return d
}

// hash computes what the claims of a valid event need, unless that was done before.
func (d *decoded) hash() {
	if d.invalid != nil {
		return
	}
	d.hashing.Do(func() {
		d.content = d.event.Content()
		d.keys[0], d.nkeys = d.event.Identity(d.conv.Tenant), 1
		if key := d.event.Payload.Key(); key != "" {
			d.keys[1], d.nkeys = PayloadKey(d.conv, key), 2
		}
	})
}

// lane is one partition of a feed.
type lane struct {
	feed      *Feed
	partition int
	opening   chan struct{} // holds a token while a reader is opened, so that others can join it

	mu      sync.Mutex // locked before a reader's mutex
	readers []*reader  // oldest first
	several atomic.Bool
}

// join returns an intake of the events after a sequence. It uses a reader that has them in its
// window, or opens one that asks the log for up to ahead events in advance. limit bounds a new
// reader's window in events.
func (l *lane) join(ctx context.Context, after uint64, ahead int, limit func() int) (*intake, error) {
	in := &intake{lane: l, ready: make(chan struct{}, 1), seq: after, ahead: ahead, limit: limit}
	if err := l.attach(ctx, in); err != nil {
		return nil, err
	}
	return in, nil
}

// attach gives the intake a reader.
func (l *lane) attach(ctx context.Context, in *intake) error {
	select {
	case l.opening <- struct{}{}:
		defer func() { <-l.opening }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	r := l.best(in, nil)
	if r != nil {
		r.admit(in)
	}
	l.mu.Unlock()
	if r != nil {
		return nil
	}
	follower, err := l.feed.log.FollowAhead(ctx, l.partition, in.seq+1, in.ahead)
	if err != nil {
		return err
	}
	r = newReader(follower, l.feed.decode, in.seq, in.limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers = append(l.readers, r)
	l.several.Store(len(l.readers) > 1)
	r.admit(in)
	go r.run()
	return nil
}

// best returns the reader to share: the one with the most members among those that can take the
// intake in, and the oldest if several have as many. It returns nil if none is better than the
// intake's own. Since all prefer the same readers, groups merge and do not swap members.
func (l *lane) best(in *intake, own *reader) *reader {
	best, most := own, 0
	if own != nil {
		most = own.size()
	}
	older := true // older than own
	for _, r := range l.readers {
		if r == own {
			older = false
			continue
		}
		if n := r.size(); (n > most || n == most && older && best == own) && r.covers(in.seq) {
			best, most = r, n
		}
	}
	if best == own {
		return nil
	}
	return best
}

// isBetter reports whether another reader is better for the intake than its own.
func (l *lane) isBetter(in *intake) bool {
	if !l.several.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.best(in, in.reader) != nil
}

// expel takes the intake out of its reader and reports whether the caller must close that reader,
// because no projector uses it. The lane must be locked.
func (l *lane) expel(in *intake) (empty bool) {
	r := in.reader
	if !r.expel(in) {
		return false
	}
	l.readers = slices.DeleteFunc(l.readers, func(other *reader) bool { return other == r })
	l.several.Store(len(l.readers) > 1)
	return true
}

// intake is how one projector takes events from a lane.
type intake struct {
	lane  *lane
	ready chan struct{} // signals that take will return something
	seq   uint64        // last sequence taken
	ahead int
	limit func() int

	reader *reader
	next   int  // index of the next event in the reader's count; guarded by the reader
	behind bool // the reader went on without this intake; guarded by the reader
}

// C signals that take returns something. It may also signal for nothing.
func (in *intake) C() <-chan struct{} { return in.ready }

// signal wakes the projector.
func (in *intake) signal() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// take returns the next events, at most limit and about maxBatchBytes, without waiting for any.
// Once all that was read is taken, it returns [eventlog.ErrInterrupted] if the reader lost its
// place. It returns errMove if the intake should move to another reader.
func (in *intake) take(limit int) ([]*decoded, error) {
	if in.lane.isBetter(in) {
		return nil, errMove
	}
	list, err := in.reader.take(in, limit)
	if n := len(list); n > 0 {
		in.seq = list[n-1].seq
	}
	return list, err
}

// lag returns the last known number of events that are left to take.
func (in *intake) lag() uint64 { return in.reader.lag(in) }

// leave ends the intake. The last one to leave a reader ends it. A second leave does nothing.
func (in *intake) leave() {
	in.lane.mu.Lock()
	empty := in.lane.expel(in)
	in.lane.mu.Unlock()
	if empty {
		in.reader.close()
	}
}
