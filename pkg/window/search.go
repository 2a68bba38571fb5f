package window

import (
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/recall"
)

// SearchQuery asks for messages of one conversation, or for tool results.
type SearchQuery struct {
	Conversation events.ConversationID
	Text         string
	Prefixes     []string // see recall.Query
	AsOf         uint64   // a sequence; 0 means latest
	EmbeddedUpTo uint64   // see recall.Query; 0 means all
	Limit        int      // hits at most
	MaxChars     int      // of each hit's text

	By    recall.Method
	From  int // skips this many of the best
	Keep  Filter
	Ranks bool // also find the ranks by each method

	Among  *recall.Statistics // for tool results: how common words are; nil means as common as in the conversation
	Rerank Reranking          // of messages that are ranked by everything
}

// MaxExamined is how many hits a search reads at most to find those that a Filter keeps.
const MaxExamined = 2_000

// MaxRanked is how far down ranks are known.
const MaxRanked = 1_000

// Ranks are the places of a message in the results of each method, from 1; 0 if it is not among the
// first [MaxRanked].
type Ranks struct {
	Fused   int `json:"fused,omitempty"`
	Words   int `json:"words,omitempty"`
	Meaning int `json:"meaning,omitempty"`
}

// Hit is a message found by a search.
type Hit struct {
	graph.Message
	Text  string // its content as shown: whole, or the part around the best passage
	Match Match
	Ranks *Ranks // nil unless asked for
}

// Search finds the messages that match a text, best first, in the way a context does, and says how it ranked them. next
// is the number of hits passed so far if there may be more, else 0. It returns graph.ErrNotFound as Build does.
func Search(ctx context.Context, src Source, q SearchQuery) (hits []Hit, found Found, next int, err error) {
	examined, keep := q.Limit, q.Keep.OfMessages()
	if keep != nil {
		examined = MaxExamined
	}
	most := q.From + examined + 1
	if q.Rerank.Wanted || len(q.Rerank.Order) > 0 {
		most = max(most, MaxReranked) // each page has its place in the same order
	}
	query := recall.Query{Text: q.Text, AsOf: q.AsOf, EmbeddedUpTo: q.EmbeddedUpTo, Limit: most, By: q.By, Prefixes: q.Prefixes}
	found, err = src.Recall.Search(ctx, q.Conversation, query)
	if err == nil && q.By == recall.Fused {
		err = src.rerank(ctx, q.Conversation, q.Text, q.Rerank, &found)
	}
	if err != nil || len(found.Hits) <= q.From {
		return nil, found, 0, err
	}
	at, end := q.From, min(len(found.Hits), q.From+examined)
	for at < end && len(hits) < q.Limit {
		page := found.Hits[at:min(at+PageOf(q.Limit-len(hits), at == q.From), end)]
		read, err := readMessages(ctx, src.Graph, q.Conversation, page)
		if err != nil {
			return nil, found, 0, err
		}
		passed := len(page)
		for i := range read {
			c := &read[i]
			if keep != nil && !keep(c.message) {
				continue
			}
			c.cut(q.MaxChars, q.focus())
			if hits = append(hits, Hit{Message: *c.message, Text: c.text, Match: *found.match(c.hit)}); len(hits) == q.Limit {
				passed = 1 + slices.IndexFunc(page, func(h recall.Hit) bool { return h.Seq == c.hit.Seq })
				break
			}
		}
		at += passed
	}
	if q.Ranks {
		if err := rankHits(ctx, src, q, hits); err != nil {
			return nil, found, 0, err
		}
	}
	if at < len(found.Hits) {
		next = at
	}
	return hits, found, next, nil
}

// minPageOf is how many hits are read at once after the first page.
const minPageOf = 64

// PageOf returns how many hits to read for those that are still missing. If the first ones read were not enough, because a
// filter left some out or they said the same, this may be so for most: then one read for each missing hit would be a read
// of the store for each hit.
func PageOf(missing int, first bool) int {
	if first {
		return missing
	}
	return max(missing, minPageOf)
}

// rankHits finds the ranks of hits by each method.
func rankHits(ctx context.Context, src Source, q SearchQuery, hits []Hit) error {
	place := map[uint64]*Ranks{}
	for i := range hits {
		hits[i].Ranks = &Ranks{}
		place[hits[i].Seq] = hits[i].Ranks
	}
	for method, rank := range []func(r *Ranks) *int{
		recall.Fused:     func(r *Ranks) *int { return &r.Fused },
		recall.ByWords:   func(r *Ranks) *int { return &r.Words },
		recall.ByMeaning: func(r *Ranks) *int { return &r.Meaning },
	} {
		query := recall.Query{Text: q.Text, AsOf: q.AsOf, EmbeddedUpTo: q.EmbeddedUpTo, Limit: MaxRanked, By: recall.Method(method), Prefixes: q.Prefixes}
		found, err := src.Recall.Search(ctx, q.Conversation, query)
		if err != nil {
			return err
		}
		for i := range found.Hits {
			if r := place[found.Hits[i].Seq]; r != nil {
				*rank(r) = i + 1
			}
		}
	}
	return nil
}

// List returns the messages that a filter keeps, newest first, for a search without words. The list begins below the
// sequence before, 0 for the end, and continues at next, 0 if there is no more. A call examines a bounded number of
// messages, so it may return fewer than there are. It returns graph.ErrNotFound as Build does.
func List(ctx context.Context, src Source, q SearchQuery, before uint64) (hits []Hit, next uint64, err error) {
	if q.AsOf != 0 && (before == 0 || before > q.AsOf) {
		before = q.AsOf + 1
	}
	hits, next, _, err = list(ctx, src.Graph, q, before, MaxExamined)
	return hits, next, err
}

// list is [List] without the query's AsOf. It stops after it has examined about most messages, and returns how
// many it has examined.
func list(ctx context.Context, g Graph, q SearchQuery, before uint64, most int) (hits []Hit, next uint64, examined int, err error) {
	keep := q.Keep.OfMessages()
	if to := q.Keep.ToSeq; to != 0 && (before == 0 || before > to) {
		before = to + 1 // what is newer need not be examined
	}
	for examined < most {
		page, err := g.Messages(ctx, q.Conversation, graph.MessageQuery{From: q.Keep.FromSeq, Before: before, Limit: listPage, Role: q.Keep.Role})
		if err != nil {
			return nil, 0, examined, err
		}
		for i := range page {
			m := &page[i]
			if m.Turn < q.Keep.FromTurn {
				return hits, 0, examined, nil
			}
			if examined++; keep == nil || keep(m) {
				if len(hits) == q.Limit {
					return hits, before, examined, nil
				}
				hits = append(hits, Hit{Message: *m, Text: excerptOf(m.Content, 0, 0, q.MaxChars), Match: Match{Confidence: confidenceL0}})
			}
			before = m.Seq
		}
		if len(page) < listPage {
			return hits, 0, examined, nil
		}
	}
	return hits, before, examined, nil
}

// listPage is how many messages a list reads at once.
const listPage = 200

// focus finds the words of a query in a text; nil finds none.
type focus func(text string) []recall.Span

func (q *SearchQuery) focus() focus {
	return func(text string) []recall.Span { return recall.Highlights(text, q.Text, q.Prefixes) }
}

// on narrows down a passage, the bytes of a text from start to end, if an excerpt of room characters
// cannot show all of it: to the part with the most words of the query.
func (f focus) on(body graph.Body, start, end, room int) (from, to int) {
	end = min(end, len(body.Text))
	if start = min(start, end); f == nil || plain.Length(body.Text[start:end]) <= room {
		return start, end
	}
	spans := f(body.Text[start:end])
	most := 0
	for i, first := range spans {
		n := i
		for n < len(spans) && spans[n].End-first.Start <= room/2 {
			n++
		}
		if n-i > most {
			most, from, to = n-i, start+first.Start, start+spans[n-1].End
		}
	}
	if most == 0 {
		return start, end
	}
	return from, to
}
