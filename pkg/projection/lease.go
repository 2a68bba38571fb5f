package projection

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme/deploy/nats"
)

// errTaken says that somebody has the lease.
var errTaken = errors.New("somebody has the lease")

// errLate says that a lease was not renewed in time.
var errLate = errors.New("the lease was not renewed in time")

// errReleased says that a lease was given back.
var errReleased = errors.New("the lease was given back")

// lease is a key of the bucket that this process has made and renews, until it is
// released or lost. The server takes it from a process that does not renew it.
type lease struct {
	bucket jetstream.KeyValue
	ttl    time.Duration
	key    string

	// valid ends when the lease is released or lost, and its cause says why. It ends
	// before the server gives the key to anyone else: at the first renewal that fails,
	// and at three quarters of the TTL, by the monotonic clock, after the last one that
	// did not. Only a process, or its machine, that does not run at all can be late.
	valid    context.Context
	lose     context.CancelCauseFunc
	watchdog *time.Timer

	made     uint64        // revision of the key at first
	revision uint64        // and now; renew's until renewing ends
	stop     chan struct{} // ends renew
	renewing chan struct{} // closed when renew has ended
}

// take makes a key, whose value is asked for at each renewal. It returns [errTaken] if the
// key is there, or somebody makes it just now.
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

// end is how long a lease is valid that was made or renewed by a request at began.
func (l *lease) end(began time.Time) time.Time { return began.Add(l.ttl * 3 / 4) }

// patience is how long the server may take for one request beside renewals.
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

// release ends the lease and deletes the key, of which whoever wants it is told at
// once. The key of a lease that is lost is left alone: it expires, if it is there.
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
