package events

import "sync"

// memo keeps results of work on a shared event.
type memo struct {
	mu    sync.Mutex
	found []found
}

type found struct{ key, value any }

// Share makes [Memo] keep its results. Call it before a second goroutine reads the event. Copies of the event share
// them too.
func (r *Recorded) Share() { r.memo = new(memo) }

// Memo returns the result of find. For a shared event (see [Recorded.Share]) it runs find only once for each key, so
// that several projections that reduce the same event do the work once. Keys are compared as in a map. The result must
// depend only on the event and the key, and must not be modified. find must not call Memo for the same event, because
// it would wait for itself; other readers of the event wait until find returns. A key must always have the same type of
// result: otherwise Memo panics.
func Memo[T any](r *Recorded, key any, find func() T) T {
	if r.memo == nil {
		return find()
	}
	r.memo.mu.Lock()
	defer r.memo.mu.Unlock()
	for _, f := range r.memo.found {
		if f.key == key {
			return f.value.(T)
		}
	}
	value := find()
	r.memo.found = append(r.memo.found, found{key, value})
	return value
}
