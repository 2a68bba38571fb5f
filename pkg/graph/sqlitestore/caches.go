package sqlitestore

import (
	"cmp"
	"fmt"
	"sync/atomic"
)

// caches is the memory of all page caches of the process, in bytes, see [LimitCaches].
var caches atomic.Int64

// defaultCaches is the memory of all page caches if nothing limits them.
const defaultCaches = 160 << 20

// The memory for caches is divided into parts. The graph, which is as large as all others together, gets several, each other
// file one: those of the five other read models of every server, the embeddings, and their cache. Writers get one half of a
// file's parts, its readers the other. A rebuild opens files beside these.
const (
	graphParts = 4
	otherFiles = 7
)

// LimitCaches limits the page caches of all connections that are opened from now on, in bytes.
// They are outside of the Go heap.
func LimitCaches(bytes int64) { caches.Store(bytes) }

// leastCache is enough for the upper pages of a few tables and indexes, in KiB.
const leastCache = 256

// cacheSize returns the pragma that gives each of the connections that share one half of a file's memory its part of the
// caches. The driver's allocator takes twice the size of a cache, because it rounds a page and its header up to two pages.
func cacheSize(path string, connections int64) string {
	total := cmp.Or(caches.Load(), defaultCaches)
	parts := int64(1)
	if projectionOf(path) == GraphCodec.Projection {
		parts = graphParts
	}
	half := total * parts / (graphParts + otherFiles) / 2
	return fmt.Sprintf("cache_size(-%d)", max(leastCache, half/connections/2>>10))
}
