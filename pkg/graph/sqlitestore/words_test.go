package sqlitestore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// found returns the ids of a tenant's conversations that match a text.
func (s *stores) found(t *testing.T, tenant, text string) (ids []string) {
	t.Helper()
	list, err := s.graph.Candidates(t.Context(), tenant, graph.CandidateQuery{Terms: graph.QueryTerms(text)})
	require.NoError(t, err)
	for _, c := range list {
		require.Equal(t, tenant, c.ID.Tenant)
		ids = append(ids, c.ID.ID)
	}
	return ids
}

func TestTenantsThatShareATagFindOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	byTag := map[string]string{}
	one, other := "", ""
	for i := 0; one == ""; i++ {
		name := fmt.Sprint("tenant", i)
		if before, taken := byTag[tag(name)]; taken {
			one, other = before, name
		}
		byTag[tag(name)] = name
	}
	for _, tenant := range []string{one, other} {
		s.history.Tenant = tenant
		for i := range 3 {
			s.add(fmt.Sprint(tenant, i), &events.ConversationStarted{Title: "Zebras"})
			s.add(fmt.Sprint(tenant, i), &events.MessageCreated{MessageID: "m", Role: "user", Content: "giraffes"})
		}
	}
	s.apply(t)
	for _, tenant := range []string{one, other} {
		for _, text := range []string{"zebra", "giraffe"} {
			require.ElementsMatch(t, []string{tenant + "0", tenant + "1", tenant + "2"}, s.found(t, tenant, text))
		}
	}
}

func TestSearchCostDoesNotGrowWithTheData(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	for tenant, messages := range map[string]int{"little": mostPostings + 500, "much": 5 * mostPostings, "warm": 200} {
		s.history.Tenant = tenant
		for i := range messages {
			s.add(fmt.Sprint("c", i%60), &events.MessageCreated{MessageID: fmt.Sprint(i), Role: "user", Content: "a zebra, in other words an animal"})
			if len(s.history.Messages) == 1000 {
				s.apply(t)
			}
		}
		s.apply(t)
	}
	cost := func(tenant string) int {
		before := s.pages(t)
		require.Len(t, s.found(t, tenant, "zebra animals"), graph.MaxCandidates)
		return s.pages(t) - before
	}
	cost("warm") // prepares the statements
	little, much := cost("little"), cost("much")
	t.Logf("%d pages over little, %d over much", little, much)
	require.Positive(t, little)
	require.LessOrEqual(t, float64(much), 1.3*float64(little))
}

func TestDeletedTermsAreGoneAfterAMerge(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	s.add("c", &events.ConversationStarted{Title: "Zebras"})
	s.add("c", &events.MessageCreated{MessageID: "m", Role: "user", Content: "giraffes"})
	s.add("d", &events.MessageCreated{MessageID: "m", Role: "user", Content: "lions"})
	s.apply(t)
	s.add("c", &events.ConversationDeleted{})
	s.apply(t)
	terms := func(table string) (list []string) {
		ctx, c := t.Context(), s.graph.writer
		_, err := c.ExecContext(ctx, "CREATE VIRTUAL TABLE temp."+table+"_terms USING fts5vocab('main', '"+table+"', 'row')")
		require.NoError(t, err)
		rows, err := c.QueryContext(ctx, "SELECT substr(term, 8) FROM temp."+table+"_terms")
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var term string
			require.NoError(t, rows.Scan(&term))
			list = append(list, term)
		}
		return list
	}
	for _, table := range []string{"words", "title_words"} {
		_, err := s.graph.writer.ExecContext(t.Context(), "INSERT INTO "+table+" ("+table+") VALUES ('optimize')")
		require.NoError(t, err)
	}
	require.Equal(t, []string{"lion"}, terms("words"))
	require.Empty(t, terms("title_words"))
}
