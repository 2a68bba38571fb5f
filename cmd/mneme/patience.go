package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"mneme.dev/mneme/internal/settings"
)

// patience is how long a command waits for a server that says nothing. An answer may take
// hours, as that of verify does, so a silent server is not given up before it was asked
// whether it is alive, on another connection.
type patience struct {
	silence time.Duration // without a byte of the answer, before it is asked
	probe   time.Duration // that it may take to say anything to that
	remind  time.Duration // how often a command that waits for a server says so
	away    time.Duration // after which it waits no longer
}

var usualPatience = patience{silence: 30 * time.Second, probe: 10 * time.Second, remind: time.Minute, away: 15 * time.Minute}

// muteError says that the server is there and does nothing.
type muteError struct {
	url    string
	silent time.Duration
}

func (e *muteError) Error() string {
	return fmt.Sprintf("the server at %s has taken the request and says nothing for %s, not even that it is alive: it is frozen, overloaded, or no mneme", e.url, e.silent.Round(time.Second))
}

// attention watches over one request from its beginning until the answer is closed.
type attention struct {
	client *client
	ctx    context.Context
	cancel context.CancelCauseFunc
	heard  atomic.Int64 // when a byte came last, in nanoseconds since began
	began  time.Time
}

// attend makes the context for a request, which ends with a [muteError] if the server is
// silent for too long.
func (c *client) attend(ctx context.Context) *attention {
	a := &attention{client: c, began: time.Now()}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	go a.watch()
	return a
}

func (a *attention) hear() { a.heard.Store(int64(time.Since(a.began))) }

func (a *attention) silent() time.Duration {
	return time.Since(a.began) - time.Duration(a.heard.Load())
}

func (a *attention) watch() {
	for left := a.client.patience.silence; ; left = a.client.patience.silence - a.silent() {
		select {
		case <-time.After(max(left, time.Millisecond)):
		case <-a.ctx.Done():
			return
		}
		if a.silent() < a.client.patience.silence {
			continue
		}
		if a.client.isAlive(a.ctx) {
			a.hear()
			continue
		}
		if a.silent() >= a.client.patience.silence { // or it spoke meanwhile
			a.cancel(&muteError{settings.Redacted(a.client.base), a.silent()})
		}
	}
}

// isAlive tells whether the server answers anything at all.
func (c *client) isAlive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.patience.probe)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil
}

// cause is why a request failed: an error that came of a silent server says that.
func (a *attention) cause(err error) error {
	if mute, ok := context.Cause(a.ctx).(*muteError); ok && err != nil {
		return &awayError{mute}
	}
	return err
}

// attended is the body of an answer that is watched over until it is closed.
type attended struct {
	io.ReadCloser
	a *attention
}

func (b *attended) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.a.hear()
	}
	if err != nil && err != io.EOF {
		err = b.a.cause(err)
	}
	return n, err
}

func (b *attended) Close() error {
	defer b.a.cancel(nil)
	return b.ReadCloser.Close()
}
