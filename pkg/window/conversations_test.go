package window_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// found returns the conversations of a store that a search finds, best first.
func (s *store) found(q window.TenantQuery) []window.ConversationFound {
	s.t.Helper()
	q.Tenant = tenant
	if q.MaxChars == 0 {
		q.MaxChars = 200
	}
	list, model, err := window.SearchAll(s.t.Context(), window.TenantSource{Graph: s.graph, Recall: s.indexes.OfTenants(s.graph)}, q)
	require.NoError(s.t, err)
	require.NotEmpty(s.t, model)
	return list
}

func about(text string) window.TenantQuery {
	return window.TenantQuery{ConversationQuery: window.ConversationQuery{Text: text}, Messages: 2}
}

func TestAllConversationsAreSearched(t *testing.T) {
	s := newStore(t)
	filler := strings.Repeat("Nothing of interest happens in this sentence at all. ", 20)
	s.apply(newTalk(t, "rome").user("Where is the hotel in Rome?").assistant(filler + "The hotel is near the Tiber. " + filler).user("And the hotel's garden?").events)
	s.apply(newTalk(t, "garden").user("Plan the garden.").assistant("Gladly. There is a hotel for insects.").events)
	s.apply(newTalk(t, "parser").user("Fix the parser.").assistant("Done.").events)

	list := s.found(about("hotel in Rome"))
	require.Len(t, list, 2)
	require.Equal(t, idOf("rome"), list[0].ID)
	assert.Equal(t, 3, list[0].MessageCount)
	assert.Equal(t, 1.0, list[0].Match.Relevance)
	assert.InDelta(t, list[0].Match.Score, list[0].Match.Parts.Sum(), 1e-9)
	assert.Greater(t, list[0].Match.Score, list[1].Match.Score)
	require.Len(t, list[0].Messages, 2)
	assert.Equal(t, "Where is the hotel in Rome?", list[0].Messages[0].Text)
	assert.Equal(t, 1.0, list[0].Messages[0].Match.Relevance, "of all messages that are shown it is the best")
	assert.Less(t, list[1].Messages[0].Match.Relevance, 1.0)

	long := about("near the Tiber")
	long.MaxChars = 900
	text := s.found(long)[0].Messages[0].Text
	assert.Contains(t, text, "The hotel is near the Tiber.")
	assert.Contains(t, text, "[…]")
	assert.LessOrEqual(t, utf8.RuneCountInString(text), 900)

	one := about("hotel in Rome")
	one.Limit, one.Except, one.Messages = 1, "rome", 0
	list = s.found(one)
	require.Len(t, list, 1)
	assert.Equal(t, idOf("garden"), list[0].ID)
	assert.Empty(t, list[0].Messages)
	for _, nothing := range []string{"", "🎉", "the of and", strings.Repeat("zzyzx ", 20_000)} {
		assert.Empty(t, s.found(about(nothing)))
	}
}

func TestATitleIsFoundToo(t *testing.T) {
	s := newStore(t)
	s.apply(newTalk(t, "c").add(&events.ConversationStarted{Title: "Journey to Rome"}).user("Where do we go?").events)
	s.apply(newTalk(t, "d").user("Rome, and then?").events)
	list := s.found(about("journey to Rome"))
	require.Len(t, list, 2)
	assert.Equal(t, idOf("c"), list[0].ID)
	assert.Equal(t, "Journey to Rome", list[0].Title)
}

func TestSimilarConversationsAreSoughtByTitleBeginningAndEnd(t *testing.T) {
	s := newStore(t)
	c := newTalk(t, "c").add(&events.ConversationStarted{Title: "A journey"}).user("Where do we go? " + strings.Repeat("Far away. ", 200)).assistant("To Rome.")
	c.user("By train?").assistant("Yes.").user("And when?")
	s.apply(c.events)
	text := func() string {
		text, err := window.AboutConversation(t.Context(), s.graph, idOf("c"))
		require.NoError(t, err)
		return text
	}
	parts := strings.Split(text(), "\n")
	require.Len(t, parts, 4)
	assert.Equal(t, "A journey", parts[0])
	assert.True(t, strings.HasPrefix(parts[1], "Where do we go?"))
	assert.Len(t, parts[1], 600)
	assert.Equal(t, []string{"And when?", "By train?"}, parts[2:])

	more := newTalk(t, "c")
	more.n = c.n
	s.apply(more.add(&events.SummaryWritten{SummaryID: "s", Level: 1, FirstSeq: 1, LastSeq: 4, Conversation: "Rome by train was agreed.", Method: "extractive"}).events)
	parts = strings.Split(text(), "\n")
	assert.Equal(t, "Rome by train was agreed.", parts[2])
	assert.Len(t, parts, 3)

	s.apply(newTalk(t, "one").user("Only this.").events)
	only, err := window.AboutConversation(t.Context(), s.graph, idOf("one"))
	require.NoError(t, err)
	assert.Equal(t, "Only this.", only)
	_, err = window.AboutConversation(t.Context(), s.graph, idOf("nobody"))
	require.ErrorIs(t, err, graph.ErrNotFound)
}

func TestAListOverConversationsSaysThatItLookedAtTheNewestMessagesOnly(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.apply(newTalk(t, "old").user("A zebra.").events)
	long := newTalk(t, "long").user("A zebra long ago.")
	for range 10_100 {
		long.user("A lion.")
	}
	s.apply(long.events)
	s.apply(newTalk(t, "new").user("Another zebra.").assistant("And a lion.").events)
	var all []graph.Conversation
	for _, name := range []string{"new", "long", "old"} {
		c, err := s.graph.Conversation(t.Context(), idOf(name), graph.Latest)
		require.NoError(t, err)
		all = append(all, c)
	}
	listed := func(q window.TenantQuery, list ...graph.Conversation) (texts []string, partial bool) {
		q.MaxChars = 100
		found, partial, err := window.ListAll(t.Context(), s.graph, func(yield func(graph.Conversation, error) bool) {
			for _, c := range list {
				if !yield(c, nil) {
					return
				}
			}
		}, q)
		require.NoError(t, err)
		for _, c := range found {
			for _, m := range c.Messages {
				texts = append(texts, m.Text)
			}
		}
		return texts, partial
	}
	zebras := window.TenantQuery{ConversationQuery: window.ConversationQuery{Limit: 10, Keep: window.Filter{Contains: []string{"zebra"}}}, Messages: 3}
	texts, partial := listed(zebras, all...)
	require.Equal(t, []string{"Another zebra."}, texts)
	require.True(t, partial)
	texts, partial = listed(zebras, all[0], all[2])
	require.Equal(t, []string{"Another zebra.", "A zebra."}, texts)
	require.False(t, partial)
	zebras.Limit = 0
	texts, _ = listed(zebras, all[0], all[2])
	require.Equal(t, []string{"Another zebra.", "A zebra."}, texts, "without a limit all are found")
	ofUser := window.TenantQuery{ConversationQuery: window.ConversationQuery{Limit: 2, Keep: window.Filter{Role: "user"}}, Messages: 2}
	texts, partial = listed(ofUser, all...)
	require.Equal(t, []string{"Another zebra.", "A lion.", "A lion."}, texts)
	require.False(t, partial, "what was asked for was found")
}
