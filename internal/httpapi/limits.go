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
	maxReads       = 16        // of one conversation: each may hold its whole context
	maxTransfers   = 4         // exports, and imports: each a consumer of the log, or its publisher
	maxBodyBytes   = 256 << 20 // of request bodies in memory
	maxSmallBytes  = 64 << 20  // beside it of those that are no longer than smallBody
	smallBody      = 1 << 20
	maxAnswerBytes = 256 << 20 // of answers that clients have not taken yet
	maxVerifying   = 1         // each replays the whole log
	maxQueued      = 10 * time.Second
)

// exportPatience is how long an export may wait for its client while another one waits
// for its place.
const exportPatience = 2 * time.Second

// limits bound what all requests together take.
type limits struct {
	reads, exports, imports, bodies, beyond, smallBodies, verifying *semaphore.Weighted

	answers, exporting outgoing
}

func newLimits() *limits {
	return &limits{
		reads: semaphore.NewWeighted(maxReads), exports: semaphore.NewWeighted(maxTransfers),
		imports: semaphore.NewWeighted(maxTransfers),
		bodies:  semaphore.NewWeighted(maxBodyBytes), beyond: semaphore.NewWeighted(1), smallBodies: semaphore.NewWeighted(maxSmallBytes),
		verifying: semaphore.NewWeighted(maxVerifying),
		answers:   outgoing{max: maxAnswerBytes},
	}
}

// later says that a request is worth another try in 5 seconds.
func later() http.Header { return http.Header{"Retry-After": {"5"}} }

func busy() error {
	return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable("too many requests of this kind at once: try again"), later())
}

// acquire waits for room.
func acquire(ctx context.Context, room *semaphore.Weighted, n int64) error {
	if room.TryAcquire(n) {
		return nil
	}
	queued, cancel := context.WithTimeout(ctx, maxQueued)
	defer cancel()
	if err := room.Acquire(queued, n); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return busy()
	}
	return nil
}

// admit waits for room, which the request has until its answer is written.
func admit(ctx context.Context, room *semaphore.Weighted, n int64) error {
	if err := acquire(ctx, room, n); err != nil {
		return err
	}
	x := exchangeOf(ctx)
	x.ended = append(x.ended, func() { room.Release(n) })
	return nil
}

// admitRead waits for a place among the reads, which the request has until its answer is
// rendered: a client that takes it slowly keeps nobody from reading.
func (a *api) admitRead(ctx context.Context) error {
	if err := acquire(ctx, a.limits.reads, 1); err != nil {
		return err
	}
	x := exchangeOf(ctx)
	x.worked = append(x.worked, func() { a.limits.reads.Release(1) })
	return nil
}

// admitExport waits for a place among the exports. They are read while they are written,
// so each has its place to the end; but one whose client has taken nothing for
// exportPatience is cut off for one that waits.
func (a *api) admitExport(ctx context.Context) error {
	const again = 100 * time.Millisecond
	for began := time.Now(); !a.limits.exports.TryAcquire(1); {
		if time.Since(began) > maxQueued {
			return busy()
		}
		a.limits.exporting.cutSlowest(exportPatience)
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	x := exchangeOf(ctx)
	a.limits.exporting.add(x.answer, 0)
	x.ended = append(x.ended, func() {
		a.limits.exporting.remove(x.answer)
		a.limits.exports.Release(1)
	})
	return nil
}

// bodyRoom is the room that one request's body has in memory. It grows as the body
// arrives, so that nobody reserves what he does not send. A small body never waits for
// large ones: it has a room of its own, which a body leaves once it gets longer.
type bodyRoom struct {
	*exchange
	limits *limits
	held   int64
	large  bool
	beyond bool // what comes now is beyond the room for large bodies
}

// take waits for room for n bytes more.
func (b *bodyRoom) take(n int64) error {
	ctx := b.huma.Context()
	switch {
	case b.beyond:
		return nil
	case b.large:
		if !b.limits.bodies.TryAcquire(n) {
			// Large bodies that grow together could fill the room so that none of them can
			// end. One may go beyond it: it ends, and leaves its room to the others.
			if b.limits.beyond.TryAcquire(1) {
				b.beyond = true
				return nil
			}
			if err := acquire(ctx, b.limits.bodies, n); err != nil {
				return err
			}
		}
	case b.held+n <= smallBody:
		if err := acquire(ctx, b.limits.smallBodies, n); err != nil {
			return err
		}
	default:
		if err := acquire(ctx, b.limits.bodies, b.held+n); err != nil {
			return err
		}
		b.limits.smallBodies.Release(b.held)
		b.large = true
	}
	b.held += n
	return nil
}

func (b *bodyRoom) release() {
	if b.large {
		b.limits.bodies.Release(b.held)
	} else {
		b.limits.smallBodies.Release(b.held)
	}
	if b.beyond {
		b.limits.beyond.Release(1)
	}
}
