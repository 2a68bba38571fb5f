package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/semaphore"

	"mneme.dev/mneme/internal/quota"
)

// How much is handled at once. Further requests wait, for at most maxQueued, and are then
// answered with 503.
const (
	maxTransfers   = 4         // exports and, separately, imports: each follows the log or publishes to it
	tenantImports  = 3         // of these, because a slow upload may hold its place for hours
	maxBodyBytes   = 256 << 20 // request bodies in memory
	maxSmallBytes  = 64 << 20  // in addition, for bodies of up to smallBody
	smallBody      = 1 << 20
	maxAnswerBytes = 256 << 20 // answers that clients have not taken yet
	maxVerifying   = 1         // each replays the whole log
	maxCalls       = 32        // calls of tools: twice as many as reads, because some do not read
	tenantCalls    = 24        // of these, because a tenant's slow calls must not block those of others
	maxQueued      = 10 * time.Second
	maxCallQueued  = 30 * time.Second // a waiting call costs little, and agents wait a minute or longer
)

// exportPatience is how long a stalled client may block its export while another export
// waits for its place.
const exportPatience = 2 * time.Second

// limits bound the resources of all requests together.
type limits struct {
	exports, bodies, beyond, smallBodies, verifying *semaphore.Weighted

	answers, exporting outgoing
	// Streams follow the log; subscriptions of agents only read the row of their conversation when something is applied.
	calls, streams, subscriptions, analyses, rewrites, imports *quota.Places
}

func newLimits() *limits {
	return &limits{
		exports: semaphore.NewWeighted(maxTransfers),
		bodies:  semaphore.NewWeighted(maxBodyBytes), beyond: semaphore.NewWeighted(1), smallBodies: semaphore.NewWeighted(maxSmallBytes),
		verifying: semaphore.NewWeighted(maxVerifying), answers: outgoing{max: maxAnswerBytes},
		calls: quota.NewPlaces(maxCalls, tenantCalls), imports: quota.NewPlaces(maxTransfers, tenantImports),
		streams: quota.NewPlaces(maxStreams, tenantStreams), subscriptions: quota.NewPlaces(maxSubscriptions, tenantSubscriptions),
		analyses: quota.NewPlaces(maxAnalyses, tenantAnalyses), rewrites: quota.NewPlaces(maxRewrites, tenantRewrites),
	}
}

// later tells the client to try again in 5 seconds.
func later() http.Header { return http.Header{"Retry-After": {"5"}} }

func busy() error {
	return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable("too many requests of this kind at once: try again"), later())
}

// acquire waits for room, for at most maxQueued.
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

// acquireLog waits for the place of those who have the whole log read, which takes long: the refusal says what holds it.
func (l *limits) acquireLog(ctx context.Context) error {
	err := acquire(ctx, l.verifying, 1)
	if err != nil && ctx.Err() == nil {
		return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable("the whole log is being read, by mneme verify, mneme repair log or the check before a rebuild, and only one of them runs at a time: try again when it has ended"), later())
	}
	return err
}

// admitLog is [limits.acquireLog] for a request that holds the place until its answer is written.
func (l *limits) admitLog(ctx context.Context) error {
	if err := l.acquireLog(ctx); err != nil {
		return err
	}
	x := exchangeOf(ctx)
	x.ended = append(x.ended, func() { l.verifying.Release(1) })
	return nil
}

// admitExport waits for one of the places for exports. An export reads while it writes,
// so it holds its place to the end. While another export waits, admitExport cuts off
// exports whose client has taken nothing for exportPatience.
func (a *api) admitExport(ctx context.Context) error {
	enter := func() bool {
		if a.limits.exports.TryAcquire(1) {
			return true
		}
		a.limits.exporting.cutSlowest(exportPatience)
		return false
	}
	if err := tryEntering(ctx, enter); err != nil {
		return err
	}
	x := exchangeOf(ctx)
	a.limits.exporting.add(x.answer, 0)
	x.ended = append(x.ended, func() {
		a.limits.exporting.remove(x.answer)
		a.limits.exports.Release(1)
	})
	return nil
}

// admitImport waits for one of the places for imports, which the request holds to its end.
func (a *api) admitImport(ctx context.Context, tenant string) error {
	return tryEntering(ctx, func() bool {
		leave, ok := a.limits.imports.TryEnter(tenant)
		if ok {
			x := exchangeOf(ctx)
			x.ended = append(x.ended, leave)
		}
		return ok
	})
}

// tryEntering tries to take a place ten times a second, for at most maxQueued.
func tryEntering(ctx context.Context, enter func() bool) error {
	for began := time.Now(); !enter(); {
		if time.Since(began) > maxQueued {
			return busy()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// bodyRoom is the memory reserved for one request's body. It grows as the body arrives, so
// that a client can't reserve more than it sends. Small bodies have a separate limit, so
// that they never wait for large ones; a body that outgrows it moves to the other limit.
type bodyRoom struct {
	*exchange
	limits *limits
	held   int64
	large  bool
	beyond bool // what comes now is beyond the room for large bodies
}

// take waits for room for n more bytes.
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
