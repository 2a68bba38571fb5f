package view

import (
	"context"
	"fmt"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
	"mneme.dev/mneme/pkg/window"
)

// OfTenants returns the search over all conversations of a tenant. It ranks by words and by
// built-in embeddings, which are stored with the messages. Nothing is cached: most of the
// conversations found contribute only a few messages.
func (c *Cache) OfTenants(r graph.SearchReader) window.TenantRecall {
	return &tenants{c, r}
}

type tenants struct {
	cache  *Cache
	reader graph.SearchReader
}

// Conversations implements window.TenantRecall.
func (t *tenants) Conversations(ctx context.Context, tenant string, q window.ConversationQuery) (window.FoundConversations, error) {
	var found window.FoundConversations
	if t.cache.embedder != nil {
		found.Model = static.Model
	}
	terms := graph.QueryTerms(q.Text)
	if len(terms) == 0 {
		return found, nil
	}
	among, err := t.reader.Candidates(ctx, tenant, graph.CandidateQuery{Terms: terms, Except: q.Except, Only: q.Only, Fresh: q.Fresh})
	if err != nil {
		return found, err
	}
	var ranked recall.Conversations
	for i := range among {
		opening, others, err := t.said(&among[i])
		if err == nil {
			err = ranked.Add(opening, others)
		}
		if err != nil {
			return found, fmt.Errorf("rank conversation %q: %w", among[i].ID.ID, err)
		}
	}
	query := recall.Query{Text: q.Text, Limit: q.Limit}
	if t.cache.embedder != nil {
		query.Vector = embed(ranked.Unnamed(q.Text))
	}
	found.Among, found.Hits = among, ranked.Search(query)
	return found, nil
}

// said returns what a conversation is ranked by: the title first, then opening and other
// messages.
func (t *tenants) said(c *graph.Candidate) (opening, others []recall.Said, err error) {
	if c.Title != "" {
		title := recall.Said{Bag: recall.NewBag(recall.Message{Content: c.Title})}
		if t.cache.embedder != nil {
			for _, p := range title.Bag.Passages {
				title.Vectors = append(title.Vectors, embed(c.Title[p.Start:p.End]))
			}
		}
		opening = append(opening, title)
	}
	for _, list := range []struct {
		from []graph.Bag
		to   *[]recall.Said
	}{{c.Opening, &opening}, {c.Said, &others}} {
		for i := range list.from {
			s := recall.Said{Seq: list.from[i].Seq}
			if s.Bag, s.Vectors, _, err = list.from[i].Decode(); err != nil {
				return nil, nil, err
			}
			*list.to = append(*list.to, s)
		}
	}
	return opening, others, nil
}
