package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
)

// patience is how long a command waits for a silent server. An answer, such as that of
// verify, may take hours, so the command probes a silent server on another connection
// before it gives up.
type patience struct {
	silence time.Duration // without a byte of the answer, before a probe
	probe   time.Duration // time to answer the probe
	remind  time.Duration // how often a waiting command says that it waits
	away    time.Duration // how long it waits for a server that is down
}

var usualPatience = patience{silence: 30 * time.Second, probe: 10 * time.Second, remind: time.Minute, away: 15 * time.Minute}

// muteError means that the server accepts connections but does not answer.
type muteError struct {
	url    string
	silent time.Duration
}

func (e *muteError) Error() string {
	return fmt.Sprintf("the server at %s has taken the request and says nothing for %s, not even that it is alive: it is frozen, overloaded, or no mneme", e.url, e.silent.Round(time.Second))
}

// attention watches one request from its start until the answer is closed.
type attention struct {
	client *client
	ctx    context.Context
	cancel context.CancelCauseFunc
	heard  atomic.Int64 // when the last byte arrived, in ns since began
	began  time.Time
}

// attend creates the context of a request. The context ends with a [muteError] if the
// server is silent for too long.
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
		if a.silent() >= a.client.patience.silence { // otherwise it has answered since the check
			a.cancel(&muteError{settings.Redacted(a.client.base), a.silent()})
		}
	}
}

// isAlive reports whether the server answers at all.
func (c *client) isAlive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.patience.probe)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil
}

// cause returns why a request failed: if the server was silent, an [awayError] around the [muteError].
func (a *attention) cause(err error) error {
	if mute, ok := context.Cause(a.ctx).(*muteError); ok && err != nil {
		return &awayError{mute}
	}
	return err
}

// attended is the body of an answer that is watched until it is closed.
type attended struct {
	io.ReadCloser
	a *attention
}

func (b *attended) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.a.hear()
	}
	switch {
	case err == nil, err == io.EOF:
	case b.a.ctx.Err() != nil:
		err = b.a.cause(err)
	default:
		err = &awayError{fmt.Errorf("the server at %s stopped in the middle of its answer: %w", settings.Redacted(b.a.client.base), err)}
	}
	return n, err
}

func (b *attended) Close() error {
	defer b.a.cancel(nil)
	return b.ReadCloser.Close()
}

// patient returns how a long command repeats a request to a busy server: one that does not answer now, or that allows
// its tenant no more at the moment. Before the first wait it tells the user, and again every minute.
func (t *terminal) patient(bar *bar) *importer.Patience {
	var mu sync.Mutex
	var said time.Time
	return &importer.Patience{
		Busy: func(err error) (after time.Duration, busy bool) {
			var answered *answeredError
			if errors.As(err, &answered) && answered.after > 0 {
				return answered.after, true
			}
			if answered != nil && slices.Contains([]int{http.StatusTooManyRequests, http.StatusRequestTimeout, clientGone}, answered.status) {
				return 0, true
			}
			var away *awayError
			return 0, errors.As(err, &away) || errors.Is(err, eventlog.ErrUnconfirmed) || errors.Is(err, eventlog.ErrNoLeader)
		},
		Waiting: func(err error, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); now.Sub(said) >= usualPatience.remind {
				said = now
				_ = bar.Clear()
				t.say("waiting, and trying again: %v", err)
			}
		},
	}
}
