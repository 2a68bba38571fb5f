package httpapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// exchange is a request with its answer, for what every route has in common.
type exchange struct {
	huma   huma.Context
	pins   pins
	answer *response
	worked []func() // to be called once the answer is rendered
	ended  []func() // to be called once it is written
}

// rendered is called when the first bytes of the answer are written. JSON and text are
// written in one piece, so that nothing is left to do but to send it.
func (x *exchange) rendered() {
	for _, end := range x.worked {
		end()
	}
	x.worked = nil
}

// end gives back what the request had.
func (x *exchange) end() {
	x.rendered()
	x.pins.release()
	for _, end := range x.ended {
		end()
	}
}

type exchangeKey struct{}

// exchangeOf is the exchange that a handler of this API answers.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// exchange is around every operation.
func (a *api) exchange(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		x := &exchange{huma: ctx, answer: w.(*response)}
		ctx = huma.WithValue(ctx, exchangeKey{}, x)
		defer x.end()
		ctx.SetHeader("Cache-Control", cacheNothing)
		if r.URL.Path != eventsPath { // there it is the event's own
			r.Header.Set("Content-Type", strings.ToLower(r.Header.Get("Content-Type"))) // huma looks it up as it is
		}
		if ctx.Operation().MaxBodyBytes > 0 { // else none of it is kept
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

// requestBody is a request's body that must arrive in time: the next part of it
// within stall, and all of it until a moment.
type requestBody struct {
	io.ReadCloser
	answer  http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	until   time.Time         // zero: as long as it goes on
	broken  error             // why it could not be read to its end
	take    func(int64) error // reserves memory for what has arrived; nil if none of it is kept
}

// bodyError is why a request's body could not be read.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }

// Read ends with a [*bodyError]; then the connection ends with the answer, since
// nobody knows where the next request begins. At the end of the body the deadline
// goes: it would else end the request while it is worked on.
func (b *requestBody) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.stall)
	if !b.until.IsZero() && b.until.Before(deadline) {
		deadline = b.until
	}
	_ = b.control.SetReadDeadline(deadline)
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

// unboundBody is a request's body, which may take as long as it goes on.
func unboundBody(ctx context.Context) *requestBody {
	r, _ := humago.Unwrap(exchangeOf(ctx).huma)
	b := r.Body.(*requestBody)
	b.until = time.Time{}
	return b
}

// writePiece is how much of an answer is written at a time: a client that takes at
// least this much within the time for one write is not cut off, however long the
// answer.
const writePiece = 64 << 10

// response is an answer that the client must take in time.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	started bool

	rendered func(n int)  // called once, before the first n bytes are written; may be nil
	writing  atomic.Int64 // since when, in ns, the client has not taken what is being written; 0: nothing is
	cut      atomic.Bool
}

// cutOff ends the answer wherever it is. It may be called by other goroutines.
func (w *response) cutOff() {
	w.cut.Store(true)
	_ = w.control.SetWriteDeadline(time.Now().Add(-time.Second))
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	w.started = w.started || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (n int, err error) {
	w.started = true
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
		if w.cut.Load() { // asked after the deadline was set, which would undo that of cutOff
			return n, errCutOff
		}
		piece, err = w.ResponseWriter.Write(p[n:min(n+writePiece, len(p))])
		n += piece
	}
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
