package quota

import (
	"fmt"
	"sync"

	"mneme.dev/mneme/events"
)

// Stored is what a tenant stores in the log.
type Stored struct {
	Events uint64 `json:"events"`
	Bytes  uint64 `json:"bytes"`
}

func (s Stored) plus(o Stored) Stored { return Stored{s.Events + o.Events, s.Bytes + o.Bytes} }

func (s Stored) minus(o Stored) Stored {
	return Stored{s.Events - min(s.Events, o.Events), s.Bytes - min(s.Bytes, o.Bytes)}
}

// envelopeBytes is about what an event takes in the log besides its data: its subject, its attributes
// and the server's own record.
const envelopeBytes = 512

// FullError says that a tenant may store no more. Waiting does not help.
type FullError struct {
	Tenant      string
	Quota       string // such as "max_events"
	Unit        string // such as "events"
	Used, Limit uint64
	More        uint64 // what was to be stored
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the tenant %q is over its quota %s: it stores %d of %d %s, which leaves no room for %d more. Waiting does not help: erase what is no longer needed (mneme erase, or a retention), or give the tenant a larger quota",
		e.Tenant, e.Quota, e.Used, e.Limit, e.Unit, e.More)
}

// held is what a tenant is about to store, or has stored since the log was read.
type held struct {
	open    Stored // being published
	settled Stored // the attempt to publish it ended after the meter last began to read
	read    Stored // the attempt ended before that: the meter is counting it now
}

func (h *held) all() Stored { return h.open.plus(h.settled).plus(h.read) }

// ledger is what tenants store: what was counted in the log, and what was accepted since.
type ledger struct {
	lock    sync.Mutex
	counted map[string]Stored // by tenant, escaped as in subjects
	held    map[string]*held
	// complete says that the log was read to its end once.
	complete bool
}

func (l *ledger) used(tenant string) Stored {
	sum := l.counted[events.Escape(tenant)]
	if h := l.held[tenant]; h != nil {
		sum = sum.plus(h.all())
	}
	return sum
}

// hold counts what a tenant is about to store, if its limits allow it.
func (l *ledger) hold(tenant string, limits Limits, more Stored) (settle func(), err error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	used := l.used(tenant)
	if limits.MaxEvents > 0 && used.Events+more.Events > limits.MaxEvents {
		return nil, &FullError{tenant, "max_events", "events", used.Events, limits.MaxEvents, more.Events}
	}
	if limits.MaxBytes > 0 && used.Bytes+more.Bytes > limits.MaxBytes {
		return nil, &FullError{tenant, "max_bytes", "bytes", used.Bytes, limits.MaxBytes, more.Bytes}
	}
	h := l.held[tenant]
	if h == nil {
		h = &held{}
		l.held[tenant] = h
	}
	h.open = h.open.plus(more)
	return sync.OnceFunc(func() {
		l.lock.Lock()
		defer l.lock.Unlock()
		h.open, h.settled = h.open.minus(more), h.settled.plus(more)
	}), nil
}

// begin is called before the end of the log is read: everything settled by now is below that end.
func (l *ledger) begin() {
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, h := range l.held {
		h.read, h.settled = h.read.plus(h.settled), Stored{}
	}
}

// end is called when the log was read up to that end.
func (l *ledger) end() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.complete = true
	for tenant, h := range l.held {
		if h.read = (Stored{}); h.all() == (Stored{}) {
			delete(l.held, tenant)
		}
	}
}

// Hold counts events that a tenant is about to store, with size bytes of data. It fails with a
// [*FullError], and counts none, if the tenant may not store so many. Call settle once they are stored,
// or are known not to be: the log itself then says how many there are.
func (q *Quotas) Hold(name string, count, size int) (settle func(), err error) {
	if q == nil || q.meter == nil {
		return func() {}, nil
	}
	q.lock.Lock()
	limits := q.of(name)
	q.lock.Unlock()
	if !limits.stores() {
		return func() {}, nil
	}
	return q.meter.hold(name, limits, Stored{uint64(count), uint64(size + count*envelopeBytes)})
}
