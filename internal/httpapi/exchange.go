package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// exchange is a request with its answer, for what every route has in common.
type exchange struct {
	huma  huma.Context
	pins  pins
	ended []func() // to be called once the answer is written
}

// end gives back what the request had.
func (x *exchange) end() {
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
		x := &exchange{huma: ctx}
		ctx = huma.WithValue(ctx, exchangeKey{}, x)
		defer x.end()
		ctx.SetHeader("Cache-Control", cacheNothing)
		if r, _ := humago.Unwrap(ctx); r.URL.Path != eventsPath { // there it is the event's own
			r.Header.Set("Content-Type", strings.ToLower(r.Header.Get("Content-Type"))) // huma looks it up as it is
		}
		if size := bodySize(ctx); size > 0 {
			if err := admit(ctx.Context(), a.limits.bodies, size); err != nil {
				a.refuse(h, ctx, err)
				return
			}
		}
		next(ctx)
	}
}

// refuse answers a problem where no handler can return it.
func (a *api) refuse(h huma.API, ctx huma.Context, err error) {
	err = a.problem(err)
	var with huma.HeadersError
	if errors.As(err, &with) {
		for name, values := range with.GetHeaders() {
			ctx.SetHeader(name, values[0])
		}
	}
	var problem huma.StatusError
	if errors.As(err, &problem) { // which it always is
		_ = huma.WriteErr(h, ctx, problem.GetStatus(), problem.Error())
	}
}

// bodySize is how much of a request's body, unpacked, will be held in memory at most,
// 0 if none of it.
func bodySize(ctx huma.Context) int64 {
	r, _ := humago.Unwrap(ctx)
	limit := ctx.Operation().MaxBodyBytes
	if r.ContentLength >= 0 {
		return min(r.ContentLength, limit)
	}
	return limit
}

// requestBody is a request's body that must arrive in time: the next part of it
// within stall, and all of it until a moment.
type requestBody struct {
	io.ReadCloser
	answer  http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	until   time.Time // zero: as long as it goes on
	broken  error     // why it could not be read to its end
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
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	w.started = w.started || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (n int, err error) {
	w.started = true
	for err == nil && n < len(p) {
		var piece int
		_ = w.control.SetWriteDeadline(time.Now().Add(w.stall))
		piece, err = w.ResponseWriter.Write(p[n:min(n+writePiece, len(p))])
		n += piece
	}
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
