package view_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall/static"
	"mneme.dev/mneme/pkg/window"
)

// conversations returns the ids that a search over all conversations finds, best first.
func conversations(t *testing.T, c *view.Cache, r graph.SearchReader, text string) (ids []string) {
	t.Helper()
	f, err := c.OfTenants(r).Conversations(t.Context(), "t", window.ConversationQuery{Text: text})
	require.NoError(t, err)
	for _, hit := range f.Hits {
		ids = append(ids, f.Among[hit.Conversation].ID.ID)
	}
	return ids
}

func TestConversationsAreRankedWithAndWithoutEmbeddings(t *testing.T) {
	s := newStore(t)
	s.say("c", "The parser fails on paths.", "Lunch at noon.")
	s.say("d", "Lunch at noon.", "And the parser?")
	for _, embedder := range []view.Embedder{nil, view.BuiltIn{}} {
		c := view.NewCache(1<<20, embedder)
		require.Equal(t, []string{"c", "d"}, conversations(t, c, s.model, "the parser fails"))
		require.Equal(t, []string{"d"}, conversations(t, c, s.model, "lunch and parser")[:1])
		require.Empty(t, conversations(t, c, s.model, "zebra"))
		require.Zero(t, c.Figures().Indexes, "nothing is cached")
	}
}

// earlier reads messages whose embeddings were made by another table.
type earlier struct{ graph.SearchReader }

func (e earlier) Candidates(ctx context.Context, tenant string, q graph.CandidateQuery) ([]graph.Candidate, error) {
	list, err := e.SearchReader.Candidates(ctx, tenant, q)
	for i := range list {
		for _, bag := range slices.Concat(list[i].Opening, list[i].Said) {
			bag.Vectors[len(bag.Vectors)-1] = static.Table - 1
		}
	}
	return list, err
}

func TestEmbeddingsOfAnotherTableAreNotComparedWithThoseOfTitles(t *testing.T) {
	s := newStore(t)
	s.say("c", "The parser fails on paths.")
	s.say("d", "Lunch at noon, said the parser.")
	s.add(t, "d", &events.ConversationUpdated{Title: new("Lunch")})
	search := func(c *view.Cache, r graph.SearchReader) window.FoundConversations {
		found, err := c.OfTenants(r).Conversations(t.Context(), "t", window.ConversationQuery{Text: "the parser fails"})
		require.NoError(t, err)
		return found
	}
	byWords := search(view.NewCache(1<<20, nil), s.model)
	c := view.NewCache(1<<20, view.BuiltIn{})
	other := search(c, earlier{s.model})
	require.Empty(t, other.Model)
	require.Equal(t, byWords.Hits, other.Hits)
	byMeaning := search(c, s.model)
	require.Equal(t, static.Model, byMeaning.Model)
	require.NotEqual(t, byWords.Hits, byMeaning.Hits)
}

// Titles that a coding agent gave to its sessions must find these sessions by their
// messages alone. One title more or less is 0.8 percent.
func TestTitlesFindTheirRecordedConversations(t *testing.T) {
	mnemetest.Long(t)
	s := newStore(t)
	var at string
	var texts []string
	for e := range testdata.Events(t, "claude_code") {
		if e.Kind != "message" || e.Role == "system" || e.Content == "" {
			continue
		}
		if e.ConversationID != at && len(texts) > 0 {
			s.say(at, texts...)
			texts = nil
		}
		at, texts = e.ConversationID, append(texts, e.Content)
	}
	s.say(at, texts...)
	for _, c := range []struct {
		embedder    view.Embedder
		first, five float64 // lower bounds in percent
	}{{nil, 86, 95}, {view.BuiltIn{}, 88, 95}} {
		cache, n, first, five := view.NewCache(1<<20, c.embedder), 0.0, 0.0, 0.0
		for q := range testdata.Lines[struct {
			Question      string   `json:"question"`
			Conversations []string `json:"evidence_conversations"`
		}](t, filepath.Join(testdata.Dir(t), "qa", "claude_titles.jsonl.gz")) {
			found := conversations(t, cache, s.model, q.Question)
			place := slices.IndexFunc(found, func(id string) bool { return slices.Contains(q.Conversations, id) })
			n++
			if place == 0 {
				first++
			}
			if place >= 0 && place < 5 {
				five++
			}
		}
		t.Logf("%.0f titles, embeddings %t: hit@1 %.1f %%, hit@5 %.1f %%", n, c.embedder != nil, 100*first/n, 100*five/n)
		require.GreaterOrEqual(t, 100*first/n, c.first)
		require.GreaterOrEqual(t, 100*five/n, c.five)
	}
}
