package sqlitestore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

// Terms without an ASCII character are one token each.
func TestNoCharacterBreaksASearch(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	var terms []string
	for r := range unicode.MaxRune {
		for _, term := range graph.QueryTerms(string(r)) {
			if strings.ContainsFunc(term, func(r rune) bool { return r < utf8.RuneSelf }) {
				terms = append(terms, term)
			}
		}
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	require.Contains(t, terms, "(1)")
	for part := range slices.Chunk(terms, graph.MaxQueryTerms) {
		_, err := s.graph.Candidates(t.Context(), "t", graph.CandidateQuery{Terms: part})
		require.NoError(t, err, "%q", part)
	}
}

func TestAnyTextIsFoundByItself(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	n := 0
	char := rapid.OneOf(rapid.SampledFrom([]rune("⑴⒇㈠㈩⒈🄁½ⅷ./\\-_,:;()\"'*^+ \n\x00")), rapid.RuneFrom([]rune("aZ1230")), rapid.Rune())
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom([]string{"⑴", "see ㈠.", "a/1,000", `"a" OR b*`}), rapid.StringOfN(char, 1, 40, -1)).Draw(rt, "text")
		n++
		said, titled := fmt.Sprint("said", n), fmt.Sprint("titled", n)
		s.add(said, &events.MessageCreated{MessageID: "m", Role: "user", Content: text})
		s.add(titled, &events.ConversationStarted{Title: text})
		s.apply(t)
		q := graph.CandidateQuery{Terms: graph.QueryTerms(text), Only: []string{said, titled}}
		found, err := s.graph.Candidates(t.Context(), s.history.Tenant, q)
		require.NoError(rt, err)
		if len(q.Terms) > 0 {
			require.Len(rt, found, 2)
		}
	})
}
