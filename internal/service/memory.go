package service

import (
	"os"
	"runtime/debug"
)

// heapLimit leaves room below 600 MB for what is not Go's: the caches of SQLite and
// the program itself.
const heapLimit = 400 << 20

// LimitMemory makes the garbage collector keep this process's Go heap near 400 MiB,
// unless GOMEMLIMIT is set ("off" is no limit). The embedded NATS server holds what
// it wrote in the last ten seconds, and left alone the heap grows to twice of what
// it holds. The limit is soft: what is needed is had, and the collector works more.
func LimitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}
