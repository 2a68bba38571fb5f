// Package rebuild records operators' requests for rebuilds and reports their progress. The
// process that writes a projection carries them out, see internal/worker.
//
// A request, called a wish, is a record in the bucket AGENT_CONTROL under
// rebuild.<backend>.<projection>. Every change of it is a compare-and-set. The backend is
// part of the key because one log may feed read models in SQLite and in Neo4j, and a
// rebuild affects one of them. The read model's store decides which generation serves; a
// record that lags behind the store is corrected.
//
//	          ask                 all partitions have caught up
//	nothing ──────▶ building ────────────────────────────────▶ serving
//	   ▲               │  │ it can't be built
//	   │ all gone      │  └────────────────▶ failed             ask: building again
//	canceled ◀─────────┘ cancel
package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

var (
	// ErrRebuilding means that a rebuild is under way; the error is an [*UnderWayError].
	ErrRebuilding = errors.New("a rebuild is under way")
	// ErrNotRebuilding means that there is no rebuild to cancel.
	ErrNotRebuilding = errors.New("no rebuild is under way")
	// ErrUnknown means that there is no such projection.
	ErrUnknown = errors.New("unknown projection")
	// errChanged means that the record was changed since it was read.
	errChanged = errors.New("the record has changed")
)

// State is the state of a rebuild.
type State string

const (
	Building State = "building" // the new generation is being built while the old one serves
	Serving  State = "serving"  // the new generation serves; the rebuild is done
	Canceled State = "canceled" // the new generation is being removed
	Failed   State = "failed"   // Error says why; the old generation still serves

	// Unreadable means that the record is not one of ours; Error says why. It counts as no
	// record, and the next rebuild replaces it.
	Unreadable State = "unreadable"
)

// maxGeneration bounds the generation in a record. A rebuild takes the next number.
const maxGeneration = 1_000_000

// Wish records a requested rebuild.
type Wish struct {
	Generation int       `json:"generation"` // generation to build
	From       int       `json:"from"`       // generation that served at the time of the request
	AskedAt    time.Time `json:"asked_at"`
	State      State     `json:"state"`
	Error      string    `json:"error,omitempty"`
	// Force says that the rebuild may replace a generation that holds more than the log.
	Force bool `json:"force,omitempty"`
	// Missing is how many events the log lacked when the rebuild was asked for. If it
	// lacks more when the new generation has caught up, that generation must not serve.
	Missing uint64 `json:"missing,omitempty"`

	revision uint64
}

// check returns why this package can't have written the record.
func (w Wish) check() error {
	switch {
	case w.Generation < 1 || w.Generation > maxGeneration:
		return fmt.Errorf("generation %d: must be from 1 to %d", w.Generation, maxGeneration)
	case w.From < 0 || w.From >= w.Generation:
		return fmt.Errorf("from %d: must be less than generation %d", w.From, w.Generation)
	}
	switch w.State {
	case Building, Serving, Canceled, Failed:
		return nil
	}
	return fmt.Errorf("state %.32q: must be %s, %s, %s or %s", w.State, Building, Serving, Canceled, Failed)
}

// IsZero reports whether there is no wish.
func (w Wish) IsZero() bool { return w.Generation == 0 }

// UnderWayError names the rebuild that is under way.
type UnderWayError struct {
	Projection string
	Wish       Wish
}

func (e *UnderWayError) Error() string {
	if e.Wish.State == Canceled {
		return fmt.Sprintf("the canceled rebuild of %s is still being cleaned up (generation %d is being removed)", e.Projection, e.Wish.Generation)
	}
	return fmt.Sprintf("a rebuild of %s into generation %d has been under way since %s", e.Projection, e.Wish.Generation, e.Wish.AskedAt.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrRebuilding) true.
func (e *UnderWayError) Is(target error) bool { return target == ErrRebuilding }

// Control reads and changes the wishes for one backend's read models.
type Control struct {
	js     jetstream.JetStream
	prefix string // of the keys

	mu    sync.Mutex
	known jetstream.KeyValue // nil after a failed request
}

// NewControl returns the control for a backend, "sqlite" or "neo4j". The bucket is created
// on first use.
func NewControl(conn *nats.Conn, backend string) (*Control, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	return &Control{js: js, prefix: "rebuild." + backend + "."}, nil
}

// in runs a request on the bucket. It opens the bucket, creating it if needed, on first use
// and after a failed request.
func (c *Control) in(ctx context.Context, request func(jetstream.KeyValue) error) error {
	c.mu.Lock()
	bucket := c.known
	c.mu.Unlock()
	if bucket == nil {
		var err error
		if bucket, err = natsdeploy.ApplyControl(ctx, c.js); err != nil {
			return err
		}
	}
	err := request(bucket)
	if isGone(err) {
		if bucket, err = natsdeploy.ApplyControl(ctx, c.js); err == nil {
			err = request(bucket)
		}
	}
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) && !natsdeploy.IsConflict(err) {
		bucket = nil
	}
	c.mu.Lock()
	c.known = bucket
	c.mu.Unlock()
	return err
}

// isGone reports whether a request reached no bucket because it was deleted since.
func isGone(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders)
}

// Get returns the wish for a projection, or the zero value if there is none. For a record
// that can't be read, it returns a wish with the state [Unreadable], which is zero too.
func (c *Control) Get(ctx context.Context, projection string) (w Wish, err error) {
	var entry jetstream.KeyValueEntry
	err = c.in(ctx, func(bucket jetstream.KeyValue) (err error) {
		entry, err = bucket.Get(ctx, c.prefix+projection)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return w, nil
	}
	if err != nil {
		return w, fmt.Errorf("read the rebuild record of %s: %w", projection, err)
	}
	if err = json.Unmarshal(entry.Value(), &w); err == nil {
		err = w.check()
	}
	if err != nil {
		w = Wish{State: Unreadable, Error: fmt.Sprintf("the record %s in the bucket %s can't be read: %v; it counts as none, and the next rebuild of %s replaces it",
			c.prefix+projection, natsdeploy.ControlBucket, err, projection)}
	}
	w.revision = entry.Revision()
	return w, nil
}

// begin records a new wish in place of a finished or failed one. It returns an
// [*UnderWayError] if a rebuild is under way.
func (c *Control) begin(ctx context.Context, projection string, now, next Wish) error {
	if now.State == Building || now.State == Canceled {
		return &UnderWayError{projection, now}
	}
	next.revision = now.revision
	err := c.put(ctx, projection, next)
	if !errors.Is(err, errChanged) {
		return err
	}
	if now, err = c.Get(ctx, projection); err != nil {
		return err
	}
	return &UnderWayError{projection, now}
}

// Become changes the state of a wish and reports true, unless the wish has changed since it
// was read.
func (c *Control) Become(ctx context.Context, projection string, w Wish, state State, reason string) (bool, error) {
	w.State, w.Error = state, reason
	err := c.put(ctx, projection, w)
	if errors.Is(err, errChanged) {
		return false, nil
	}
	return err == nil, err
}

// Forget deletes a wish, unless it has changed since it was read.
func (c *Control) Forget(ctx context.Context, projection string, w Wish) error {
	err := c.in(ctx, func(bucket jetstream.KeyValue) error {
		return bucket.Delete(ctx, c.prefix+projection, jetstream.LastRevision(w.revision))
	})
	if natsdeploy.IsConflict(err) {
		return nil
	}
	return err
}

func (c *Control) put(ctx context.Context, projection string, w Wish) error {
	value, err := json.Marshal(w)
	if err != nil {
		return err
	}
	err = c.in(ctx, func(bucket jetstream.KeyValue) (err error) {
		if w.revision == 0 {
			_, err = bucket.Create(ctx, c.prefix+projection, value)
		} else {
			_, err = bucket.Update(ctx, c.prefix+projection, value, w.revision)
		}
		return err
	})
	if natsdeploy.IsConflict(err) {
		return errChanged
	}
	return err
}

// rewatchEvery is the pause before a lost watch is restarted.
const rewatchEvery = time.Second

// Watch calls changed with the name of each projection whose wish has changed, until ctx
// ends. It is only a hint because a watch can fall silent: also call Get now and then.
func (c *Control) Watch(ctx context.Context, logger *slog.Logger, changed func(projection string)) {
	said := ""
	for ctx.Err() == nil {
		err := c.watch(ctx, changed)
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			logger.Warn("rebuild watch lost; polling instead", "error", err)
		}
		select {
		case <-time.After(rewatchEvery):
		case <-ctx.Done():
		}
	}
}

func (c *Control) watch(ctx context.Context, changed func(projection string)) error {
	bucket, err := natsdeploy.ApplyControl(ctx, c.js)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := bucket.Watch(ctx, c.prefix+"*", jetstream.UpdatesOnly())
	if err != nil {
		return err
	}
	defer natsdeploy.Drain(watcher)
	for {
		select {
		case e, ok := <-watcher.Updates():
			if !ok {
				return errors.New("the watch has ended")
			}
			if e != nil {
				changed(strings.TrimPrefix(e.Key(), c.prefix))
			}
		case <-ctx.Done():
			return nil
		}
	}
}
