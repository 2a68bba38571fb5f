// Package memo remembers the results of pure functions of short strings.
package memo

import (
	"hash/maphash"
	"sync/atomic"
)

// Memo remembers results of one function. It is direct-mapped: a new result replaces another whose key has the same
// hash. So it is bounded and needs no lock. It is safe for concurrent use.
type Memo[T any] struct {
	of    func(string) T
	seed  maphash.Seed
	slots []atomic.Pointer[result[T]]
}

type result[T any] struct {
	key   string
	value T
}

// New returns a memo of a function that remembers at most size results. The size must be a power of two. Callers share
// what the function returns, so they must not change it.
func New[T any](size int, of func(string) T) *Memo[T] {
	return &Memo[T]{of, maphash.MakeSeed(), make([]atomic.Pointer[result[T]], size)}
}

// Of returns the function's result.
func (m *Memo[T]) Of(key []byte) T {
	slot := &m.slots[maphash.Bytes(m.seed, key)&uint64(len(m.slots)-1)]
	if r := slot.Load(); r != nil && r.key == string(key) {
		return r.value
	}
	r := &result[T]{key: string(key)}
	r.value = m.of(r.key)
	slot.Store(r)
	return r.value
}
