package recall

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Said is a message of a conversation.
type Said struct {
	Seq     uint64 // 0 for the title
	Bag     Bag
	Vectors []Vector // of its passages; nil if there are none
}

// Conversations ranks conversations by a few messages of each.
//
// What a conversation is about it says at its beginning. So its score is the mean of two:
// how well the best of all its messages fits, and how well the best of those fits that it
// opened with. Half of each is BM25, relative to the best of all, and half the cosine; the
// words may be those of one message and the meaning that of another. Messages of a search
// stand beside no others, so nothing is lent among them.
//
// On 122 titles that a coding agent gave its sessions, of which the titles are not known, the
// right one of 198 comes first for 88 to 90 percent of them, for 87 without vectors. By BM25
// over whole conversations it is 78 percent, by the best message of each 74.
//
// The zero value has none.
type Conversations struct {
	index    Index
	messages []heard // by their place in the index
	n        int
}

// heard is whose message it is.
type heard struct {
	conversation int
	opening      bool
	seq          uint64
}

// Of a message's own score, and of a conversation's.
const (
	conversationLexical = 0.5 // where there are vectors
	openingShare        = 0.5
)

// ConversationHit is a conversation that was found.
type ConversationHit struct {
	Conversation int     // counted from 0 in the order of Add
	Score        float64 // the sum of Parts
	Parts        ConversationParts
	Messages     []Hit // those it was given, without its title, the best first
}

// ConversationParts are what the score of a conversation consists of.
type ConversationParts struct {
	Lexical        float64 `json:"lexical"`         // BM25 of its best message, relative to the best of all
	Dense          float64 `json:"dense"`           // the cosine of its best message
	OpeningLexical float64 `json:"opening_lexical"` // the same of its title and first messages
	OpeningDense   float64 `json:"opening_dense"`
}

// Sum is the score.
func (p ConversationParts) Sum() float64 {
	return p.Lexical + p.Dense + p.OpeningLexical + p.OpeningDense
}

// Add adds a conversation: what it opened with, its title too, and others of its messages.
// It fails with [ErrVectors] for vectors that do not fit.
func (c *Conversations) Add(opening, others []Said) error {
	defer func() { c.n++ }()
	for i, s := range slices.Concat(opening, others) {
		if len(s.Bag.Passages) == 0 {
			continue
		}
		at := len(c.messages)
		s.Bag.Session = strconv.Itoa(at) // a session of its own, where it has no neighbours
		if err := c.index.Add(uint64(at)+1, s.Bag); err != nil {
			return err
		}
		c.messages = append(c.messages, heard{conversation: c.n, opening: i < len(opening), seq: s.Seq})
		if s.Vectors == nil {
			continue
		}
		if err := c.index.SetVectors(uint64(at)+1, s.Vectors); err != nil {
			return err
		}
	}
	return nil
}

// Unnamed is a query without the names of who speaks in the conversations, see
// [Index.Unnamed].
func (c *Conversations) Unnamed(query string) string { return c.index.Unnamed(query, 0) }

// Search returns the conversations in which something answers a query, the best first, and
// of equal ones that first that was added first. The query's AsOf is left alone.
func (c *Conversations) Search(q Query) []ConversationHit {
	r := ranking{x: &c.index, n: len(c.messages), beside: make([]float64, len(c.messages))}
	if r.n == 0 {
		return nil
	}
	r.dense(q.Vector, r.n)
	r.lexical(queryTerms(q.Text))
	hits := make([]ConversationHit, c.n)
	for i, m := range c.messages {
		hit, h := r.alone(i), &hits[m.conversation]
		h.Conversation = m.conversation
		h.Parts.Lexical = max(h.Parts.Lexical, float64((1-openingShare)*hit.Parts.Lexical))
		h.Parts.Dense = max(h.Parts.Dense, float64((1-openingShare)*hit.Parts.Dense))
		if m.opening {
			h.Parts.OpeningLexical = max(h.Parts.OpeningLexical, float64(openingShare*hit.Parts.Lexical))
			h.Parts.OpeningDense = max(h.Parts.OpeningDense, float64(openingShare*hit.Parts.Dense))
		}
		h.Score = h.Parts.Sum()
		if hit.Seq = m.seq; hit.Seq != 0 {
			h.Messages = append(h.Messages, hit)
		}
	}
	hits = slices.DeleteFunc(hits, func(h ConversationHit) bool { return h.Score == 0 })
	slices.SortStableFunc(hits, func(a, b ConversationHit) int { return cmp.Compare(b.Score, a.Score) })
	for _, h := range hits {
		slices.SortStableFunc(h.Messages, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	}
	if q.Limit > 0 {
		hits = hits[:min(len(hits), q.Limit)]
	}
	return hits
}

// alone is a message by its own words and meaning.
func (r *ranking) alone(i int) Hit {
	lexical := 1.0
	if r.cosines != nil {
		lexical = conversationLexical
	}
	var h Hit
	first, end := r.x.span(i)
	best := math.Inf(-1)
	for p := first; p < end; p++ {
		h.BM25 = max(h.BM25, r.bm25[p])
		score := 0.0
		if r.maxBM25 > 0 {
			score = float64(lexical * (r.bm25[p] / r.maxBM25))
		}
		if r.cosines != nil {
			score += float64((1 - lexical) * r.cosines[p])
		}
		if score > best {
			best = score
			h.Passage, h.Start, h.End = p-first, int(r.x.passages[p].start), int(r.x.passages[p].end)
		}
	}
	if r.maxBM25 > 0 {
		h.Parts.Lexical = float64(lexical * (r.topBM25[i] / r.maxBM25))
	}
	if r.cosines != nil {
		h.Cosine = r.topCos[i]
		h.Parts.Dense = float64((1 - lexical) * h.Cosine)
	}
	h.Score = h.Parts.Sum()
	return h
}
