package events_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestReadersOfASharedEventFindOutOnce(t *testing.T) {
	t.Parallel()
	var e events.Recorded
	var runs atomic.Int64
	find := func(key string) string {
		return events.Memo(&e, key, func() string { runs.Add(1); return "of " + key })
	}
	require.Equal(t, "of a", find("a"))
	require.Equal(t, "of a", find("a"))
	require.EqualValues(t, 2, runs.Load(), "nobody shares the event")

	e.Share()
	runs.Store(0)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 100 {
				if find("a") != "of a" || find("b") != "of b" {
					panic("another value")
				}
			}
		})
	}
	readers.Wait()
	require.EqualValues(t, 2, runs.Load())
}

func TestAPanicOfOneReaderLeavesASharedEventUsable(t *testing.T) {
	t.Parallel()
	var e events.Recorded
	e.Share()
	require.Panics(t, func() { events.Memo(&e, "a", func() int { panic("broken") }) })
	require.Equal(t, 3, events.Memo(&e, "a", func() int { return 3 }))
}
