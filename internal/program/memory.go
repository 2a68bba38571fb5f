package program

import (
	"os"
	"runtime/debug"
)

// heapGrowth is the growth of the live heap, in percent, that triggers a collection. It
// exceeds Go's default of 100 because the limit bounds the heap anyway, and a read takes
// twice as long during a collection.
const heapGrowth = 300

// LimitHeap makes the garbage collector keep this process's Go heap near a limit in bytes,
// unless GOMEMLIMIT is set ("off" means no limit), and run less often below that unless
// GOGC is set. Without it the heap would grow to twice the live data, which includes what
// the embedded NATS server wrote in the last ten seconds. The limit is soft: the heap can
// exceed it if necessary, and the collector then runs more often.
func LimitHeap(limit int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limit)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
