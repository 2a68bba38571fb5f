package view

import (
	"context"
	"iter"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

// Limits of a walk through conversations, see [Pins.Newest].
const (
	newestAtOnce  = 50
	newestLookups = 500 // conversations examined
)

// Newest walks through the conversations of a tenant in which a filter may keep messages, the one with the newest event
// first. With a project, it leaves out those that do not belong to it. It looks at no more than the newest 500.
func (p *Pins) Newest(ctx context.Context, tenant string, of *project.Project, keep window.Filter) iter.Seq2[graph.Conversation, error] {
	return func(yield func(graph.Conversation, error) bool) {
		fail := func(err error) { yield(graph.Conversation{}, err) }
		g, _, err := p.Graph(ctx)
		if err != nil {
			fail(err)
			return
		}
		q := graph.ConversationQuery{Limit: newestAtOnce, UpdatedAt: graph.TimeRange{After: keep.Since}}
		for looked := 0; looked < newestLookups; looked += newestAtOnce {
			page, err := g.Conversations(ctx, tenant, q)
			if err != nil {
				fail(err)
				return
			}
			in, err := p.among(ctx, of, page.Rows)
			if err != nil {
				fail(err)
				return
			}
			for i, c := range page.Rows {
				if in(i) && keep.Within(c.CreatedAt, c.UpdatedAt) && c.LastSeq >= keep.FromSeq && !yield(c, nil) {
					return
				}
			}
			if q.Before = page.Next; page.Next == 0 {
				return
			}
		}
	}
}

// among returns which of some conversations belong to a project; without one, all do.
func (p *Pins) among(ctx context.Context, of *project.Project, list []graph.Conversation) (in func(i int) bool, err error) {
	if of == nil {
		return func(int) bool { return true }, nil
	}
	r, _, err := p.Projects(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]events.ConversationID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	belongs, err := project.Among(ctx, r, *of, ids)
	return func(i int) bool { return belongs[i] }, err
}
