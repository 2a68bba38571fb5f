package graph

import (
	"cmp"
	"context"
	"errors"
	"math"

	"mneme.dev/mneme/events"
)

// Graph reads the conversation of this lineage as if it held the rows of its ancestors
// itself: numbers and counts continue theirs, and Depth tells the rows apart. It reads
// nothing after the lineage's sequence. Other conversations are unaffected. Without
// ancestors it returns r.
//
// Rows of an ancestor that is deleted after the lineage was found are left out.
func (l *Lineage) Graph(r Reader) Reader {
	if len(l.segments) == 1 {
		return r
	}
	return &inheriting{r, l}
}

// Files reads the files of this lineage's conversation with those that its ancestors
// touched, in the same way. A result in the branch does not affect the files of an
// ancestor's call. It costs as much as a read as of a sequence.
func (l *Lineage) Files(r FilesReader) FilesReader {
	if len(l.segments) == 1 {
		return r
	}
	return &inheritingFiles{r, l}
}

type inheriting struct {
	Reader
	lineage *Lineage
}

func (g *inheriting) is(id events.ConversationID) bool { return id == g.lineage.own.ID }

// Conversation implements Reader.
func (g *inheriting) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (Conversation, error) {
	switch {
	case !g.is(id):
		return g.Reader.Conversation(ctx, id, asOf)
	case asOf >= g.lineage.asOf:
		return g.lineage.Conversation(), nil
	}
	then, err := LineageOf(ctx, g.Reader, id, asOf)
	if err != nil {
		return Conversation{}, err
	}
	return then.Conversation(), nil
}

// Counts implements Reader.
func (g *inheriting) Counts(ctx context.Context, id events.ConversationID, seqs []uint64) ([]Counts, error) {
	if !g.is(id) {
		return g.Reader.Counts(ctx, id, seqs)
	}
	list := make([]Counts, len(seqs))
	for i := range g.lineage.segments {
		s := &g.lineage.segments[i]
		var at []int
		var within []uint64
		for k, seq := range seqs {
			if s.from <= seq && (i == 0 || seq < g.lineage.segments[i-1].from) {
				at, within = append(at, k), append(within, min(seq, s.upTo))
			}
		}
		if len(at) == 0 {
			continue
		}
		counts, err := g.Reader.Counts(ctx, s.id, within)
		if err != nil && !s.gone(i, err) {
			return nil, err
		}
		for k, c := range counts {
			list[at[k]] = s.before.plus(c)
		}
	}
	return list, nil
}

// gone reports whether an ancestor was deleted since the lineage was found.
func (s *segment) gone(depth int, err error) bool { return depth > 0 && errors.Is(err, ErrNotFound) }

// collect reads a range of a lineage, segment by segment, until it has limit rows.
func collect[T any](l *Lineage, from, before uint64, limit int, oldestFirst bool, read func(s *segment, from, before uint64, limit int) ([]T, error), shift shifted[T]) (list []T, err error) {
	if limit <= 0 {
		limit = 50
	}
	for n := range l.segments {
		i := n
		if oldestFirst {
			i = len(l.segments) - 1 - n
		}
		s := &l.segments[i]
		first, end := max(from, s.from), s.upTo+1 // 0 means no upper bound, as in a query
		if before != 0 && (end == 0 || before < end) {
			end = before
		}
		if end != 0 && first >= end {
			continue
		}
		rows, err := read(s, first, end, limit-len(list))
		if err != nil && !s.gone(i, err) {
			return nil, err
		}
		for k := range rows {
			shift(&rows[k], s, i)
		}
		if list = append(list, rows...); len(list) == limit {
			break
		}
	}
	return list, nil
}

// Messages implements Reader.
func (g *inheriting) Messages(ctx context.Context, id events.ConversationID, q MessageQuery) ([]Message, error) {
	if !g.is(id) {
		return g.Reader.Messages(ctx, id, q)
	}
	return collect(g.lineage, q.From, q.Before, q.Limit, q.OldestFirst, func(s *segment, from, before uint64, limit int) ([]Message, error) {
		part := q
		part.From, part.Before, part.Limit = from, before, limit
		if q.Turn > 0 {
			if part.Turn -= s.before.TurnCount; part.Turn <= 0 {
				return nil, nil
			}
		}
		return g.Reader.Messages(ctx, s.id, part)
	}, (*Message).shift)
}

// Bags implements RecallReader.
func (g *inheriting) Bags(ctx context.Context, id events.ConversationID, q BagQuery) ([]Bag, error) {
	if !g.is(id) {
		return g.Reader.Bags(ctx, id, q)
	}
	return collect(g.lineage, q.From, q.Before, q.Limit, true, func(s *segment, from, before uint64, limit int) ([]Bag, error) {
		return g.Reader.Bags(ctx, s.id, BagQuery{From: from, Before: before, Limit: limit})
	}, func(b *Bag, s *segment, _ int) { b.N += s.before.MessageCount })
}

// MessagesAt implements RecallReader.
func (g *inheriting) MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) ([]Message, error) {
	if !g.is(id) {
		return g.Reader.MessagesAt(ctx, id, seqs)
	}
	return collect(g.lineage, 0, 0, max(1, len(seqs)), true, func(s *segment, from, before uint64, _ int) ([]Message, error) {
		var within []uint64
		for _, seq := range seqs {
			if from <= seq && (before == 0 || seq < before) {
				within = append(within, seq)
			}
		}
		if len(within) == 0 {
			return nil, nil
		}
		return g.Reader.MessagesAt(ctx, s.id, within)
	}, (*Message).shift)
}

// Transcript implements Reader.
func (g *inheriting) Transcript(ctx context.Context, id events.ConversationID, q TranscriptQuery) ([]Entry, error) {
	if !g.is(id) {
		return g.Reader.Transcript(ctx, id, q)
	}
	return collect(g.lineage, q.From, q.Before, q.Limit, q.OldestFirst, func(s *segment, from, before uint64, limit int) ([]Entry, error) {
		part := q
		part.From, part.Before, part.Limit = from, before, limit
		return g.Reader.Transcript(ctx, s.id, part)
	}, func(e *Entry, s *segment, depth int) {
		switch {
		case e.Message != nil:
			e.Message.shift(s, depth)
		case e.Call != nil:
			e.Call.shift(s, depth)
		default:
			e.Result.shift(s, depth)
		}
	})
}

// shift moves a row of a segment to its position in the lineage. rows is the number of
// rows of its kind in older segments.
func (s *segment) shift(p *Position, o *Origin, depth, rows int) {
	if depth > 0 {
		p.Depth, o.InheritedFrom = depth, s.id.ID
	}
	p.N += rows
	p.Turn += s.before.TurnCount
	p.Step += s.before.StepCount
}

func (m *Message) shift(s *segment, depth int) {
	s.shift(&m.Position, &m.Origin, depth, s.before.MessageCount)
	m.CumChars += s.before.TotalChars
}

func (c *ToolCall) shift(s *segment, depth int) {
	s.shift(&c.Position, &c.Origin, depth, s.before.ToolCallCount)
}

func (r *ToolResult) shift(s *segment, depth int) {
	s.shift(&r.Position, &r.Origin, depth, s.before.ToolResultCount)
}

type inheritingFiles struct {
	FilesReader
	lineage *Lineage
}

// Files implements FilesReader.
func (f *inheritingFiles) Files(ctx context.Context, id events.ConversationID, q FileQuery) (list []FileAccess, err error) {
	if id != f.lineage.own.ID {
		return f.FilesReader.Files(ctx, id, q)
	}
	asOf, limit := q.AsOf, q.Limit
	asOf = cmp.Or(asOf, Latest)
	if limit <= 0 {
		limit = 200
	}
	type file struct{ path, kind string }
	at := map[file]int{}
	for i := range f.lineage.segments {
		s := &f.lineage.segments[i]
		if asOf < s.from {
			continue
		}
		part := q
		if part.AsOf = min(asOf, s.upTo); i > 0 {
			part.Limit = math.MaxInt32 // includes files that the branch touched again, to count those accesses
		}
		found, err := f.FilesReader.Files(ctx, s.id, part)
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			a.Turn += s.before.TurnCount
			if k, known := at[file{a.Path, a.Kind}]; known {
				list[k].Count += a.Count
			} else if len(list) < limit {
				at[file{a.Path, a.Kind}] = len(list)
				list = append(list, a)
			}
		}
	}
	return list, nil
}
