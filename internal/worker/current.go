package worker

import (
	"errors"
	"io"
	"sync"
)

// Generation is an open store of one generation. It is closed once its owner has left it and
// the last reader has released it.
type Generation[S io.Closer] struct {
	Number int
	Store  S

	mu      sync.Mutex
	readers int
	left    bool
	closed  chan struct{}
	err     error // from closing the store; valid once closed is closed
}

// NewGeneration returns an open store without readers.
func NewGeneration[S io.Closer](number int, store S) *Generation[S] {
	return &Generation[S]{Number: number, Store: store, closed: make(chan struct{})}
}

// read registers a reader. It returns false if the owner has left the generation.
func (v *Generation[S]) read() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left {
		return false
	}
	v.readers++
	return true
}

// isRead reports whether the generation has readers.
func (v *Generation[S]) isRead() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.readers > 0
}

// Release ends a read. The last one closes a store that its owner has left.
func (v *Generation[S]) Release() {
	v.mu.Lock()
	v.readers--
	last := v.left && v.readers == 0
	v.mu.Unlock()
	if last {
		v.close()
	}
}

// Leave gives up the generation for its owner. The store closes at once if it has no readers,
// otherwise when the last one releases it. A second leave does nothing.
func (v *Generation[S]) Leave() {
	v.mu.Lock()
	last := !v.left && v.readers == 0
	v.left = true
	v.mu.Unlock()
	if last {
		v.close()
	}
}

func (v *Generation[S]) close() {
	v.err = v.Store.Close()
	close(v.closed)
}

// isClosed reports whether the store is closed.
func (v *Generation[S]) isClosed() bool {
	select {
	case <-v.closed:
		return true
	default:
		return false
	}
}

// ErrStopping means that a read model is closed because the process is shutting down.
var ErrStopping = errors.New("the process is shutting down")

// Current holds the generation that readers get.
type Current[S io.Closer] struct {
	mu  sync.Mutex
	now *Generation[S]
}

// Put replaces the generation that readers get, and returns the old one.
func (s *Current[S]) Put(v *Generation[S]) (old *Generation[S]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.now = s.now, v
	return old
}

// IsEmpty reports whether there is no generation to read.
func (s *Current[S]) IsEmpty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now == nil
}

// Has reports whether readers get the generation with this number.
func (s *Current[S]) Has(number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now != nil && s.now.Number == number
}

// Take returns the current generation, which the reader must release; nil if there is none.
func (s *Current[S]) Take() *Generation[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || !s.now.read() {
		return nil
	}
	return s.now
}
