package sqlitestore

import (
	"fmt"
	"sync/atomic"
)

// caches is the memory of all page caches of the process, in bytes, see [LimitCaches].
var caches atomic.Int64

// defaultCaches is the memory of all page caches if nothing limits them.
const defaultCaches = 160 << 20

// A process has at most openFiles open at a time, except during a rebuild: the writers share one
// half of the memory for caches, the readers the other.
const (
	openFiles   = 3
	writerShare = 2 * openFiles
	readerShare = 2 * openFiles * readers
)

// LimitCaches limits the page caches of all connections that are opened from now on, in bytes.
// They are outside of the Go heap.
func LimitCaches(bytes int64) { caches.Store(bytes) }

// leastCache is enough for the upper pages of a few tables and indexes, in KiB.
const leastCache = 256

// cacheSize returns the pragma that gives a connection its part of the caches. The driver's allocator takes twice the
// size of a cache, because it rounds a page and its header up to two pages.
func cacheSize(share int64) string {
	total := caches.Load()
	if total == 0 {
		total = defaultCaches
	}
	return fmt.Sprintf("cache_size(-%d)", max(leastCache, total/share/2>>10))
}
