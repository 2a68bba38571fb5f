package projection

import (
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"mneme.dev/mneme/pkg/eventlog"
)

// Bounds of a reader's window. The window may exceed windowBytes by one event. It holds two full
// batches, so that one can be read while another is applied.
const (
	windowEvents = 2 * maxBatchEvents
	windowBytes  = 2 * maxBatchBytes
)

// A reader whose window is full waits for its slowest member, because a member that is left behind must have its events
// read and decoded a second time. The patience grows with each event read, by worthwhile times what the event took to
// decode: about what a second reading costs the whole process. Because this time is measured, it is right on a busy
// machine too. One wait lasts at most maxPatience. While no member has run out of events, waiting costs nothing.
const (
	worthwhile  = 8
	maxPatience = time.Second
	hungerPoll  = 10 * time.Millisecond
)

// idleWindow is how long a reader waits for another event before it drops a window that all members have taken.
const idleWindow = time.Second

// errMove tells a projector that its intake needs another reader: its own went on without it, or
// another one can be shared.
var errMove = errors.New("another reader is needed")

// reader follows one partition and decodes each message once for its members.
type reader struct {
	follower *eventlog.Follower
	decode   func(eventlog.Message) *decoded
	limit    func() int // of the window, in events
	patience time.Duration
	room     chan struct{} // signals that a member took something, joined or left
	stop     chan struct{}
	ended    chan struct{}
	derive   chan *decoded
	workers  sync.WaitGroup

	mu          sync.Mutex
	members     map[*intake]bool
	window      []*decoded
	first       int    // how many events were dropped from the window
	bytes       int    // of the window's messages
	from        uint64 // the window holds all events from this sequence on, up to last
	last        uint64 // the newest sequence read
	whole       bool   // nothing has been dropped yet
	interrupted bool
}

func newReader(follower *eventlog.Follower, decode func(eventlog.Message) *decoded, after uint64, limit func() int) *reader {
	return &reader{
		follower: follower, decode: decode, limit: limit, patience: maxPatience,
		room: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}), derive: make(chan *decoded, ahead),
		members: map[*intake]bool{}, from: after + 1, last: after, whole: true,
	}
}

// run reads until close, or until the follower is interrupted and what it had delivered is read.
func (r *reader) run() {
	defer close(r.ended)
	work(r.derive, &r.workers)
	defer r.workers.Wait()
	defer close(r.derive)
	interrupted := r.follower.Interrupted()
	var drained <-chan time.Time
	idle := time.NewTicker(idleWindow)
	defer idle.Stop()
	busy := false
	for r.awaitRoom() {
		select {
		case m := <-r.follower.C():
			r.add(m)
			busy = true
			if interrupted == nil {
				drained = time.After(drainTime)
			}
		case <-interrupted:
			interrupted, drained = nil, time.After(drainTime)
		case <-drained:
			r.interrupt()
			return
		case <-idle.C:
			if !busy {
				r.forget()
			}
			busy = false
		case <-r.stop:
			return
		}
	}
}

// close ends the reader, which must have no members.
func (r *reader) close() {
	close(r.stop)
	r.follower.Stop()
	<-r.ended
}

func (r *reader) add(m eventlog.Message) {
	began := time.Now()
	d := r.decode(m)
	took := time.Since(began)
	d.took = took
	if len(d.derived) > 0 {
		select {
		case r.derive <- d:
		default:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window = append(r.window, d)
	r.bytes += len(m.Data)
	r.last = m.Seq
	r.patience = min(r.patience+worthwhile*took, maxPatience)
	for in := range r.members {
		in.signal()
	}
}

// interrupt tells the members that nothing more will come.
func (r *reader) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupted = true
	for in := range r.members {
		in.signal()
	}
}

// awaitRoom waits until the window has room for an event. It returns false if the reader was
// closed.
func (r *reader) awaitRoom() bool {
	for {
		room, shared := r.makeRoom()
		if room {
			return true
		}
		var enough <-chan time.Time
		if shared {
			enough = time.After(r.patience)
		}
		began := time.Now()
		select {
		case <-r.room:
			r.patience = max(0, r.patience-time.Since(began))
		case <-enough:
			r.patience = r.leaveBehind()
		case <-r.stop:
			return false
		}
	}
}

// makeRoom drops events that all members have taken, as long as the window is full, and reports
// whether there is room, and whether several members share the window.
func (r *reader) makeRoom() (room, shared bool) {
	limit := r.limit()
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.slowest() - r.first
	n := 0
	for len(r.window)-n > 0 && (len(r.window)-n >= limit || r.bytes >= windowBytes) && n < taken {
		r.bytes -= len(r.window[n].message.Data)
		r.from = r.window[n].seq + 1
		n++
	}
	r.drop(n)
	return len(r.window) == 0 || len(r.window) < limit && r.bytes < windowBytes, len(r.members) > 1
}

// drop removes the first n events of the window. The caller adjusts bytes and from.
func (r *reader) drop(n int) {
	clear(r.window[:n])
	r.window = r.window[n:]
	r.first += n
	r.whole = r.whole && n == 0
}

// slowest returns the lowest index that a member takes next.
func (r *reader) slowest() int {
	least := r.first + len(r.window)
	for in := range r.members {
		least = min(least, in.next)
	}
	return least
}

// leaveBehind makes the slowest members leave if another member has nothing left to take. Nobody leaves
// if all members have taken everything by then: a reader without members would never be closed. It
// returns how long to wait before the next attempt.
func (r *reader) leaveBehind() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	least, end, hungry := r.slowest(), r.first+len(r.window), false
	for in := range r.members {
		hungry = hungry || in.next == end
	}
	if !hungry || least == end {
		return hungerPoll
	}
	for in := range r.members {
		if in.next == least {
			in.behind = true
			delete(r.members, in)
			in.signal()
		}
	}
	return 0
}

// forget drops a window that all members have taken.
func (r *reader) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.window) > 0 && r.slowest() == r.first+len(r.window) {
		r.drop(len(r.window))
		r.window, r.bytes, r.from = nil, 0, r.last+1
	}
}

// size returns how many members the reader has.
func (r *reader) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.members)
}

// position returns the place in the window of the first event after a sequence.
func (r *reader) position(after uint64) int {
	return sort.Search(len(r.window), func(i int) bool { return r.window[i].seq > after })
}

// covers reports whether a projector that has taken everything up to a sequence can join. If the window
// is no longer whole, the sequence must be in its newer half: otherwise a projector that is slower than
// the others would soon be left behind again.
func (r *reader) covers(after uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupted || after+1 < r.from || after > r.last || !r.follower.Current() {
		return false
	}
	at := r.position(after)
	if r.whole {
		return true
	}
	bytes := 0
	for _, d := range r.window[at:] {
		bytes += len(d.message.Data)
	}
	return len(r.window)-at <= r.limit()/2 && bytes <= windowBytes/2
}

// admit makes an intake a member that takes what follows its last sequence.
func (r *reader) admit(in *intake) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in.reader, in.next, in.behind = r, r.first+r.position(in.seq), false
	r.members[in] = true
	r.hasRoom() // so that the reader no longer waits as for a single member
	in.signal()
}

// expel ends a membership. It reports whether that was the last one.
func (r *reader) expel(in *intake) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.members[in] {
		return false
	}
	delete(r.members, in)
	r.hasRoom()
	return len(r.members) == 0
}

func (r *reader) hasRoom() {
	select {
	case r.room <- struct{}{}:
	default:
	}
}

// lag returns how many events an intake has not taken. Of one that was left behind, some are no longer in
// the window.
func (r *reader) lag(in *intake) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, dropped := in.next-r.first, 0
	if at < 0 {
		at, dropped = 0, -at
	}
	switch {
	case at < len(r.window):
		return r.window[at].pending + 1 + uint64(dropped)
	case dropped > 0:
		return uint64(dropped)
	case at > 0:
		return r.window[at-1].pending
	case r.last < r.from && r.whole: // nothing has been read yet
		return r.follower.Pending()
	}
	return 0
}

// take is [intake.take]. It returns errMove if the reader went on without the intake.
func (r *reader) take(in *intake, limit int) (list []*decoded, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.behind {
		return nil, errMove
	}
	at := in.next - r.first
	n, bytes := 0, 0
	for at+n < len(r.window) && n < limit && bytes < maxBatchBytes {
		bytes += len(r.window[at+n].message.Data)
		n++
	}
	switch {
	case n > 0:
		list = slices.Clone(r.window[at : at+n])
		in.next += n
		r.hasRoom()
		if at+n < len(r.window) || r.interrupted {
			in.signal()
		}
	case r.interrupted:
		err = eventlog.ErrInterrupted
	}
	return list, err
}
