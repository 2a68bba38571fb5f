// Package rebuild holds the wishes of operators for rebuilds: what is asked for, and how
// far it is. Whoever writes a projection fulfils them, see internal/service.
//
// A wish is a record in the bucket AGENT_CONTROL, under rebuild.<backend>.<projection>,
// and every change of it is a compare-and-set. The backend is in the key since one log may
// feed read models in SQLite and in Neo4j, and a rebuild is of one of them. What serves is for the read model's store to say: a
// record that is behind it is put right.
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

	natsdeploy "mneme/deploy/nats"
)

var (
	// ErrRebuilding says that a rebuild is under way; it is a [*UnderWayError].
	ErrRebuilding = errors.New("a rebuild is under way")
	// ErrNotRebuilding says that there is no rebuild to cancel.
	ErrNotRebuilding = errors.New("no rebuild is under way")
	// ErrUnknown says that there is no such projection.
	ErrUnknown = errors.New("unknown projection")
	// errChanged says that somebody else has changed the record meanwhile.
	errChanged = errors.New("the record has changed")
)

// State is where a rebuild is.
type State string

const (
	Building State = "building" // the new generation is made beside the one that serves
	Serving  State = "serving"  // it serves: the rebuild is done
	Canceled State = "canceled" // it is being removed
	Failed   State = "failed"   // Error says why; the old generation goes on serving

	// Unreadable: the record is not one of ours, Error says why. It counts as none, and the
	// next rebuild replaces it.
	Unreadable State = "unreadable"
)

// maxGeneration bounds what a record may name. A rebuild takes one number more.
const maxGeneration = 1_000_000

// Wish is the record of a rebuild.
type Wish struct {
	Generation int       `json:"generation"` // that is to be built
	From       int       `json:"from"`       // that served when it was asked for
	AskedAt    time.Time `json:"asked_at"`
	State      State     `json:"state"`
	Error      string    `json:"error,omitempty"`
	// Force says that the rebuild may replace a generation that holds more than the log.
	Force bool `json:"force,omitempty"`
	// Missing is how many events the log lacked when the rebuild was asked for. If it
	// lacks more when the new generation has caught up, that must not serve.
	Missing uint64 `json:"missing,omitempty"`

	revision uint64
}

// check says why a record can't be one that this package wrote.
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

// IsZero tells whether there is no wish.
func (w Wish) IsZero() bool { return w.Generation == 0 }

// UnderWayError says which rebuild is under way.
type UnderWayError struct {
	Projection string
	Wish       Wish
}

func (e *UnderWayError) Error() string {
	if e.Wish.State == Canceled {
		return fmt.Sprintf("what the canceled rebuild of %s made, generation %d, is being removed", e.Projection, e.Wish.Generation)
	}
	return fmt.Sprintf("a rebuild of %s into generation %d is under way since %s", e.Projection, e.Wish.Generation, e.Wish.AskedAt.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrRebuilding) true.
func (e *UnderWayError) Is(target error) bool { return target == ErrRebuilding }

// Control reads and changes the wishes for the read models of one backend.
type Control struct {
	js     jetstream.JetStream
	prefix string // of the keys of the wishes

	mu    sync.Mutex
	known jetstream.KeyValue // until it fails
}

// NewControl is for the read models of a backend, "sqlite" or "neo4j". The bucket is made
// when it is first needed.
func NewControl(conn *nats.Conn, backend string) (*Control, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	return &Control{js: js, prefix: "rebuild." + backend + "."}, nil
}

// in runs a request in the bucket, which is looked for, and made, if it is not known yet
// or the last request failed.
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

// isGone tells whether a request reached no bucket: it was deleted after it was found.
func isGone(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders)
}

// Get reads the wish for a projection, the zero value if there is none. A record that can't
// be read is a wish with the state [Unreadable], which is zero too.
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
		return w, fmt.Errorf("read the wish for %s: %w", projection, err)
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

// begin records a new wish, in place of one that was fulfilled or failed. It returns an
// [*UnderWayError] if another one is under way.
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

// Become changes the state of a wish, if nobody has changed it since it was read. It
// tells whether it did.
func (c *Control) Become(ctx context.Context, projection string, w Wish, state State, reason string) (bool, error) {
	w.State, w.Error = state, reason
	err := c.put(ctx, projection, w)
	if errors.Is(err, errChanged) {
		return false, nil
	}
	return err == nil, err
}

// Forget deletes a wish, if nobody has changed it since it was read.
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

// rewatchEvery is how long a watch waits before it begins again.
const rewatchEvery = time.Second

// Watch calls changed with the projection whose wish has changed, until ctx ends. It is
// a hint: a watch can be silent, so whoever must know asks now and then.
func (c *Control) Watch(ctx context.Context, logger *slog.Logger, changed func(projection string)) {
	said := ""
	for ctx.Err() == nil {
		err := c.watch(ctx, changed)
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			logger.Warn("wishes for rebuilds are not watched for now, only asked for", "error", err)
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
	watcher, err := bucket.Watch(ctx, c.prefix+"*", jetstream.UpdatesOnly())
	if err != nil {
		return err
	}
	defer func() {
		_ = watcher.Stop()
		for range watcher.Updates() { // or a goroutine of the client waits for ever
		}
	}()
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
