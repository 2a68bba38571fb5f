package queue_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/summarizer/queue"
)

func TestQueueHoldsEachConversationOnceOrderedByTime(t *testing.T) {
	t.Parallel()
	began := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		var q queue.Queue
		model := map[events.ConversationID]time.Time{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			id := events.ConversationID{Tenant: "t", ID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))}
			at := began.Add(time.Duration(rapid.IntRange(0, 1_000_000).Draw(t, "at")))
			switch rapid.IntRange(0, 2).Draw(t, "do") {
			case 0:
				q.Add(id, at)
				if _, ok := model[id]; !ok {
					model[id] = at
				}
			case 1:
				q.Put(id, at)
				model[id] = at
			default:
				got, ok := q.Take(at)
				if !ok {
					for _, other := range model {
						require.True(t, other.After(at))
					}
					continue
				}
				require.False(t, model[got].After(at))
				for _, other := range model {
					require.False(t, other.Before(model[got]))
				}
				delete(model, got)
			}
			first := time.Time{}
			if len(model) > 0 {
				var times []time.Time
				for _, at := range model {
					times = append(times, at)
				}
				first = slices.MinFunc(times, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
			}
			require.True(t, first.Equal(q.Next()))
			require.Equal(t, len(model), q.Due(began.Add(time.Hour)), "each conversation once")
			due := 0
			for _, one := range model {
				if !one.After(at) {
					due++
				}
			}
			require.Equal(t, due, q.Due(at))
		}
	})
}
