package service

import (
	"os"
	"runtime/debug"
)

// heapLimit leaves room below 600 MB for what is not Go's: the caches of SQLite and
// the program itself.
const heapLimit = 400 << 20

// heapGrowth is how much of what it holds the heap may grow by, in percent, before
// the collector works: more than Go's 100, since the limit bounds it anyway, and a
// read that meets the collector at work takes twice as long.
const heapGrowth = 300

// LimitMemory makes the garbage collector keep this process's Go heap near 400 MiB,
// unless GOMEMLIMIT is set ("off" is no limit), and work less often below that, unless
// GOGC is set. The embedded NATS server holds what it wrote in the last ten seconds,
// and left alone the heap grows to twice of what it holds. The limit is soft: what is
// needed is had, and the collector works more.
func LimitMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(heapLimit)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
