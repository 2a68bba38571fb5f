package window

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
)

// SearchQuery asks for messages of one conversation.
type SearchQuery struct {
	Conversation events.ConversationID
	Text         string
	AsOf         uint64 // a sequence; 0 means latest
	EmbeddedUpTo uint64 // see recall.Query; 0 means all
	Limit        int    // hits at most
	MaxChars     int    // of each hit's text

	By    recall.Method
	From  int // skips this many of the best
	Keep  Filter
	Ranks bool // also find the ranks by each method
}

// maxExamined is how many hits a search reads at most to find those that a Filter keeps.
const maxExamined = 2_000

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

// Search finds the messages that match a text, best first, in the way a context does, and says how
// it ranked them. next is how many hits it has passed, if there may be more, else 0. It returns
// graph.ErrNotFound as Build does.
func Search(ctx context.Context, src Source, q SearchQuery) (hits []Hit, found Found, next int, err error) {
	examined, keep := q.Limit, q.Keep.keep()
	if keep != nil {
		examined = maxExamined
	}
	query := recall.Query{Text: q.Text, AsOf: q.AsOf, EmbeddedUpTo: q.EmbeddedUpTo, Limit: q.From + examined + 1, By: q.By}
	found, err = src.Recall.Search(ctx, q.Conversation, query)
	if err != nil || len(found.Hits) <= q.From {
		return nil, found, 0, err
	}
	at, end := q.From, min(len(found.Hits), q.From+examined)
	for at < end && len(hits) < q.Limit {
		page := found.Hits[at:min(at+q.Limit-len(hits), end)]
		read, err := readHits(ctx, src.Graph, q.Conversation, page, q.MaxChars)
		if err != nil {
			return nil, found, 0, err
		}
		at += len(page)
		for _, c := range read {
			if keep == nil || keep(c.message) {
				hits = append(hits, Hit{Message: *c.message, Text: c.text, Match: *found.match(c.hit)})
			}
		}
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
		query := recall.Query{Text: q.Text, AsOf: q.AsOf, EmbeddedUpTo: q.EmbeddedUpTo, Limit: MaxRanked, By: recall.Method(method)}
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
