package eventlog

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnAnswerThatTakesLongerThanAnAttemptIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var asked atomic.Int32
		n, err := hedge(t.Context(), firstHedge, func(ctx context.Context) (int, error) {
			attempt := asked.Add(1)
			select {
			case <-time.After(askTime - time.Second): // longer than each of its attempts
				return int(attempt), nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		require.NoError(t, err)
		require.Equal(t, 1, n, "the first attempt is answered first")
		require.Equal(t, askTime-time.Second, time.Since(start))
		require.EqualValues(t, 3, asked.Load(), "after 0, 2 and 6 s")
	})
}

func TestAQuestionThatGotLostIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var asked atomic.Int32
		n, err := hedge(t.Context(), firstHedge, func(ctx context.Context) (int, error) {
			attempt := asked.Add(1)
			if attempt == 1 { // the server died with it
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return int(attempt), nil
		})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, firstHedge, time.Since(start))
	})
}

func TestAQuestionEndsWithAnErrorOrItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		_, err := hedge(t.Context(), firstHedge, func(context.Context) (int, error) { return 0, refused })
		require.ErrorIs(t, err, refused)

		silent := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		start := time.Now()
		_, err = hedge(t.Context(), firstHedge, silent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, ErrSilent)
		require.Equal(t, askTime, time.Since(start), "without a deadline")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start = time.Now()
		_, err = hedge(ctx, firstHedge, silent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))

		_, err = ask(t.Context(), silent)
		require.ErrorIs(t, err, ErrSilent)
		gone, leave := context.WithCancel(t.Context())
		leave()
		for _, one := range []func() (int, error){func() (int, error) { return ask(gone, silent) }, func() (int, error) { return hedge(gone, firstHedge, silent) }} {
			_, err = one()
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, ErrSilent, "nobody waited for the server")
		}
	})
}
