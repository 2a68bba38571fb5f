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
	Vectors []Vector // of its passages, or nil
}

// Conversations ranks conversations by a few messages of each.
//
// A conversation says at its beginning what it is about. So its score is the mean of two:
// how well its best message fits, and how well the best of its opening messages fits. Half
// of each is BM25, relative to the best of all conversations, and half is the cosine; words
// and meaning may come from different messages. The messages have no neighbors here, so
// nothing is lent.
//
// Measured with 122 titles that a coding agent gave to its sessions, searched without the
// titles: the right one of 198 conversations comes first for 88 to 90 percent of them,
// without vectors for 87. BM25 over whole conversations reaches 78 percent, the best
// message of each 74.
//
// The zero value holds no conversations.
type Conversations struct {
	index    Index
	messages []heard // by their position in the index
	n        int
}

// heard says which conversation a message belongs to.
type heard struct {
	conversation int
	opening      bool
	seq          uint64
}

// Shares of BM25 in a message's score, and of the opening in a conversation's.
const (
	conversationLexical = 0.5 // where there are vectors
	openingShare        = 0.5
)

// ConversationHit is a conversation that was found.
type ConversationHit struct {
	Conversation int     // counted from 0 in the order of Add
	Score        float64 // the sum of Parts
	Parts        ConversationParts
	Messages     []Hit // the messages given to Add, without the title, best first
}

// ConversationParts are the summands of a conversation's score.
type ConversationParts struct {
	Lexical        float64 `json:"lexical"`         // BM25 of its best message, relative to the best of all
	Dense          float64 `json:"dense"`           // the cosine of its best message
	OpeningLexical float64 `json:"opening_lexical"` // the same for its title and first messages
	OpeningDense   float64 `json:"opening_dense"`
}

// Sum returns the score.
func (p ConversationParts) Sum() float64 {
	return p.Lexical + p.Dense + p.OpeningLexical + p.OpeningDense
}

// Add adds a conversation: its opening, which includes the title, and others of its
// messages. It returns [ErrVectors] for vectors that do not fit.
func (c *Conversations) Add(opening, others []Said) error {
	defer func() { c.n++ }()
	for i, s := range slices.Concat(opening, others) {
		if len(s.Bag.Passages) == 0 {
			continue
		}
		at := len(c.messages)
		s.Bag.Session = strconv.Itoa(at) // a separate session, so that it has no neighbors
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

// Unnamed removes the names of all speakers from a query, see [Index.Unnamed].
func (c *Conversations) Unnamed(query string) string { return c.index.Unnamed(query, 0) }

// Search returns the conversations that answer a query, best first, and in the order of Add
// where equal. It ignores the query's AsOf.
func (c *Conversations) Search(q Query) []ConversationHit {
	if len(c.messages) == 0 {
		return nil
	}
	r := rank(&c.index, len(c.messages), q.Vector, len(c.messages), queryTerms(q.Text), nil, &standard)
	defer r.release()
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

// alone scores a message by its own words and meaning.
func (r *ranking) alone(i int) Hit {
	lexical := 1.0
	if r.byMeaning {
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
		if r.byMeaning {
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
	if r.byMeaning {
		h.Cosine = r.topCos[i]
		h.Parts.Dense = float64((1 - lexical) * h.Cosine)
	}
	h.Score = h.Parts.Sum()
	return h
}
