package events

import "sync"

// memo keeps what was found out about a shared event.
type memo struct {
	mu    sync.Mutex
	found []found
}

type found struct{ key, value any }

// Share makes [Memo] keep what it finds. Call it before a second goroutine reads the event. Copies of the event share too.
func (r *Recorded) Share() { r.memo = new(memo) }

// Memo returns what find returns. For a shared event (see [Recorded.Share]) it runs find only once for a key, so that
// several projections that reduce the same event do the work once. Keys are compared as in a map. The value must depend on
// the event and the key alone, and nobody may change it. find must not call
// Memo for the same event, which would wait for itself; other readers of the event wait until find returns. A key must not be used with two types of values: Memo panics.
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
