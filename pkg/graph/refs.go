package graph

import (
	"context"

	"mneme.dev/mneme/events"
)

// Ref is the id of a message or a tool call, and the depth of the row that uses it.
// Ids are unique within the conversation that a row comes from. An id refers to the row
// of the same depth; if there is none, to the row of the nearest ancestor that has one,
// else of the nearest branch.
type Ref struct {
	Depth int
	ID    string
}

// Ref returns the call's own id.
func (c *ToolCall) Ref() Ref { return Ref{c.Depth, c.ToolCallID} }

// Ref returns the id of the call that the result belongs to.
func (r *ToolResult) Ref() Ref { return Ref{r.Depth, r.ToolCallID} }

// Find returns the row that a ref refers to, among rows of a lineage keyed by their own
// refs; the zero value if there is none.
func Find[T any](rows map[Ref]T, ref Ref) (none T) {
	for depth := ref.Depth; depth <= MaxAncestors; depth++ {
		if row, ok := rows[Ref{depth, ref.ID}]; ok {
			return row
		}
	}
	for depth := ref.Depth - 1; depth >= 0; depth-- {
		if row, ok := rows[Ref{depth, ref.ID}]; ok {
			return row
		}
	}
	return none
}

// MessagesByID implements Reader.
func (g *inheriting) MessagesByID(ctx context.Context, id events.ConversationID, refs []Ref, asOf uint64) (map[Ref]Message, error) {
	if !g.is(id) {
		return g.Reader.MessagesByID(ctx, id, refs, asOf)
	}
	return meant(ctx, g.lineage, refs, asOf, g.Reader.MessagesByID, (*Message).shift)
}

// Calls implements Reader.
func (g *inheriting) Calls(ctx context.Context, id events.ConversationID, refs []Ref, asOf uint64) (map[Ref]ToolCall, error) {
	if !g.is(id) {
		return g.Reader.Calls(ctx, id, refs, asOf)
	}
	return meant(ctx, g.lineage, refs, asOf, g.Reader.Calls, (*ToolCall).shift)
}

// Results implements Reader. A call's result is the one in its own conversation, else the
// oldest result elsewhere in the lineage that refers to this call.
func (g *inheriting) Results(ctx context.Context, id events.ConversationID, refs []Ref, asOf uint64) (map[Ref]ToolResult, error) {
	if !g.is(id) {
		return g.Reader.Results(ctx, id, refs, asOf)
	}
	found := map[Ref]ToolResult{}
	if err := ofOwnDepth(ctx, g.lineage, refs, asOf, g.Reader.Results, (*ToolResult).shift, found); err != nil {
		return nil, err
	}
	pending := missing(refs, found, anyRef)
	if len(pending) == 0 {
		return found, nil
	}
	var wherever []Ref
	for depth := range g.lineage.segments {
		for _, ref := range pending {
			wherever = append(wherever, Ref{depth, ref.ID})
		}
	}
	results := map[Ref]ToolResult{}
	if err := ofOwnDepth(ctx, g.lineage, wherever, asOf, g.Reader.Results, (*ToolResult).shift, results); err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return found, nil
	}
	calls, err := g.Calls(ctx, id, wherever, asOf) // the call that the id refers to at each depth
	if err != nil {
		return nil, err
	}
	for _, ref := range pending {
		for depth := len(g.lineage.segments) - 1; depth >= 0; depth-- {
			at := Ref{depth, ref.ID}
			result, ok := results[at]
			if _, older := found[ref]; ok && !older && calls[at].Seq == calls[ref].Seq {
				found[ref] = result
			}
		}
	}
	return found, nil
}

// byRef is a read of rows by their ids.
type byRef[T any] func(ctx context.Context, id events.ConversationID, refs []Ref, asOf uint64) (map[Ref]T, error)

// shifted moves a row of a segment to its position in the lineage.
type shifted[T any] func(row *T, s *segment, depth int)

// meant finds the rows that refs refer to.
func meant[T any](ctx context.Context, l *Lineage, refs []Ref, asOf uint64, read byRef[T], shift shifted[T]) (map[Ref]T, error) {
	found := map[Ref]T{}
	for i := range l.segments {
		here := missing(refs, found, func(ref Ref) bool { return ref.Depth <= i })
		if err := readByRef(ctx, l, i, here, asOf, read, shift, found); err != nil {
			return nil, err
		}
	}
	for i := len(l.segments) - 2; i >= 0; i-- {
		below := missing(refs, found, func(ref Ref) bool { return ref.Depth > i })
		if err := readByRef(ctx, l, i, below, asOf, read, shift, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ofOwnDepth adds the rows that have exactly these refs.
func ofOwnDepth[T any](ctx context.Context, l *Lineage, refs []Ref, asOf uint64, read byRef[T], shift shifted[T], found map[Ref]T) error {
	for i := range l.segments {
		own := missing(refs, found, func(ref Ref) bool { return ref.Depth == i })
		if err := readByRef(ctx, l, i, own, asOf, read, shift, found); err != nil {
			return err
		}
	}
	return nil
}

// readByRef adds, for each of these refs, the row of one segment that has the id.
func readByRef[T any](ctx context.Context, l *Lineage, depth int, refs []Ref, asOf uint64, read byRef[T], shift shifted[T], found map[Ref]T) error {
	s := &l.segments[depth]
	if len(refs) == 0 || asOf < s.from {
		return nil
	}
	own := make([]Ref, len(refs))
	for i, ref := range refs {
		own[i] = Ref{ID: ref.ID}
	}
	rows, err := read(ctx, s.id, own, min(asOf, s.upTo))
	if err != nil && !s.gone(depth, err) {
		return err
	}
	for i, ref := range refs {
		if row, ok := rows[own[i]]; ok {
			shift(&row, s, depth)
			found[ref] = row
		}
	}
	return nil
}

// missing returns the wanted refs that have not been found yet.
func missing[T any](refs []Ref, found map[Ref]T, wanted func(Ref) bool) (list []Ref) {
	for _, ref := range refs {
		if _, ok := found[ref]; !ok && wanted(ref) {
			list = append(list, ref)
		}
	}
	return list
}

func anyRef(Ref) bool { return true }
