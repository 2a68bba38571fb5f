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
// built-in embeddings, which are stored with the messages. If some are of an earlier version, it
// ranks by words alone. Nothing is cached: most of the conversations found contribute only a few
// messages.
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
	terms := graph.QueryTerms(q.Text)
	byMeaning := t.cache.embedder != nil
	var ranked recall.Conversations
	if len(terms) > 0 {
		var err error
		found.Among, err = t.reader.Candidates(ctx, tenant, graph.CandidateQuery{
			Terms: terms, Except: q.Except, Only: q.Only, Fresh: q.Fresh, Keep: q.Keep.OfMessages(), FromSeq: q.Keep.FromSeq, ToSeq: q.Keep.ToSeq,
		})
		if err != nil {
			return found, err
		}
	}
	for i := range found.Among {
		c := &found.Among[i]
		opening, others, current, err := said(c)
		if err == nil {
			err = ranked.Add(opening, others)
		}
		if err != nil {
			return found, fmt.Errorf("rank conversation %q: %w", c.ID.ID, err)
		}
		byMeaning = byMeaning && current
	}
	query := recall.Query{Text: q.Text, Limit: q.Limit}
	if byMeaning {
		found.Model = static.Model
		query.Vector = embed(ranked.Unnamed(q.Text))
	}
	found.Hits = ranked.Search(query)
	return found, nil
}

// said returns what a conversation is ranked by: the title first, then opening and other
// messages. current reports whether all vectors are of the table static.Table.
func said(c *graph.Candidate) (opening, others []recall.Said, current bool, err error) {
	if c.Title != "" {
		title := recall.Said{Bag: recall.NewBag(recall.Message{Content: c.Title})}
		for _, p := range title.Bag.Passages {
			title.Vectors = append(title.Vectors, embed(c.Title[p.Start:p.End]))
		}
		opening = append(opening, title)
	}
	first, current, err := decodeBags(c.Opening)
	if err != nil {
		return nil, nil, false, err
	}
	others, too, err := decodeBags(c.Said)
	return append(opening, first...), others, current && too, err
}

// decodeBags decodes bags. current reports whether all vectors are of the table static.Table.
func decodeBags(bags []graph.Bag) (said []recall.Said, current bool, err error) {
	said, current = make([]recall.Said, len(bags)), true
	for i := range bags {
		var table byte
		said[i].Seq = bags[i].Seq
		if said[i].Bag, said[i].Vectors, table, err = bags[i].Decode(); err != nil {
			return nil, false, err
		}
		current = current && table == static.Table
	}
	return said, current, nil
}
