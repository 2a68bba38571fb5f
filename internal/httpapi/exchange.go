package httpapi

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/view"
)

// exchange is a request with its answer; it carries the state that all routes share.
type exchange struct {
	huma   huma.Context
	pins   *view.Pins
	answer *response
	worked []func() // called when the answer is rendered
	ended  []func() // called when it is written

	streams bool // the change continues while the answer is written
	told    int  // if it streams: the status of an error that the answer reports
}

// rendered is called when the first bytes of the answer are written. JSON and text are
// written in one piece, so only sending is left to do.
func (x *exchange) rendered() {
	for _, end := range x.worked {
		end()
	}
	x.worked = nil
}

// end releases what the request holds.
func (x *exchange) end() {
	x.rendered()
	x.pins.Release()
	for _, end := range x.ended {
		end()
	}
}

type exchangeKey struct{}

// exchangeOf returns the exchange that a handler is serving.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// exchange is the middleware that wraps every operation.
func (a *api) exchange(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		x := &exchange{huma: ctx, pins: a.views.Pin(), answer: w.(*response)}
		ctx = huma.WithValue(ctx, exchangeKey{}, x)
		defer x.end()
		ctx.SetHeader("Cache-Control", cacheNothing)
		if r.URL.Path != eventsPath { // there the media type belongs to the event
			r.Header.Set("Content-Type", strings.ToLower(r.Header.Get("Content-Type"))) // huma compares case-sensitively
		}
		if ctx.Operation().MaxBodyBytes > 0 { // otherwise the body is streamed, not held in memory
			room := &bodyRoom{exchange: x, limits: a.limits}
			x.ended = append(x.ended, room.release)
			r.Body.(*requestBody).take = room.take
		}
		x.answer.rendered = func(n int) {
			a.limits.answers.add(x.answer, int64(n))
			x.ended = append(x.ended, func() { a.limits.answers.remove(x.answer) })
			x.rendered()
		}
		next(ctx)
	}
}

// requestBody is a request's body that must arrive in time: each part within stall,
// and all of it by until.
type requestBody struct {
	io.ReadCloser
	answer  http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	until   time.Time         // zero: no limit
	broken  error             // why it could not be read to its end
	take    func(int64) error // reserves memory for what has arrived; nil if the body is streamed
	cut     atomic.Bool
}

// bodyError says why a request's body could not be read.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }

// Read fails with a [*bodyError]; the connection then closes after the answer, because
// the start of the next request is unknown. At the end of the body Read removes the
// deadline, which would otherwise end the request while it is being handled.
func (b *requestBody) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.stall)
	if !b.until.IsZero() && b.until.Before(deadline) {
		deadline = b.until
	}
	_ = b.control.SetReadDeadline(deadline)
	if b.cut.Load() { // check after setting the deadline, which overwrites the one of cutOff
		b.broken = &bodyError{access.ErrWithdrawn}
		return 0, b.broken
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.take != nil {
		if full := b.take(int64(n)); full != nil {
			n, err = 0, full
		}
	}
	switch {
	case err == io.EOF:
		_ = b.control.SetReadDeadline(time.Time{})
	case err != nil:
		b.answer.Header().Set("Connection", "close")
		b.broken = &bodyError{err}
		err = b.broken
	}
	return n, err
}

// cutOff ends reading. Other goroutines may call it.
func (b *requestBody) cutOff() {
	b.cut.Store(true)
	_ = b.control.SetReadDeadline(time.Now().Add(-time.Second))
}

// unboundBody returns the request's body, without a limit for the whole of it.
func unboundBody(ctx context.Context) *requestBody {
	r, _ := humago.Unwrap(exchangeOf(ctx).huma)
	b := r.Body.(*requestBody)
	b.until = time.Time{}
	return b
}

// writePiece is how many bytes of an answer are written at a time. A client that takes at
// least this much within the time for one write is not cut off, however long the
// answer is.
const writePiece = 64 << 10

// response is an answer that the client must take in time.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	status  int // 0: not begun

	rendered func(n int)  // called once, before the first n bytes are written; may be nil
	writing  atomic.Int64 // when the write began that the client has not taken yet, in ns; 0: none
	cut      atomic.Bool
}

// cutOff aborts the answer. Other goroutines may call it.
func (w *response) cutOff() {
	w.cut.Store(true)
	_ = w.control.SetWriteDeadline(time.Now().Add(-time.Second))
}

// looksComplete reports whether the client would take a part of an answer for the whole: after [response.cutOff],
// net/http would end what was written as if nothing were missing. Of an error, the status alone says enough.
func (w *response) looksComplete() bool {
	return w.cut.Load() && w.status != 0 && w.status < http.StatusBadRequest
}

// WriteHeader implements http.ResponseWriter. An error has no ETag, even if the conversation that it is about has one.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	if status >= http.StatusBadRequest && w.Header().Get("ETag") != "" {
		w.Header().Del("ETag")
		w.Header().Set("Cache-Control", cacheNothing)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (n int, err error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	if rendered := w.rendered; rendered != nil {
		w.rendered = nil
		rendered(len(p))
	}
	defer w.writing.Store(0)
	for err == nil && n < len(p) {
		var piece int
		now := time.Now()
		w.writing.Store(now.UnixNano())
		_ = w.control.SetWriteDeadline(now.Add(w.stall))
		if w.cut.Load() { // check after setting the deadline, which overwrites the one of cutOff
			return n, errCutOff
		}
		piece, err = w.ResponseWriter.Write(p[n:min(n+writePiece, len(p))])
		n += piece
	}
	return n, err
}

// Unwrap supports http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
