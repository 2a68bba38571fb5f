package httpapi

import (
	"errors"
	"sync"
	"time"
)

// errCutOff means that the answer was cut off to make room for others.
var errCutOff = errors.New("cut off: this client read its answer more slowly than all others, and other requests needed the memory")

// outgoing tracks the answers being sent and the memory that they hold. If they exceed max,
// it cuts off the answer whose client has taken nothing for the longest time.
type outgoing struct {
	lock  sync.Mutex
	max   int64 // bytes
	bytes int64
	held  map[*response]int64
}

// add registers an answer of n bytes.
func (o *outgoing) add(w *response, n int64) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.held == nil {
		o.held = map[*response]int64{}
	}
	o.held[w] = n
	o.bytes += n
	for o.bytes > o.max && o.cut(0) {
	}
}

// remove unregisters an answer that was written or cut off.
func (o *outgoing) remove(w *response) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.bytes -= o.held[w]
	delete(o.held, w)
}

// cutSlowest cuts off the answer whose client has taken nothing for the longest time, if
// that time is at least atLeast.
func (o *outgoing) cutSlowest(atLeast time.Duration) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.cut(atLeast)
}

// cut is cutSlowest for a caller that holds the lock. It reports whether it cut an answer off.
func (o *outgoing) cut(atLeast time.Duration) bool {
	var slowest *response
	var since int64
	for w := range o.held {
		if began := w.writing.Load(); began != 0 && (slowest == nil || began < since) {
			slowest, since = w, began
		}
	}
	if slowest == nil || time.Since(time.Unix(0, since)) < atLeast {
		return false
	}
	slowest.cutOff()
	o.bytes -= o.held[slowest]
	delete(o.held, slowest)
	return true
}
