package quota

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Places are places for work that all tenants share. One tenant has at most a part of them, so that the others still
// find one while its work is slow. Those who wait get places in the order in which they came, each among its tenant's.
type Places struct {
	all      *semaphore.Weighted
	ofTenant int64

	lock    sync.Mutex
	tenants map[string]*part
}

// part is what a tenant may have of the places.
type part struct {
	*semaphore.Weighted
	users int // that have a place or wait for one
}

// NewPlaces returns a number of places, of which one tenant may have fewer.
func NewPlaces(most, ofTenant int64) *Places {
	return &Places{all: semaphore.NewWeighted(most), ofTenant: ofTenant, tenants: map[string]*part{}}
}

// Enter waits for a place, which leave gives back, until ctx ends.
func (p *Places) Enter(ctx context.Context, tenant string) (leave func(), err error) {
	own := p.use(tenant)
	if err := own.Acquire(ctx, 1); err != nil {
		p.unuse(tenant, own)
		return nil, err
	}
	if err := p.all.Acquire(ctx, 1); err != nil {
		own.Release(1)
		p.unuse(tenant, own)
		return nil, err
	}
	return p.leave(tenant, own), nil
}

// TryEnter takes a place, which leave gives back, if there is one now.
func (p *Places) TryEnter(tenant string) (leave func(), ok bool) {
	own := p.use(tenant)
	if own.TryAcquire(1) {
		if p.all.TryAcquire(1) {
			return p.leave(tenant, own), true
		}
		own.Release(1)
	}
	p.unuse(tenant, own)
	return nil, false
}

func (p *Places) leave(tenant string, own *part) func() {
	return func() {
		p.all.Release(1)
		own.Release(1)
		p.unuse(tenant, own)
	}
}

func (p *Places) use(tenant string) *part {
	p.lock.Lock()
	defer p.lock.Unlock()
	own := p.tenants[tenant]
	if own == nil {
		own = &part{Weighted: semaphore.NewWeighted(p.ofTenant)}
		p.tenants[tenant] = own
	}
	own.users++
	return own
}

// unuse forgets a tenant that uses nothing.
func (p *Places) unuse(tenant string, own *part) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if own.users--; own.users == 0 {
		delete(p.tenants, tenant)
	}
}
