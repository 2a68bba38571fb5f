package graph

import (
	"context"

	"mneme.dev/mneme/events"
)

// Summaries implements Reader. A branch inherits the summaries that its ancestors had at
// the branching point. These cover the inherited part and its own summaries cover its own
// part, so the frontier of a lineage consists of the frontiers of its parts.
func (g *inheriting) Summaries(ctx context.Context, id events.ConversationID, q SummaryQuery) ([]Summary, error) {
	if !g.is(id) {
		return g.Reader.Summaries(ctx, id, q)
	}
	asOf, from, before := q.Bounds(Latest)
	return collect(g.lineage, from, before, q.Limit, q.OldestFirst, func(s *segment, from, before uint64, limit int) ([]Summary, error) {
		part := q
		part.AsOf, part.From, part.Before, part.Limit = min(asOf, s.upTo), from, before, limit
		return g.Reader.Summaries(ctx, s.id, part)
	}, (*Summary).shift)
}

// SummariesByID implements Reader. An id refers to the summary in the nearest
// conversation of the lineage that has one with this id.
func (g *inheriting) SummariesByID(ctx context.Context, id events.ConversationID, summaries []string, asOf uint64) (map[string]Summary, error) {
	if !g.is(id) {
		return g.Reader.SummariesByID(ctx, id, summaries, asOf)
	}
	refs := make([]Ref, len(summaries))
	for i, one := range summaries {
		refs[i] = Ref{ID: one}
	}
	rows, err := meant(ctx, g.lineage, refs, asOf, func(ctx context.Context, id events.ConversationID, refs []Ref, asOf uint64) (map[Ref]Summary, error) {
		ids := make([]string, len(refs))
		for i, ref := range refs {
			ids[i] = ref.ID
		}
		own, err := g.Reader.SummariesByID(ctx, id, ids, asOf)
		return keyed(own, func(s Summary) Ref { return Ref{ID: s.SummaryID} }), err
	}, (*Summary).shift)
	return keyed(rows, func(s Summary) string { return s.SummaryID }), err
}

// keyed replaces the keys of a map.
func keyed[K, L comparable, T any](rows map[K]T, key func(T) L) map[L]T {
	other := make(map[L]T, len(rows))
	for _, row := range rows {
		other[key(row)] = row
	}
	return other
}

// Condensations implements Reader. A condensation is in the conversation of its result,
// which may differ from that of the call (see Results).
func (g *inheriting) Condensations(ctx context.Context, id events.ConversationID, calls []Ref, asOf uint64) (map[Ref]Condensed, error) {
	if !g.is(id) {
		return g.Reader.Condensations(ctx, id, calls, asOf)
	}
	results, err := g.Results(ctx, id, calls, asOf)
	if err != nil {
		return nil, err
	}
	var own []Ref
	for _, r := range results {
		own = append(own, r.Ref())
	}
	rows := map[Ref]Condensed{}
	if err := ofOwnDepth(ctx, g.lineage, own, asOf, g.Reader.Condensations, (*Condensed).shift, rows); err != nil {
		return nil, err
	}
	found := map[Ref]Condensed{}
	for ref, r := range results {
		if row, ok := rows[r.Ref()]; ok {
			found[ref] = row
		}
	}
	return found, nil
}

func (s *Summary) shift(of *segment, depth int) {
	of.shift(&s.Position, &s.Origin, depth, of.before.SummaryCount)
	s.FirstTurn += of.before.TurnCount
	s.LastTurn += of.before.TurnCount
}

func (c *Condensed) shift(of *segment, depth int) {
	of.shift(&c.Position, &c.Origin, depth, of.before.CondensedCount)
}
