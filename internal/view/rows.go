package view

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// Limits for the cached rows of one conversation.
const (
	maxRowBytes = 2_000_000 // approximate
	maxNewRows  = 256       // read to catch up; with more new rows the cache starts over
)

// rows caches what the last context of a conversation read. An agent asks for a context
// after each step, and most of it is the same as before. Rows never change within an edition,
// so the cached ones stay valid, and only later ones are read.
type rows struct {
	mu   sync.Mutex
	kept tail
}

// tail is the end of a conversation as of a sequence. A stored tail is immutable.
type tail struct {
	end          uint64        // all rows are below this sequence
	list         []graph.Entry // the newest rows without a gap, oldest first
	whole        bool          // list holds all rows of the conversation
	summaryCount int

	// Other reads: messages by sequence, and lists by their query.
	found     map[uint64]graph.Message
	messages  map[graph.MessageQuery][]graph.Message
	summaries map[graph.SummaryQuery][]graph.Summary
}

// Graph returns a reader for one request that answers from cached rows where it can. For a
// lineage, r must read the lineage; edition is as in [Source].
func (c *Cache) Graph(r window.Graph, edition string) window.Graph {
	return &remembered{Graph: r, cache: c, key: key{edition: edition}}
}

// remembered serves one request from cached rows. It is bound to the conversation it was
// last asked for, and caches nothing until that conversation has been searched.
type remembered struct {
	window.Graph
	cache *Cache
	key   key

	tail          // what this request read, on top of the cached rows
	before tail   // what was cached, unless too much is new
	entry  *entry // nil until looked up
}

// Conversation implements window.Graph.
func (r *remembered) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error) {
	c, err := r.Graph.Conversation(ctx, id, asOf)
	if err == nil {
		r.key.id, r.entry, r.before = id, nil, tail{}
		r.tail = tail{end: min(asOf, c.LastSeq) + 1, summaryCount: c.SummaryCount}
	}
	return c, err
}

// knows reports whether r.tail belongs to this conversation and may be used. On the first
// call it looks up the cached rows.
func (r *remembered) knows(ctx context.Context, id events.ConversationID) (bool, error) {
	if r.end == 0 || id != r.key.id {
		return false, nil
	}
	if r.entry != nil {
		return true, nil
	}
	e := r.cache.held(r.key)
	if e == nil {
		return false, nil
	}
	e.rows.mu.Lock()
	kept := e.rows.kept
	e.rows.mu.Unlock()
	if err := r.goOn(ctx, kept); err != nil {
		return false, err
	}
	if r.entry = e; len(r.list) > 0 && r.end > kept.end {
		grown := r.tail
		grown.found, grown.messages, grown.summaries = r.before.found, r.before.messages, r.before.summaries
		r.store(grown)
	}
	return true, nil
}

// goOn builds the tail from the cached rows and the rows added since.
func (r *remembered) goOn(ctx context.Context, kept tail) error {
	if kept.end == 0 {
		return nil
	}
	n, _ := slices.BinarySearchFunc(kept.list, r.end, bySeq)
	list := kept.list[:n]
	if r.end > kept.end {
		added, err := r.Graph.Transcript(ctx, r.key.id, graph.TranscriptQuery{From: kept.end, Before: r.end, Limit: maxNewRows})
		if err != nil {
			return err
		}
		if len(added) == maxNewRows {
			return nil
		}
		slices.Reverse(added)
		list = slices.Concat(list, added)
	}
	if kept.summaryCount != r.summaryCount {
		kept.summaries = nil
	}
	r.before, r.list, r.whole = kept, list, kept.whole
	return nil
}

// keep caches what the request read.
func (r *remembered) keep() {
	if len(r.list) > 0 {
		t := r.tail
		t.found, t.messages, t.summaries = maps.Clone(t.found), maps.Clone(t.messages), maps.Clone(t.summaries)
		r.store(t)
	}
}

// store caches a tail, which must not change afterwards, unless a later one is cached. If
// the tail is too large, only its newest rows are kept.
func (r *remembered) store(t tail) {
	bytes := t.bytes()
	if bytes > maxRowBytes {
		t.found, t.messages = nil, nil
		bytes = t.bytes()
	}
	for bytes > maxRowBytes && len(t.list) > 0 {
		t.list, t.whole = slices.Clone(t.list[(len(t.list)+1)/2:]), false
		bytes = t.bytes()
	}
	if len(t.list) == 0 {
		t, bytes = tail{}, 0
	}
	e := r.entry
	e.rows.mu.Lock()
	defer e.rows.mu.Unlock()
	if t.end >= e.rows.kept.end {
		e.rows.kept = t
		r.cache.resize(e, &e.rowBytes, bytes)
	}
}

// bytes returns the approximate memory of a tail.
func (t *tail) bytes() (n int) {
	for _, e := range t.list {
		n += 512 + e.Bytes()
	}
	for _, m := range t.found {
		n += 512 + m.Bytes()
	}
	for _, list := range t.messages {
		for i := range list {
			n += 512 + list[i].Bytes()
		}
	}
	for _, list := range t.summaries {
		for i := range list {
			n += 512 + list[i].Bytes()
		}
	}
	return n
}

func bySeq(e graph.Entry, seq uint64) int { return cmp.Compare(e.Position().Seq, seq) }

// from returns the sequence from which on the tail is complete.
func (t *tail) from() uint64 {
	switch {
	case t.whole:
		return 0
	case len(t.list) == 0:
		return t.end
	}
	return t.list[0].Position().Seq
}

// has reports whether the tail holds the rows right below a sequence, or ends there.
func (t *tail) has(before uint64) bool { return before != 0 && t.from() <= before && before <= t.end }

// below returns the rows below a sequence.
func (t *tail) below(seq uint64) []graph.Entry {
	n, _ := slices.BinarySearchFunc(t.list, seq, bySeq)
	return t.list[:n]
}

// Transcript implements window.Graph.
func (r *remembered) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) (list []graph.Entry, err error) {
	known, err := r.knows(ctx, id)
	if err != nil {
		return nil, err
	}
	if !known || !r.has(q.Before) || q.OldestFirst || q.Limit <= 0 {
		return r.Graph.Transcript(ctx, id, q)
	}
	for _, e := range slices.Backward(r.below(q.Before)) {
		if len(list) == q.Limit || e.Position().Seq < q.From {
			return list, nil
		}
		if e.Call != nil || !q.CallsOnly {
			list = append(list, e)
		}
	}
	if len(list) == q.Limit || q.From >= r.from() {
		return list, nil
	}
	more := q
	more.Before, more.Limit = r.from(), q.Limit-len(list)
	older, err := r.Graph.Transcript(ctx, id, more)
	if err != nil {
		return nil, err
	}
	list = append(list, older...)
	if !q.CallsOnly && q.From == 0 {
		slices.Reverse(older)
		r.list, r.whole = slices.Concat(older, r.list), len(older) < more.Limit
		r.keep()
	}
	return list, nil
}

// Messages implements window.Graph.
func (r *remembered) Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) ([]graph.Message, error) {
	known, err := r.knows(ctx, id)
	if err != nil {
		return nil, err
	}
	if !known || q.Before == 0 || q.Before > r.end || q.Limit <= 0 || q.Turn > 0 || q.From > 0 {
		return r.Graph.Messages(ctx, id, q)
	}
	if r.has(q.Before) && (r.whole || !q.OldestFirst) {
		if list := matching(r.below(q.Before), q); r.whole || len(list) == q.Limit {
			return list, nil
		}
	}
	asked := q
	if q.OldestFirst {
		asked.Before = 0 // the first rows are the same whatever the end
	}
	list, ok := r.before.messages[asked]
	if !ok || q.OldestFirst && (len(list) < q.Limit || list[len(list)-1].Seq >= q.Before) {
		if list, err = r.Graph.Messages(ctx, id, q); err != nil {
			return nil, err
		}
	}
	r.messages = with(r.messages, asked, list)
	r.keep()
	return slices.Clone(list), nil
}

// with adds to a map, which may be nil.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}

// matching returns the messages of the query's role among rows, up to its limit.
func matching(rows []graph.Entry, q graph.MessageQuery) (list []graph.Message) {
	for i := range rows {
		e := rows[i]
		if !q.OldestFirst {
			e = rows[len(rows)-1-i]
		}
		if m := e.Message; m != nil && (q.Role == "" || m.Role == q.Role) {
			if list = append(list, *m); len(list) == q.Limit {
				break
			}
		}
	}
	return list
}

// MessagesAt implements window.Graph.
func (r *remembered) MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) ([]graph.Message, error) {
	known, err := r.knows(ctx, id)
	if err != nil {
		return nil, err
	}
	if !known {
		return r.Graph.MessagesAt(ctx, id, seqs)
	}
	var list, found []graph.Message
	var elsewhere []uint64
	for _, seq := range seqs {
		if i, ok := slices.BinarySearchFunc(r.list, seq, bySeq); ok && r.list[i].Message != nil {
			list = append(list, *r.list[i].Message)
		} else if m, ok := r.before.found[seq]; ok {
			found = append(found, m)
		} else if seq < r.from() || seq >= r.end {
			elsewhere = append(elsewhere, seq)
		}
	}
	if len(elsewhere) > 0 {
		more, err := r.Graph.MessagesAt(ctx, id, elsewhere)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	for _, m := range found {
		r.found = with(r.found, m.Seq, m)
	}
	r.keep()
	list = append(list, found...)
	slices.SortFunc(list, func(a, b graph.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, nil
}

// Summaries implements window.Graph.
func (r *remembered) Summaries(ctx context.Context, id events.ConversationID, q graph.SummaryQuery) ([]graph.Summary, error) {
	known, err := r.knows(ctx, id)
	if err != nil {
		return nil, err
	}
	if !known || q.AsOf != r.end-1 {
		return r.Graph.Summaries(ctx, id, q)
	}
	asked := q
	asked.AsOf = 0
	list, ok := r.before.summaries[asked]
	if !ok {
		if list, err = r.Graph.Summaries(ctx, id, q); err != nil {
			return nil, err
		}
	}
	r.summaries = with(r.summaries, asked, list)
	r.keep()
	return slices.Clone(list), nil
}
