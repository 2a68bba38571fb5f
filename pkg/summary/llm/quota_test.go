package llm

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/summary"
)

func TestAQuotaBoundsTheCallsAndTokensOfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuota("team-a")
		for range 3 { // without a limit it counts already
			require.Nil(t, q.take())
			q.pay(5, 100)
			time.Sleep(time.Minute)
		}
		calls, tokens := q.Used()
		require.Equal(t, 3, calls)
		require.EqualValues(t, 300, tokens)
		q.Allow(3, 0)
		err := q.take()
		require.ErrorIs(t, err, ErrOverQuota)
		require.NotErrorIs(t, err, ErrCapped)
		require.ErrorIs(t, err, summary.ErrUnavailable)
		require.ErrorContains(t, err, `the tenant "team-a" is over its quota of 3 model calls an hour`)
		require.Equal(t, time.Now().Add(57*time.Minute), err.NotBefore)
		q.Allow(4, 250)
		require.ErrorContains(t, q.take(), "250 model tokens an hour")
		q.Allow(4, 301)
		require.Nil(t, q.take())
		time.Sleep(time.Hour)
		calls, tokens = q.Used()
		require.Zero(t, calls)
		require.Zero(t, tokens)
	})
}
