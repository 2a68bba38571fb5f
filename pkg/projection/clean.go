package projection

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/pkg/eventlog"
)

// Cleaner is a store in which the bytes of deleted rows stay until they are overwritten.
type Cleaner interface {
	// Clean overwrites them. While it runs, it needs about twice the space of the read model and
	// keeps writers waiting.
	Clean(ctx context.Context) (Cleaned, error)
}

// Cleaned is what [Cleaner.Clean] did.
type Cleaned struct {
	BytesBefore int64  `json:"bytes_before,omitempty"` // total size of the read model's files, 0 if unknown
	BytesAfter  int64  `json:"bytes_after,omitempty"`
	Left        string `json:"left,omitempty"` // what still contains deleted bytes, and how to clear it
}

// ErrNoCleaner means that a store can't overwrite what was deleted.
var ErrNoCleaner = errors.New("the store cannot overwrite deleted rows")

// cleanWithin limits a cleaning: it reads and writes the whole read model.
const cleanWithin = 30 * time.Minute

func (p *Projector[U]) clean(ctx context.Context) (Cleaned, error) {
	store, ok := any(p.store).(Cleaner)
	if !ok {
		return Cleaned{}, ErrNoCleaner
	}
	p.cleaning.Lock() // a concurrent request waits and then cleans again: rows may have been deleted since this cleaning began
	defer p.cleaning.Unlock()
	return store.Clean(ctx)
}

type cleanRequest struct {
	Clean bool `json:"clean"`
}

func cleanSubject(b Build, partition int) string {
	return "mneme-clean." + b.names() + strconv.Itoa(partition)
}

var cleanClasses = []eventlog.Class{{Name: "no cleaner", Err: ErrNoCleaner}}

// answerCleaning takes requests for cleanings from the process that drives a partition, until stop is
// called.
func (p *Projector[U]) answerCleaning(partition int) (stop func()) {
	stop, err := eventlog.Serve(p.log.Conn(), cleanSubject(p.build(), partition), cleanClasses, func(q cleanRequest, respond func(Cleaned, error)) {
		if !q.Clean {
			return
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), cleanWithin)
			defer cancel()
			respond(p.clean(ctx))
		}()
	})
	if err != nil {
		p.slog.Warn("other processes cannot request cleanings", "partition", partition, "error", err)
		return func() {}
	}
	return stop
}

// RequestCleaning asks the process that drives the first partition of a read model to overwrite what
// deleted rows left behind. It returns [ErrUnheld] if there is no such process, and [ErrNoCleaner].
func RequestCleaning(ctx context.Context, conn *nats.Conn, b Build) (Cleaned, error) {
	ctx, cancel := context.WithTimeout(ctx, cleanWithin)
	defer cancel()
	a, err := eventlog.Ask[cleanRequest, Cleaned](ctx, conn, cleanSubject(b, 0), cleanClasses, cleanRequest{true})
	if errors.Is(err, eventlog.ErrNoAnswer) {
		return a, fmt.Errorf("clean %s: %w", b.Projection, ErrUnheld)
	}
	if errors.Is(err, eventlog.ErrLate) {
		err = fmt.Errorf("clean %s: the process that writes it: %w", b.Projection, err)
	}
	return a, err
}
