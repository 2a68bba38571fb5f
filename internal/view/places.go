package view

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// maxReads is how many reads run at once: each may hold a whole context in memory.
	// Further reads wait, for at most maxQueued.
	maxReads  = 16
	maxQueued = 10 * time.Second

	// recently is how long a tenant counts as reading after its last read.
	recently = 10 * time.Second

	// overlap is how many reads may share a processor if most of their time is spent waiting for
	// other servers.
	overlap = 4
)

// ErrBusy means that too many reads run at once.
var ErrBusy = errors.New("too many requests of this kind at once: try again")

// places are the places for reads. A tenant that reads alone may hold all of them. If others have read recently, it
// holds at most half of those that keep the processors busy; tenants that read at the same time divide these. So a read
// shares the processors with few others, however many reads another tenant sends.
type places struct {
	all  int
	busy int // the places that keep the processors busy

	lock    sync.Mutex
	held    int
	tenants map[string]*reading
	recent  []*reading // the tenant that read last at the end
}

// reading is a tenant that reads.
type reading struct {
	tenant  string
	held    int
	waiting []chan struct{} // each is closed when it has a place
	last    time.Time       // when it last asked for a place, or gave one back
}

// newPlaces returns the places for reads; waits says that reads spend most of their time waiting
// for other servers, so more of them may run at once.
func newPlaces(waits bool) *places {
	p := &places{all: maxReads, busy: runtime.GOMAXPROCS(0), tenants: map[string]*reading{}}
	if waits {
		p.busy *= overlap
	}
	return p
}

// take waits for a place, which leave gives back. The caller calls leave once. If no place becomes
// free in time, it returns [ErrBusy].
func (p *places) take(ctx context.Context, tenant string) (leave func(), err error) {
	r, place := p.ask(tenant)
	leave = func() { p.leave(r) }
	select {
	case <-place:
		return leave, nil
	default:
	}
	late := time.NewTimer(maxQueued)
	defer late.Stop()
	select {
	case <-place:
		return leave, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = ErrBusy
	}
	p.withdraw(r, place)
	return nil, err
}

func (p *places) ask(tenant string) (*reading, chan struct{}) {
	p.lock.Lock()
	defer p.lock.Unlock()
	r, ok := p.tenants[tenant]
	if !ok {
		r = &reading{tenant: tenant}
		p.tenants[tenant] = r
	}
	place := make(chan struct{})
	r.waiting = append(r.waiting, place)
	p.touch(r)
	p.grant()
	return r, place
}

func (p *places) leave(r *reading) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.release(r)
}

// withdraw gives up a place that nobody waits for any longer, whether or not it has become free.
func (p *places) withdraw(r *reading, place chan struct{}) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if i := slices.Index(r.waiting, place); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		return
	}
	p.release(r)
}

// The caller of the methods below holds the lock.

func (p *places) release(r *reading) {
	r.held--
	p.held--
	p.touch(r)
	p.grant()
}

// touch records that a tenant reads now, and forgets tenants that have stopped reading.
func (p *places) touch(r *reading) {
	r.last = time.Now()
	if i := slices.Index(p.recent, r); i >= 0 {
		p.recent = slices.Delete(p.recent, i, i+1)
	}
	p.recent = append(p.recent, r)
	p.recent = slices.DeleteFunc(p.recent, func(r *reading) bool {
		over := r.held == 0 && len(r.waiting) == 0 && time.Since(r.last) > recently
		if over {
			delete(p.tenants, r.tenant)
		}
		return over
	})
}

// share returns how many places a tenant may hold.
func (p *places) share() int {
	if len(p.recent) == 1 {
		return p.all
	}
	now := 0
	for _, r := range p.recent {
		if r.held > 0 || len(r.waiting) > 0 {
			now++
		}
	}
	return max(p.busy/max(now, 2), 1)
}

// grant gives free places to waiting reads. Each goes to the tenant that holds the fewest places or, among
// equals, to the one whose last read is longest ago.
func (p *places) grant() {
	share := p.share()
	for p.held < p.all {
		var next *reading
		for _, r := range p.recent {
			if len(r.waiting) > 0 && r.held < share && (next == nil || r.held < next.held) {
				next = r
			}
		}
		if next == nil {
			return
		}
		close(next.waiting[0])
		next.waiting = next.waiting[1:]
		next.held++
		p.held++
	}
}
