package view

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window"
)

// Limits of a search among the tool results of a project. The newest conversations are searched, at least one.
const (
	MaxToolConversations = 50     // with tool results
	maxToolResults       = 20_000 // of all of them together, each counted once
	maxToolsExamined     = 500    // conversations examined for that
)

// ToolsOf are the conversations of a project whose tool results a search looks at.
type ToolsOf struct {
	// Searched is how many conversations these are, and Left how many older entries of the project were not examined.
	Searched, Left int
	// Partial says that a search did not look at all results of these conversations.
	Partial bool

	views []*View // newest first
	bytes int     // of their indexes
}

// ToolsOf loads the indexes of the tool results of a project's newest conversations. Call it before [Views.Enter], as
// [View.LoadTools]. Conversations that are wholly outside the filter's since and until are passed over.
func (p *Pins) ToolsOf(ctx context.Context, of project.Project, keep window.Filter) (*ToolsOf, error) {
	r, _, err := p.Projects(ctx)
	if err != nil {
		return nil, err
	}
	entered, err := project.Entered(ctx, r, of)
	if err != nil {
		return nil, err
	}
	t, results, looked := &ToolsOf{}, 0, 0
	for chunk := range slices.Chunk(entered, MaxToolConversations) {
		if t.full(p, results) || looked >= maxToolsExamined {
			break
		}
		ids := make([]events.ConversationID, len(chunk))
		for i, id := range chunk {
			ids[i] = events.ConversationID{Tenant: of.Tenant, ID: id}
		}
		in, err := project.Among(ctx, r, of, ids)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			if t.full(p, results) {
				break
			}
			if looked++; !in[i] {
				continue
			}
			n, err := t.add(ctx, p, id, keep)
			if err != nil {
				return nil, err
			}
			results += n
		}
	}
	t.Left = len(entered) - looked
	return t, nil
}

// full reports whether the limits are reached. The indexes of one search take about the share of the cache that one
// conversation may have, so that they do not evict everybody else's. The rows that branches inherited count too.
func (t *ToolsOf) full(p *Pins, results int) bool {
	return t.Searched == MaxToolConversations || t.Searched > 0 && (results >= maxToolResults || t.bytes >= p.views.Cache.maxTools())
}

// add loads a conversation unless it has no results to find, and returns how many of its own it has.
func (t *ToolsOf) add(ctx context.Context, p *Pins, id events.ConversationID, keep window.Filter) (int, error) {
	v, err := p.OpenWithFiles(ctx, id, At{})
	if errors.Is(err, graph.ErrNotFound) {
		return 0, nil // deleted since
	}
	if err != nil {
		return 0, err
	}
	c := v.Lineage().Own()
	if c.ToolResultCount == 0 || !keep.Within(c.CreatedAt, c.UpdatedAt) {
		return 0, nil
	}
	t.Searched++
	t.views = append(t.views, v)
	if err := v.LoadTools(ctx); err != nil {
		return 0, err
	}
	t.bytes += v.recall(ctx).toolBytes()
	return c.ToolResultCount, nil
}

// inherited returns the sequence up to which a branch inherited its rows, 0 for none.
func inherited(v *View) uint64 {
	if from := v.Lineage().Inherited(); from != nil {
		return from.LastSeq
	}
	return 0
}

// ToolHit is a tool result that a search over several conversations found.
type ToolHit struct {
	Conversation graph.Conversation
	window.ToolHit
}

// Search finds the results of tools that have the words of a query, best first, or without words the newest ones. A word
// counts for more if it is rare in all of them. Results that a branch inherited are left out, and their words do not count,
// because its parent is searched too. Equal results of a conversation are shown once. The query's Conversation, From and
// Among are ignored.
func (t *ToolsOf) Search(ctx context.Context, q window.SearchQuery) (hits []ToolHit, err error) {
	type candidate struct {
		window.CalledHit
		of *View
	}
	q.Among = &recall.Statistics{}
	for _, v := range t.views {
		if err := v.recall(ctx).countTools(ctx, v.ID, recall.Query{Text: q.Text, Prefixes: q.Prefixes}, inherited(v), q.Among); err != nil {
			return nil, err
		}
	}
	var all []candidate
	for _, v := range t.views {
		q.Conversation = v.ID
		list, from, err := window.ToolCandidates(ctx, v.Source(ctx), q)
		if err != nil {
			return nil, err
		}
		t.Partial = t.Partial || from > inherited(v)+1
		for _, h := range list {
			if h.Score = h.BM25; h.Ref.Depth == 0 { // the score is relative to the best one of its conversation
				all = append(all, candidate{h, v})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Seq, a.Seq)) })
	var distinct window.Distinct
	for at := 0; at < len(all) && len(distinct.Hits) < q.Limit; {
		if at >= window.MaxExamined {
			t.Partial = true
			break
		}
		page := all[at:min(at+window.PageOf(q.Limit-len(distinct.Hits), at == 0), len(all), window.MaxExamined)]
		at += len(page)
		found := map[uint64]ToolHit{}
		for _, v := range t.views {
			var own []window.CalledHit
			for _, c := range page {
				if c.of == v {
					own = append(own, c.CalledHit)
				}
			}
			if len(own) == 0 {
				continue
			}
			q.Conversation = v.ID
			read, err := window.ReadTools(ctx, v.Source(ctx), q, own, all[0].Score)
			if err != nil {
				return nil, err
			}
			for _, h := range read {
				found[h.Result.Seq] = ToolHit{v.Lineage().Conversation(), h}
			}
		}
		for _, c := range page {
			if len(distinct.Hits) == q.Limit {
				break
			}
			if h, ok := found[c.Seq]; ok && distinct.Add(h.Conversation.ID, h.ToolHit) {
				hits = append(hits, h)
			}
		}
	}
	for i := range hits {
		hits[i].ToolHit = distinct.Hits[i]
	}
	return hits, nil
}
