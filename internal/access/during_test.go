package access_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
)

// The writer of an answer goes to another request as soon as the handler has returned: a cut that comes later would end that one.
func TestNothingIsCutOffOnceARequestHasEnded(t *testing.T) {
	t.Parallel()
	for name, withdraw := range map[string]func(g *access.Grant) (now func()){
		"revoked": func(g *access.Grant) func() {
			ended, revoke := context.WithCancel(context.Background())
			g.Ended = []context.Context{ended}
			return revoke
		},
		"expired": func(g *access.Grant) func() {
			g.Expires = time.Now().Add(time.Minute)
			return func() { time.Sleep(time.Minute) } // of the clock of the bubble
		},
	} {
		t.Run(name+" while it is handled", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := &access.Grant{}
				now := withdraw(g)
				cutting, cut := make(chan struct{}), make(chan struct{})
				ctx, end := g.During(t.Context(), func() {
					close(cutting)
					<-cut
				})
				now()
				<-cutting
				require.ErrorIs(t, context.Cause(ctx), access.ErrWithdrawn)
				ended := make(chan struct{})
				go func() {
					end()
					close(ended)
				}()
				synctest.Wait()
				select {
				case <-ended:
					t.Error("the request has ended before its cut")
				default:
				}
				close(cut)
				<-ended
			})
		})
		t.Run(name+" after it", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := &access.Grant{}
				now := withdraw(g)
				ctx, end := g.During(t.Context(), func() { t.Error("it was cut off") })
				end()
				now()
				synctest.Wait()
				require.ErrorIs(t, context.Cause(ctx), context.Canceled)
			})
		})
	}
}
