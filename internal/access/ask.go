package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// Bounds of the questions about tokens that are not known, so that wrong tokens can't keep the log's server busy.
const (
	asksPerSecond = 10
	asksAtOnce    = 20
	answerWithin  = 2 * time.Second
)

// Nobody knows whether the token exists.
var (
	errNoAnswer = fmt.Errorf("%w: the log's server, which keeps the tokens, does not answer", ErrUnavailable)
	errTooMany  = fmt.Errorf("%w: %w", ErrUnavailable, ErrTooMany)
)

// asking finds a token that was made a moment ago: the watch of an overloaded server may bring it seconds later, and its
// owner would be refused at the first use.
type asking struct {
	group  singleflight.Group
	budget *rate.Limiter
}

func newAsking() asking { return asking{budget: rate.NewLimiter(asksPerSecond, asksAtOnce)} }

// watched is a bucket whose watch has brought everything that was in it.
type watched struct {
	bucket jetstream.KeyValue
	seen   uint64 // the highest revision that the watch has brought
}

// watching says which bucket is asked, and what of it was brought; nil says that none is.
func (t *Tokens) watching(w *watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = w
}

// brings says that the watch has brought a revision, before it is applied.
func (t *Tokens) brings(w *watched, revision uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.seen = max(w.seen, revision)
}

// ask asks the bucket about a token that is not known, and adds it if it exists. It returns [ErrUnavailable] if there
// is no answer, and also [ErrTooMany] if too many other tokens are asked about.
func (t *Tokens) ask(ctx context.Context, hash Hash) error {
	t.mu.RLock()
	w := t.watched
	t.mu.RUnlock()
	if w == nil {
		return nil
	}
	answer := t.asking.group.DoChan(hash.String(), func() (any, error) {
		if !t.asking.budget.Allow() {
			return nil, errTooMany
		}
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin) // others wait for it too
		defer cancel()
		e, err := w.bucket.Get(within, recordKey+hash.String())
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			return nil, nil
		case err != nil:
			return nil, errNoAnswer
		}
		if r, err := readRecord(e.Key(), e.Value()); err == nil {
			t.found(w, r, e.Revision())
		}
		return nil, nil
	})
	select {
	case a := <-answer:
		return a.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// found adds a token that has this record at a revision. If the watch has brought a later one, it knows better: the
// token may have been revoked since.
func (t *Tokens) found(w *watched, r Record, revision uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched == w && revision >= w.seen {
		t.set(r)
	}
}
