package projection

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// errTaken means that the lease is held, maybe by this process.
var errTaken = errors.New("the lease is taken")

// errLate means that a lease was not renewed in time.
var errLate = errors.New("the lease was not renewed in time")

// errReleased means that a lease was given back.
var errReleased = errors.New("the lease was given back")

// lease is a key of the bucket that this process has created. It is renewed until it is
// released or lost; the server removes a key that is not renewed.
type lease struct {
	bucket jetstream.KeyValue
	ttl    time.Duration
	key    string

	// valid ends when the lease is released or lost; its cause says why. It ends before the
	// server can give the key to another process: at the first failed renewal, or three
	// quarters of the TTL after the last successful one, by the monotonic clock. It can be
	// late only if the process or its machine is suspended.
	valid    context.Context
	lose     context.CancelCauseFunc
	watchdog *time.Timer

	made     uint64        // first revision of the key
	revision uint64        // current revision; owned by renew until renewing is closed
	stop     chan struct{} // closed to end renew
	renewing chan struct{} // closed when renew has ended
}

// take creates a key. value returns its content and is called at each renewal. take returns
// [errTaken] if the key exists or somebody else creates it at the same time.
func take(bucket jetstream.KeyValue, ttl time.Duration, key string, value func() []byte) (*lease, error) {
	l := &lease{bucket: bucket, ttl: ttl, key: key, stop: make(chan struct{}), renewing: make(chan struct{})}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), l.patience())
	defer cancel()
	var err error
	l.made, err = bucket.Create(ctx, key, value())
	if natsdeploy.IsConflict(err) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	l.revision = l.made
	l.valid, l.lose = context.WithCancelCause(context.Background())
	l.watchdog = time.AfterFunc(time.Until(l.end(began)), func() { l.lose(errLate) })
	go l.renew(value)
	return l, nil
}

// end returns when a lease expires for its holder, if it was created or renewed by a
// request at began.
func (l *lease) end(began time.Time) time.Time { return began.Add(l.ttl * 3 / 4) }

// patience limits how long the server may take for a request other than a renewal.
func (l *lease) patience() time.Duration { return l.ttl / 2 }

func (l *lease) renew(value func() []byte) {
	defer close(l.renewing)
	ticker := time.NewTicker(l.ttl / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-l.valid.Done():
			return
		case <-l.stop:
			return
		}
		began := time.Now()
		revision, err := l.bucket.Update(l.valid, l.key, value(), l.revision)
		if err != nil {
			l.lose(err)
			return
		}
		l.revision = revision
		l.watchdog.Reset(time.Until(l.end(began)))
	}
}

// release ends the lease and deletes the key, so that other processes see it at once. The
// key of a lost lease is left to expire.
func (l *lease) release() {
	close(l.stop)
	<-l.renewing
	l.watchdog.Stop()
	if l.valid.Err() != nil {
		return
	}
	l.lose(errReleased)
	ctx, cancel := context.WithTimeout(context.Background(), l.patience())
	defer cancel()
	_ = l.bucket.Delete(ctx, l.key, jetstream.LastRevision(l.revision))
}
