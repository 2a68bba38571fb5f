package httpapi

import (
	"errors"
	"sync"
	"time"
)

// errCutOff says that a client took an answer so slowly that others needed its place.
var errCutOff = errors.New("the client took its answer more slowly than all others, which needed its place")

// outgoing are answers on their way to their clients, with the memory that they hold.
// Beyond max the one whose client has taken nothing for the longest time is cut off.
type outgoing struct {
	lock  sync.Mutex
	max   int64 // bytes
	bytes int64
	held  map[*response]int64
}

// add notes an answer of so many bytes.
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

// remove forgets an answer that was written, or cut off.
func (o *outgoing) remove(w *response) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.bytes -= o.held[w]
	delete(o.held, w)
}

// cutSlowest cuts the answer off whose client has taken nothing for the longest time, if
// that is at least so long.
func (o *outgoing) cutSlowest(atLeast time.Duration) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.cut(atLeast)
}

// cut tells whether there was such an answer.
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
