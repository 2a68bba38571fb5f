package access

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrWithdrawn ends what a token has open when it is revoked or expires.
var ErrWithdrawn = errors.New("the token was revoked or has expired")

// During returns a context that carries the grant and ends with it, with [ErrWithdrawn] as cause. cut is called, by another
// goroutine, if the grant ends first: it must end what does not watch the context, and may not block.
//
// The caller calls end once. When end returns, cut has returned or is never called: what cut uses may belong to somebody else
// from then on, as the writer of an answer belongs to another request.
func (g *Grant) During(parent context.Context, cut func()) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(With(parent, g))
	var cuts sync.WaitGroup // those that run or may still begin
	withdrawn := func() {
		defer cuts.Done()
		cancel(ErrWithdrawn)
		cut()
	}
	var stops []func() bool
	for _, ended := range g.Ended {
		cuts.Add(1)
		stops = append(stops, context.AfterFunc(ended, withdrawn))
	}
	if !g.Expires.IsZero() {
		cuts.Add(1)
		stops = append(stops, time.AfterFunc(time.Until(g.Expires), withdrawn).Stop)
	}
	return ctx, func() {
		for _, stop := range stops {
			if stop() {
				cuts.Done()
			}
		}
		cuts.Wait()
		cancel(nil)
	}
}
