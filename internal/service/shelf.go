package service

import (
	"io"
	"sync"

	"mneme.dev/mneme/pkg/projection"
)

// volume is an open store of one generation. It is closed once its owner has left it and
// the last reader has released it.
type volume[S io.Closer] struct {
	generation int
	store      S

	mu      sync.Mutex
	readers int
	left    bool
	closed  chan struct{}
	err     error // from closing the store; valid once closed is closed
}

func newVolume[S io.Closer](generation int, store S) *volume[S] {
	return &volume[S]{generation: generation, store: store, closed: make(chan struct{})}
}

// read registers a reader. It returns false if the owner has left the volume.
func (v *volume[S]) read() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left {
		return false
	}
	v.readers++
	return true
}

// isRead reports whether the volume has readers.
func (v *volume[S]) isRead() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.readers > 0
}

func (v *volume[S]) release() {
	v.mu.Lock()
	v.readers--
	last := v.left && v.readers == 0
	v.mu.Unlock()
	if last {
		v.close()
	}
}

// leave gives up the volume for its owner. The store closes at once if it has no readers,
// otherwise when the last one releases it. A second leave does nothing.
func (v *volume[S]) leave() {
	v.mu.Lock()
	last := !v.left && v.readers == 0
	v.left = true
	v.mu.Unlock()
	if last {
		v.close()
	}
}

func (v *volume[S]) close() {
	v.err = v.store.Close()
	close(v.closed)
}

// isClosed reports whether the store is closed.
func (v *volume[S]) isClosed() bool {
	select {
	case <-v.closed:
		return true
	default:
		return false
	}
}

// shelf holds the volume that readers get.
type shelf[S io.Closer] struct {
	mu  sync.Mutex
	now *volume[S]
}

// put replaces the volume that readers get, and returns the old one.
func (s *shelf[S]) put(v *volume[S]) (old *volume[S]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.now = s.now, v
	return old
}

func (s *shelf[S]) isEmpty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now == nil
}

// has reports whether readers get this generation.
func (s *shelf[S]) has(generation int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now != nil && s.now.generation == generation
}

// take returns the current volume, which the reader must release; nil if there is none.
func (s *shelf[S]) take() *volume[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || !s.now.read() {
		return nil
	}
	return s.now
}

// writable is a store that a projector writes.
type writable[U projection.Unit] interface {
	projection.Store[U]
	io.Closer
}
