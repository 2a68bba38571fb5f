package main

import (
	"context"
	"sync"
	"time"
)

// pace lets events go so that they end with the faults. What an outage has held up is
// made up for at once.
type pace struct {
	total int
	// share is how much of the campaign is over, from 0 to 1; below 0 before the first
	// fault.
	share func() float64

	mu    sync.Mutex // whoever has it is next
	begun int
	early int       // begun before the first fault
	start time.Time // of the first event
}

// warmUpRate is how many events a second there are before the first fault.
const warmUpRate = 100

// take takes up to n events, and returns how many: 0 when all are taken or ctx ends.
func (p *pace) take(ctx context.Context, n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, p.total-p.begun)
	for n > 0 && p.begun+n > p.due() {
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(2 * time.Millisecond):
		}
	}
	p.begun += n
	return n
}

// due is how many events may have begun by now.
func (p *pace) due() int {
	if p.start.IsZero() {
		p.start = time.Now()
	}
	share := p.share()
	if share < 0 {
		p.early = min(p.total, int(time.Since(p.start).Seconds()*warmUpRate)+1)
		return p.early
	}
	return min(p.total, p.early+int(share*float64(p.total-p.early))+1)
}
