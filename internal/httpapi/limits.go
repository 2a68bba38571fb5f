package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/semaphore"
)

// How much is worked on at once; what comes beyond it waits, and is answered 503 if
// it waited for maxQueued.
const (
	maxReads     = 16        // of one conversation: each may hold its whole context
	maxTransfers = 4         // exports, and imports: each a consumer of the log, or its publisher
	maxBodyBytes = 256 << 20 // of request bodies in memory
	maxVerifying = 1         // each replays the whole log
	maxQueued    = 10 * time.Second
)

// limits bound what all requests together take.
type limits struct {
	reads, exports, imports, bodies, verifying *semaphore.Weighted
}

func newLimits() limits {
	return limits{
		reads: semaphore.NewWeighted(maxReads), exports: semaphore.NewWeighted(maxTransfers),
		imports: semaphore.NewWeighted(maxTransfers), bodies: semaphore.NewWeighted(maxBodyBytes),
		verifying: semaphore.NewWeighted(maxVerifying),
	}
}

// later says that a request is worth another try in 5 seconds.
func later() http.Header { return http.Header{"Retry-After": {"5"}} }

// admit waits for room, which the request has until its answer is written.
func admit(ctx context.Context, room *semaphore.Weighted, n int64) error {
	queued, cancel := context.WithTimeout(ctx, maxQueued)
	defer cancel()
	if err := room.Acquire(queued, n); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable("too many requests of this kind at once: try again"), later())
	}
	x := exchangeOf(ctx)
	x.ended = append(x.ended, func() { room.Release(n) })
	return nil
}
