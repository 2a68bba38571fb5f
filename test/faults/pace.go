package main

import (
	"context"
	"sync"
	"time"
)

// pace releases events so that they end together with the faults. Events delayed by an outage are
// made up for at once, but not while a store is far behind: on a machine too small for the load,
// the stores would never recover from the publishers.
type pace struct {
	total int
	// behind returns how many events a store has not applied, nil if that is not watched.
	behind func() uint64
	// share returns how much of the campaign is over, from 0 to 1; below 0 before the first fault.
	share func() float64

	turn sync.Mutex // its holder publishes next

	mu    sync.Mutex
	begun int
	acked int
	early int       // begun before the first fault
	start time.Time // of the first event
}

// warmUpRate is how many events per second are published before the first fault; warmUpShare limits
// their share of all events.
const (
	warmUpRate  = 100
	warmUpShare = 0.2
)

// maxBehind is how far publishers let a store fall behind, in events of all partitions of all its
// projections.
const maxBehind = 15_000

// take takes up to n events, and returns how many: 0 when all are taken or ctx ends.
func (p *pace) take(ctx context.Context, n int) int {
	p.turn.Lock()
	defer p.turn.Unlock()
	for ctx.Err() == nil {
		if n, ok := p.try(n); ok {
			return n
		}
		pause(ctx, 2*time.Millisecond)
	}
	return 0
}

// try takes up to n events if they are due.
func (p *pace) try(n int) (taken int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, p.total-p.begun)
	if p.begun+n > p.due() || p.behind != nil && p.behind() > maxBehind {
		return 0, false
	}
	p.begun += n
	return n, true
}

// acknowledged records acknowledged events.
func (p *pace) acknowledged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked++
}

// idle reports whether every event begun is acknowledged.
func (p *pace) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked == p.begun
}

// due returns how many events may have begun by now.
func (p *pace) due() int {
	if p.start.IsZero() {
		p.start = time.Now()
	}
	share := p.share()
	if share < 0 {
		p.early = min(int(float64(p.total)*warmUpShare), int(time.Since(p.start).Seconds()*warmUpRate)) + 1
		return p.early
	}
	return min(p.total, p.early+int(share*float64(p.total-p.early))+1)
}
