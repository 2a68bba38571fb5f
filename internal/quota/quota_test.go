package quota

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func open(t testing.TB, text string) *Quotas {
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	q, err := Open(path)
	require.NoError(t, err)
	return q
}

// over requires that err says when to try again, and returns that wait.
func over(t testing.TB, err error) time.Duration {
	t.Helper()
	var e *ExceededError
	require.ErrorAs(t, err, &e)
	require.Positive(t, e.After)
	return e.After
}

func TestATenantOverItsQuotaPassesAfterTheTimeItIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, "default: {events_per_second: 100, bytes_per_second: 1000}")
		require.NoError(t, q.Take("a", 1000, 100), "ten seconds of the quota")
		wait := over(t, q.Take("a", 1, 1))
		require.Equal(t, 10*time.Millisecond, wait)
		require.NoError(t, q.Take("b", 1, 1), "another tenant")
		time.Sleep(wait)
		require.NoError(t, q.Take("a", 1, 1))

		time.Sleep(time.Minute)
		require.NoError(t, q.Take("a", 1, 10_000))
		wait = over(t, q.Take("a", 500, 500)) // bytes; the events it would have taken are given back
		time.Sleep(wait)
		require.NoError(t, q.Take("a", 999, 500))
	})
}

func TestABatchLargerThanTheQuotaPassesIfNothingWasTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, "default: {events_per_second: 0.5}")
		require.NoError(t, q.Take("a", 1000, 0))
		wait := over(t, q.Take("a", 1000, 0))
		require.Equal(t, 10*time.Second, wait)
		time.Sleep(wait)
		require.NoError(t, q.Take("a", 1000, 0))
	})
}

func TestNobodyTakesMoreThanTheQuotaAllows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		perSecond := rapid.IntRange(1, 50).Draw(r, "per second")
		steps := rapid.SliceOfN(rapid.IntRange(0, perSecond*burst), 1, 60).Draw(r, "events, each a tenth of a second after the last")
		synctest.Test(t, func(t *testing.T) {
			q := &Quotas{tenants: map[string]*tenant{}, limits: file{Default: Limits{Events: float64(perSecond)}}}
			taken, began := 0, time.Now()
			for _, n := range steps {
				if q.Take("a", n, 0) == nil {
					taken += n
				}
				if at := float64(perSecond) * (burst + time.Since(began).Seconds()); float64(taken) > at+1 {
					t.Fatalf("%d taken, %.1f are allowed", taken, at)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	})
}

func TestRequestsHavePlacesThatAreGivenBack(t *testing.T) {
	t.Parallel()
	q := open(t, "default: {requests: 2}\ntenants:\n  many: {}\n")
	one, err := q.Enter("a", true)
	require.NoError(t, err)
	_, err = q.Enter("a", true)
	require.NoError(t, err)
	_, err = q.Enter("a", true)
	over(t, err)
	for range 10 {
		_, err = q.Enter("many", true) // listed, so it has none of the default's limits
		require.NoError(t, err)
	}
	one()
	_, err = q.Enter("a", true)
	require.NoError(t, err)
}

func TestReadsLeavePlacesForWrites(t *testing.T) {
	t.Parallel()
	q := open(t, "default: {requests: 3, reads: 2}")
	var leave []func()
	for range 2 {
		one, err := q.Enter("a", true)
		require.NoError(t, err)
		leave = append(leave, one)
	}
	_, err := q.Enter("a", true)
	over(t, err)
	require.EqualError(t, err, `the tenant "a" is over its quota of 2 reads at the same time: try again in 1s`)
	write, err := q.Enter("a", false)
	require.NoError(t, err)
	_, err = q.Enter("a", false)
	require.ErrorContains(t, err, "3 requests at the same time")
	leave[0]()
	write()
	_, err = q.Enter("a", true)
	require.NoError(t, err)
	_, err = q.Enter("a", true)
	over(t, err)

	writes := open(t, "default: {reads: 1}")
	for range 10 {
		_, err := writes.Enter("a", false)
		require.NoError(t, err, "writes alone are not bounded")
	}
	_, err = writes.Enter("a", true)
	require.NoError(t, err)
	_, err = writes.Enter("a", true)
	over(t, err)
}

func TestAChangedFileCountsOnAndAWrongOneChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, "default: {events_per_second: 1}")
		require.NoError(t, q.Take("a", 10, 0))
		over(t, q.Take("a", 1, 0))
		for text, want := range map[string]string{
			"default: {events_per_second: -1}": "events_per_second: -1 is not a limit", "defualt: {}": `the field "defualt" is unknown`,
			"default: {events_per_second: .inf}": "+Inf is not a limit", "tenants: {'': {}}": "1 to 128 bytes", "default: [": "did not find",
			strings.Repeat("#", maxFileBytes+1): "has more than",
		} {
			require.NoError(t, os.WriteFile(q.path, []byte(text), 0o600))
			require.ErrorContains(t, q.Load(), want)
			require.Contains(t, q.Report().Problem, want)
			over(t, q.Take("a", 1, 0))
		}
		require.NoError(t, os.WriteFile(q.path, []byte("default: {events_per_second: 100}"), 0o600))
		require.NoError(t, q.Load())
		require.Empty(t, q.Report().Problem)
		over(t, q.Take("a", 1, 0))
		time.Sleep(time.Second)
		require.NoError(t, q.Take("a", 100, 0))
		require.NoError(t, os.WriteFile(q.path, nil, 0o600))
		require.NoError(t, q.Load(), "an empty file limits nothing")
		require.NoError(t, q.Take("a", 1e9, 1e9))
	})
}

func TestAnUploadIsReadAtTheQuotasPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, "default: {events_per_second: 100}")
		began := time.Now()
		text := strings.Repeat("event\n", 3000)
		read, err := io.ReadAll(q.Reader(t.Context(), "a", strings.NewReader(text)))
		require.NoError(t, err)
		require.Equal(t, text, string(read))
		require.InDelta(t, 20, time.Since(began).Seconds(), 6, "3,000 events, of which ten seconds pass at once")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = io.ReadAll(q.Reader(ctx, "a", strings.NewReader(text)))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestTenantsThatTakeNothingAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, "default: {events_per_second: 1}")
		leave, err := q.Enter("stays", true)
		require.NoError(t, err)
		for i := range maxTenants - 1 {
			require.NoError(t, q.Take(strings.Repeat("x", i%100)+string(rune('a'+i/100)), 1, 1))
		}
		time.Sleep(time.Minute)
		require.NoError(t, q.Take("new", 1, 1))
		require.NoError(t, q.Take("newer", 1, 1))
		require.LessOrEqual(t, len(q.tenants), maxTenants)
		leave()
	})
}

func TestNoQuotasLimitNothing(t *testing.T) {
	t.Parallel()
	var q *Quotas
	leave, err := q.Enter("a", true)
	require.NoError(t, errors.Join(err, q.Take("a", 1e9, 1e9)))
	leave()
	require.Equal(t, io.Reader(strings.NewReader("x")), q.Reader(t.Context(), "a", strings.NewReader("x")))
}
