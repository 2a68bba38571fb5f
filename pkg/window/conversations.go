package window

import (
	"context"
	"errors"
	"iter"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/recall"
)

// TenantRecall ranks the conversations of a tenant by how well they match a query.
type TenantRecall interface {
	// Conversations ranks the conversations that the read model found for the terms of a text.
	Conversations(ctx context.Context, tenant string, q ConversationQuery) (FoundConversations, error)
}

// ConversationQuery asks for conversations of a tenant.
type ConversationQuery struct {
	Text   string
	Except string   // id of a conversation to leave out
	Only   []string // ids of the conversations to search; nil means all
	Keep   Filter   // which messages are found; its turns are ignored, because each conversation numbers its own
	Fresh  bool     // see [graph.CandidateQuery]
	Limit  int      // number of conversations; 0 means all that were ranked
}

// FoundConversations is the result of a search over all conversations.
type FoundConversations struct {
	Hits  []recall.ConversationHit // best first
	Among []graph.Candidate        // Hits count from 0 in it
	Model string                   // name of the embeddings used, "" for none
}

// TenantSource is what a search over all conversations reads.
type TenantSource struct {
	Graph  Graph
	Recall TenantRecall
}

// TenantQuery searches a tenant's conversations and their best messages.
type TenantQuery struct {
	Tenant string
	ConversationQuery
	Prefixes []string // beginnings of words to show, see recall.Query; none is searched for
	Messages int      // for each conversation, or fewer
	MaxChars int      // of the text of each message

	// Of, if not nil, says which of the conversations that were ranked may be found.
	Of func(ctx context.Context, ranked []events.ConversationID) ([]bool, error)
}

// ConversationFound is a conversation that was found.
type ConversationFound struct {
	graph.Conversation
	Match    ConversationMatch
	Messages []Hit // best first
}

// ConversationMatch says how well a conversation matches the query.
type ConversationMatch struct {
	Relevance float64                  `json:"relevance"` // the score relative to the best one's, 0 to 1
	Score     float64                  `json:"score"`     // the sum of Parts
	Parts     recall.ConversationParts `json:"parts"`
}

// SearchAll finds the conversations of a tenant that match a text, best first, each with its best
// messages. model names the embeddings used, "" for none.
func SearchAll(ctx context.Context, src TenantSource, q TenantQuery) (list []ConversationFound, model string, err error) {
	q.Text = plain.Prefix(q.Text, maxQueryChars)
	ranked := q.ConversationQuery
	if q.Of != nil {
		ranked.Limit = 0
	}
	found, err := src.Recall.Conversations(ctx, q.Tenant, ranked)
	if err != nil || len(found.Hits) == 0 {
		return nil, found.Model, err
	}
	focus := func(text string) []recall.Span { return recall.Highlights(text, q.Text, q.Prefixes) }
	best := 0.0 // of all messages
	for _, h := range found.Hits {
		for _, m := range h.Messages {
			best = max(best, m.Score)
		}
	}
	shown, err := q.of(ctx, found)
	if err != nil {
		return nil, found.Model, err
	}
	for _, h := range shown {
		c := found.Among[h.Conversation].Conversation
		hits := h.Messages[:min(len(h.Messages), q.Messages)]
		read, err := readHits(ctx, src.Graph, c.ID, hits, q.MaxChars, focus)
		if err != nil {
			return nil, found.Model, err
		}
		one := ConversationFound{Conversation: c, Match: ConversationMatch{Relevance: relevance(h.Score, found.Hits[0].Score), Score: h.Score, Parts: h.Parts}}
		for _, m := range read {
			one.Messages = append(one.Messages, Hit{Message: *m.message, Text: m.text, Match: *match(m.hit, best)})
		}
		list = append(list, one)
	}
	return list, found.Model, nil
}

// of returns the ranked conversations that the query finds.
func (q *TenantQuery) of(ctx context.Context, ranked FoundConversations) ([]recall.ConversationHit, error) {
	if q.Of == nil {
		return ranked.Hits, nil
	}
	ids := make([]events.ConversationID, len(ranked.Hits))
	for i, h := range ranked.Hits {
		ids[i] = ranked.Among[h.Conversation].ID
	}
	may, err := q.Of(ctx, ids)
	if err != nil {
		return nil, err
	}
	var hits []recall.ConversationHit
	for i, h := range ranked.Hits {
		if may[i] && (q.Limit == 0 || len(hits) < q.Limit) {
			hits = append(hits, h)
		}
	}
	return hits, nil
}

// maxListed is how many messages a list over conversations examines.
const maxListed = 10_000

// ListAll returns the conversations with messages that the query's filter keeps, in their order, each with the newest of
// these messages, for a search without words. partial reports that it left out conversations, or messages of some, because
// it examines a bounded number of messages.
func ListAll(ctx context.Context, g Graph, conversations iter.Seq2[graph.Conversation, error], q TenantQuery) (found []ConversationFound, partial bool, err error) {
	examined := 0
	for c, err := range conversations {
		switch {
		case err != nil:
			return nil, false, err
		case q.Limit > 0 && len(found) == q.Limit:
			return found, partial, nil
		case examined >= maxListed:
			return found, true, nil
		}
		hits, next, n, err := list(ctx, g, SearchQuery{Conversation: c.ID, Limit: max(q.Messages, 1), MaxChars: q.MaxChars, Keep: q.Keep}, 0, maxListed-examined)
		if errors.Is(err, graph.ErrNotFound) {
			continue // deleted since
		}
		if err != nil {
			return nil, false, err
		}
		if examined += n; len(hits) > 0 {
			found = append(found, ConversationFound{Conversation: c, Messages: hits[:min(len(hits), q.Messages)]})
		}
		partial = partial || next != 0 && len(hits) < max(q.Messages, 1)
	}
	return found, partial, nil
}

// How many characters of a conversation make up the query for similar ones: its title, the user's
// first message, and its newest state.
const (
	similarTitle = 200
	similarFirst = 600
	similarNow   = 600 // of each of two messages, or of both for a summary
)

// AboutConversation returns the query that finds conversations like this one: its title, the first
// user message, and the newest summary, or else the last two user messages. It returns
// graph.ErrNotFound as Build does.
func AboutConversation(ctx context.Context, g Graph, id events.ConversationID) (string, error) {
	c, err := g.Conversation(ctx, id, graph.Latest)
	if err != nil {
		return "", err
	}
	parts := []string{plain.Prefix(c.Title, similarTitle)}
	first, err := g.Messages(ctx, id, graph.MessageQuery{Role: "user", Limit: 1, OldestFirst: true})
	if err != nil {
		return "", err
	}
	for _, m := range first {
		parts = append(parts, plain.Prefix(m.Content.Text, similarFirst))
	}
	summaries, err := g.Summaries(ctx, id, graph.SummaryQuery{Limit: 1})
	if err != nil {
		return "", err
	}
	for _, s := range summaries {
		parts = append(parts, plain.Prefix(s.Conversation, 2*similarNow))
	}
	if len(summaries) == 0 {
		last, err := g.Messages(ctx, id, graph.MessageQuery{Role: "user", Limit: 2})
		if err != nil {
			return "", err
		}
		for _, m := range last {
			if len(first) == 0 || m.Seq != first[0].Seq {
				parts = append(parts, plain.Prefix(m.Content.Text, similarNow))
			}
		}
	}
	return strings.TrimSpace(strings.Join(parts, "\n")), nil
}
