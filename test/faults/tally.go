package main

import (
	"maps"
	"sync"
	"time"
)

// tally counts what publishers and readers see, by short texts.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	ackAt  time.Time // time of the newest acknowledgement
	stalls map[*time.Duration]bool
}

func newTally() *tally {
	return &tally{counts: map[string]int{}, ackAt: time.Now(), stalls: map[*time.Duration]bool{}}
}

// stall returns a function that returns, once, the longest time without an acknowledgement since
// then.
func (t *tally) stall() (longest func() time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	longestGap := new(time.Duration)
	t.stalls[longestGap] = true
	began := time.Now()
	return func() time.Duration {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.stalls, longestGap)
		return min(max(*longestGap, time.Since(t.ackAt)), time.Since(began))
	}
}

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what] += n
}

func (t *tally) acked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	gap := time.Since(t.ackAt)
	for s := range t.stalls {
		*s = max(*s, gap)
	}
	t.ackAt = time.Now()
}

// lastAck returns the time of the last acknowledgement.
func (t *tally) lastAck() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ackAt
}

func (t *tally) snapshot() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// since returns what was counted after a snapshot.
func (t *tally) since(before map[string]int) map[string]int {
	now := t.snapshot()
	for what, n := range before {
		if now[what] -= n; now[what] == 0 {
			delete(now, what)
		}
	}
	return now
}
