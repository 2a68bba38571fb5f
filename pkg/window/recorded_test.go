package window_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/window"
)

// recordings reads every conversation of the recorded data in the neutral form.
func recordings(t testing.TB) map[string][]events.Event {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata.Dir(t), "events", "*.jsonl.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string][]events.Event{}
	for _, path := range paths {
		f, err := os.Open(path)
		require.NoError(t, err)
		require.NoError(t, transcript.Read(context.Background(), f, path, "neutral", func(i transcript.Item) error {
			if i.Err == nil {
				all[i.Event.Subject] = append(all[i.Event.Subject], i.Event)
			}
			return nil
		}))
		require.NoError(t, f.Close())
	}
	return all
}

func TestRulesHoldForRecordedConversations(t *testing.T) {
	mnemetest.Long(t)
	all := recordings(t)
	s := newStore(t)
	first := map[string]uint64{}
	for i, id := range sorted(all) {
		if i%6 != 0 && !mnemetest.All {
			delete(all, id)
			continue
		}
		first[id] = s.apply(all[id])
	}
	type figures struct {
		built int
		full  int // contexts that use 90 % of the budget
		least int // percent of the budget used by a context that leaves out turns or steps
		took  []time.Duration
	}
	for _, strategy := range window.Strategies() {
		for _, budget := range []int{500, 2_000, 10_000, 100_000} {
			t.Run(fmt.Sprint(strategy, " ", budget), func(t *testing.T) {
				f := figures{least: 100}
				for _, id := range sorted(all) {
					req := window.Request{Conversation: idOf(id), MaxChars: budget, Strategy: strategy}
					start := time.Now()
					c, err := window.Build(t.Context(), s.source(), req)
					f.took = append(f.took, time.Since(start))
					require.NoError(t, err, id)
					assert.NoError(t, checkRules(c, truthOf(all[id], first[id], 0)), id)
					assert.NoError(t, checkSame(t, s.source(), req, c), id)
					if leavesOut(c) && c.Chars*100/budget < f.least {
						f.least = c.Chars * 100 / budget
					}
					if f.built++; c.Chars >= budget*9/10 {
						f.full++
					}
				}
				slices.Sort(f.took)
				if strategy != window.StrategyPruned && budget >= 10_000 {
					assert.GreaterOrEqual(t, f.least, 70, "percent of the budget used where something was left out")
				}
				t.Logf("%d contexts, %d use 90 %% of the budget, one that leaves something out %d %%, p50 %v, p99 %v", f.built, f.full, f.least, f.took[len(f.took)/2], f.took[len(f.took)*99/100])
			})
		}
	}
}

func sorted(all map[string][]events.Event) (ids []string) {
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// leavesOut reports whether recent turns or steps were left out.
func leavesOut(c *window.Context) bool {
	for _, s := range c.Manifest.Sections {
		if s.Name == window.SectionTurns && len(s.Dropped) > 0 {
			return true
		}
	}
	return false
}
