package neo4jstore

import (
	"fmt"
	"slices"
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
	s, err := OpenInsight(t.Context(), testConfig(t), generation)
	require.NoError(t, err)
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
