package window

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/recall"
)

// Reranker scores texts by how well they answer a query.
type Reranker interface {
	Model() string // its name in manifests
	// Rerank returns a score for each text, the highest for the best one. If it returns an error, the
	// order stays as it was, and manifests show the error.
	Rerank(ctx context.Context, query string, texts []string) ([]float64, error)
}

// MaxReranked is how many of the best hits a reranker orders.
const MaxReranked = 100

// rerankChars is how much of a message a reranker reads, around its best passage. The usual models
// read 512 tokens, the query among them.
const rerankChars = 1_200

// Reranked says what a reranker did to a search.
type Reranked struct {
	Model string `json:"model,omitempty"` // absent if it gave no order, or the request did
	// Order has the sequences of the best messages as the reranker ordered them, best first. A request
	// with this order repeats the search without the reranker.
	Order   []uint64 `json:"order,omitempty"`
	Missing string   `json:"missing,omitempty"` // why there is no order; absent if there is one
}

// Reranking says whether to rerank. The zero value does not.
type Reranking struct {
	Wanted bool     // ask the source's reranker
	Order  []uint64 // apply this order of an earlier search instead
}

// rerank puts the best hits of a search into the order of a reranker. If that fails, they stay as
// they are, and what was found says why.
func (s *Source) rerank(ctx context.Context, id events.ConversationID, query string, how Reranking, found *Found) error {
	switch {
	case len(how.Order) > 0:
		found.Reranked = &Reranked{Order: how.Order}
		found.reorder(how.Order)
		return nil
	case !how.Wanted || len(found.Hits) == 0:
		return nil
	case s.Reranker == nil:
		found.Reranked = &Reranked{Missing: "there is no reranker"}
		return nil
	}
	read, err := readHits(ctx, s.Graph, id, found.Hits[:min(len(found.Hits), MaxReranked)], rerankChars, nil)
	if err != nil {
		return err
	}
	texts := make([]string, len(read))
	for i := range read {
		texts[i] = read[i].text
	}
	scores, err := s.Reranker.Rerank(ctx, query, texts)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		found.Reranked = &Reranked{Missing: err.Error()}
		return nil
	}
	places := make([]int, len(read))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) }) // equal ones stay in order
	order := make([]uint64, len(places))
	for i, place := range places {
		order[i] = read[place].hit.Seq
	}
	found.Reranked = &Reranked{Model: s.Reranker.Model(), Order: order}
	found.reorder(order)
	return nil
}

// reorder puts the hits of an order first, in that order. The scores stay at their places, so that they still fall from
// hit to hit. What a score differs from the sum of its parts is due to the reranker.
func (f *Found) reorder(order []uint64) {
	place := make(map[uint64]int, len(order))
	for i, seq := range order {
		if _, twice := place[seq]; !twice {
			place[seq] = i
		}
	}
	first := func(h *recall.Hit) int {
		if i, ok := place[h.Seq]; ok {
			return i
		}
		return len(order)
	}
	scores := make([]float64, len(f.Hits))
	for i := range f.Hits {
		scores[i] = f.Hits[i].Score
	}
	hits := slices.Clone(f.Hits)
	slices.SortStableFunc(hits, func(a, b recall.Hit) int { return cmp.Compare(first(&a), first(&b)) })
	for i := range hits {
		hits[i].Score = scores[i]
	}
	f.Hits = hits
}
