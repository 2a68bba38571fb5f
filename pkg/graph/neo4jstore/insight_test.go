package neo4jstore

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/insight"
)

// tellInsight builds the read model "insight" of a small history, whose properties the documentation lists.
func tellInsight(t *testing.T, generation int) *Insight {
	t.Helper()
	opened, err := Open(t.Context(), testConfig(t), generation, InsightCodec)
	require.NoError(t, err)
	s := &Insight{opened}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	h := storetest.NewHistory()
	h.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h.Add("one", &events.ConversationStarted{Agent: "claude-code", Cwd: "/w/r"})
	for n := range 20 {
		h.Add("one", &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: "user", Content: "change it"})
	}
	h.Add("gone", &events.MessageCreated{MessageID: "m", Role: "user", Content: "change it"})
	h.Add("gone", &events.ConversationDeleted{})
	declared := insight.Projection(files.DefaultTable())
	cp, err := s.Acquire(t.Context(), 0, declared.Fingerprint())
	require.NoError(t, err)
	_, err = declared.Apply(t.Context(), s, cp, h.Messages)
	require.NoError(t, err)
	return s
}

func TestQueriesOfInsightsSeekTheirRows(t *testing.T) {
	t.Parallel()
	s := tellInsight(t, generationOf(t.Name()))
	spy := watch(&s.store)
	spy.prefix = "PROFILE "
	n := 0
	count := func(*insight.Row) error { n++; return nil }
	require.NoError(t, s.Rows(t.Context(), "t", insight.RowQuery{}, count))
	require.NoError(t, s.Rows(t.Context(), "t", insight.RowQuery{Since: "2026-03-01", Until: "2026-03-01", Projects: []string{"/w/r"}, Detail: true}, count))
	require.Equal(t, 2, n)
	_, err := s.Hash(t.Context(), events.ConversationID{Tenant: "t", ID: "one"})
	require.NoError(t, err)
	statements := spy.since()
	require.NotEmpty(t, statements)
	for _, one := range statements {
		plan, _ := one.summary.Profile().Arguments()["string-representation"].(string)
		for _, operator := range slices.Compact(slices.Sorted(slices.Values(operators(plan)))) {
			if slices.Contains(forbidden, operator) && !excused(operator, one.statement) {
				t.Errorf("%s in\n%s\n%s", operator, one.statement, plan)
			}
		}
	}
}

// It is not parallel, because it measures the heap.
func TestRowsOfInsightsAreNotAllInMemory(t *testing.T) {
	opened, err := Open(t.Context(), testConfig(t), generationOf(t.Name()), InsightCodec)
	require.NoError(t, err)
	s := &Insight{opened}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	const days, each, size = 30, 20, 16 << 10
	for day := range days {
		params := In("rows", slices.Repeat([]string{strings.Repeat("x", size)}, each))
		params["key"], params["listed"], params["day"] = s.prefix()+"t/many", s.tenantKey("t"), fmt.Sprintf("2026-03-%02d", day+1)
		_, err := s.write(t.Context(), "UNWIND range(0, size($in.rows) - 1) AS i CREATE (:InsightDay {key: $key + '/' + $day + i, conversation: $key, id: 'many', day: $day, listed: $listed, project: '', agent: '', counts: '', detail: $in.rows[i]})", params)
		require.NoError(t, err)
	}
	live := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before, most, rows := live(), 0, 0
	require.NoError(t, s.Rows(t.Context(), "t", insight.RowQuery{Detail: true}, func(r *insight.Row) error {
		if rows++; rows == 1 {
			most = live()
		}
		require.Len(t, r.Detail, size)
		return nil
	}))
	require.Equal(t, days*each, rows)
	require.Less(t, most-before, days*each*size/2)

	enough := errors.New("enough")
	require.ErrorIs(t, s.Rows(t.Context(), "t", insight.RowQuery{}, func(*insight.Row) error { return enough }), enough)
}
