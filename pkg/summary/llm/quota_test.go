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
		for range 3 { // calls count even before there is a limit
			require.Nil(t, q.take())
			q.pay(5, 100)
			time.Sleep(time.Minute)
		}
		calls, tokens, cost := q.Used()
		require.Equal(t, 3, calls)
		require.InDelta(t, 15, cost, 1e-9)
		require.EqualValues(t, 300, tokens)
		q.Allow(3, 0, 0)
		err := q.take()
		require.ErrorIs(t, err, ErrOverQuota)
		require.NotErrorIs(t, err, ErrCapped)
		require.ErrorIs(t, err, summary.ErrUnavailable)
		require.ErrorContains(t, err, `the tenant "team-a" is over its quota of 3 model calls an hour`)
		require.Equal(t, time.Now().Add(57*time.Minute), err.NotBefore)
		q.Allow(4, 250, 0)
		require.ErrorContains(t, q.take(), "250 model tokens an hour")
		q.Allow(4, 301, 15)
		err = q.take()
		require.ErrorIs(t, err, ErrOverQuota)
		require.ErrorContains(t, err, `the tenant "team-a" is over its quota of a model cost of 15 an hour`)
		require.Equal(t, time.Now().Add(57*time.Minute), err.NotBefore, "when the first payment is an hour old")
		q.Allow(4, 301, 15.5)
		require.Nil(t, q.take())
		time.Sleep(time.Hour)
		calls, tokens, cost = q.Used()
		require.Zero(t, calls)
		require.Zero(t, tokens)
		require.Zero(t, cost)
	})
}

func TestACapIsOfAllThatAPieceOfWorkTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCap(2, 250)
		require.Nil(t, c.take())
		c.pay(0, 200)
		time.Sleep(2 * time.Hour)
		require.Nil(t, c.take(), "200 tokens are less")
		err := c.take()
		require.ErrorIs(t, err, ErrCapped)
		require.ErrorContains(t, err, "the cap of 2 calls is reached")
		require.Zero(t, err.NotBefore, "waiting does not help")
		c = NewCap(0, 250)
		c.pay(0, 250)
		require.ErrorContains(t, c.take(), "the cap of 250 tokens is reached")
		require.Nil(t, NewCap(0, 0).take())
	})
}
