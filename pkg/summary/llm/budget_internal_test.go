package llm

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// notBefore returns when a budget allows calls again; zero: now.
func notBefore(t *testing.T, b *Budget) time.Time {
	t.Helper()
	err := b.Check()
	if err == nil {
		return time.Time{}
	}
	require.ErrorIs(t, err, ErrCapped)
	e, _ := errors.AsType[*Error](err)
	return e.NotBefore
}

func TestTheHourOfCallsSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{calls: 2}
		began := time.Now()
		require.Nil(t, b.take())
		time.Sleep(20 * time.Minute)
		require.Nil(t, b.take())
		require.NotNil(t, b.take())
		require.Equal(t, began.Add(time.Hour), notBefore(t, b))
		time.Sleep(40*time.Minute - 1)
		require.NotNil(t, b.take())
		time.Sleep(time.Nanosecond)
		require.Zero(t, notBefore(t, b))
		require.Nil(t, b.take())
		require.Equal(t, began.Add(80*time.Minute), notBefore(t, b))
		require.Len(t, b.called, 2)
	})
}

func TestTheHourOfCostSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{cost: 10}
		began := time.Now()
		for _, amount := range []float64{1, 6, 2} { // at 0, 10 and 20 minutes
			b.pay(amount, 0)
			time.Sleep(10 * time.Minute)
		}
		require.Zero(t, notBefore(t, b), "9 of 10")
		b.pay(4, 0)
		require.Equal(t, began.Add(70*time.Minute), notBefore(t, b), "without the 6 it is less than 10")
		time.Sleep(40 * time.Minute)
		require.Zero(t, notBefore(t, b))
		b.pay(100, 0)
		require.Equal(t, began.Add(130*time.Minute), notBefore(t, b))
	})
}

func TestWithoutCapsNoEntriesAreKept(t *testing.T) {
	t.Parallel()
	b := &Budget{}
	for range 100 {
		require.Nil(t, b.take())
		b.pay(1, 0)
	}
	require.NoError(t, b.Check())
	require.Empty(t, b.called)
	require.Empty(t, b.paid)
}
