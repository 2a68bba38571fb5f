package recall

import (
	"cmp"
	"slices"
)

const (
	// BM25 parameters. The usual b of 0.75 is for whole documents; passages are of similar
	// length, so length says less.
	bm25K1 = 1.2
	bm25B  = 0.4

	// lengthPenalty is how much less the best passage of a message counts for each e-fold
	// increase in the number of its passages, because one of many is good by chance.
	lengthPenalty = 0.2
)

// queryTerms returns the distinct terms of a query.
func queryTerms(text string) []string {
	terms := AppendTerms(nil, text)
	slices.Sort(terms)
	return slices.Compact(terms)
}

// BM25 as in S. Robertson and H. Zaragoza, The Probabilistic Relevance Framework:
// BM25 and Beyond, 2009, with
//
//	idf(t) = ln(1 + (N − df + 0.5) / (df + 0.5))
//	score  = Σ idf(t) · f · (k1 + 1) / (f + k1 · (1 − b + b · length / mean length))

// idfOf returns the idf of a term that occurs in df passages.
func idfOf(df, passages int) float64 {
	return ln(1 + (float64(passages-df)+0.5)/(float64(df)+0.5))
}

// bm25 returns the score that a term adds which occurs n times in a passage. The
// conversions keep the compiler from fusing operations, which only some processors do.
func bm25(idf float64, n int32, length, mean float64) float64 {
	norm := 1 - bm25B + float64(bm25B*length)/mean
	f := float64(n)
	return float64(idf * f * (bm25K1 + 1) / (f + float64(bm25K1*norm)))
}

// lexical computes BM25 over passages. It also lends each message what its neighbors have
// more of a term than it has itself: an answer follows its question, but says little of the
// topic.
func (r *ranking) lexical(terms []string) {
	x, total := r.x, r.passages()
	r.bm25, r.topBM25 = make([]float64, total), make([]float64, r.n)
	if total == 0 {
		return
	}
	mean := float64(x.sums[total]) / float64(total)
	t := term{ranking: r, scores: make([]float64, r.n), lent: make([]float64, r.n), gained: make([]float64, r.n)}
	for _, word := range terms {
		id, ok := x.termOf[word]
		if !ok {
			continue
		}
		list := x.postings[id]
		df, _ := slices.BinarySearchFunc(list, int32(total), func(p posting, n int32) int { return cmp.Compare(p.passage, n) })
		idf := idfOf(df, total)
		for _, p := range list[:df] {
			score := bm25(idf, p.n, float64(x.passages[p.passage].length), mean)
			r.bm25[p.passage] += score
			t.add(int(x.passages[p.passage].message), score)
		}
		t.lend()
	}
	for i := range r.topBM25 {
		first, end := x.span(i)
		for _, score := range r.bm25[first:end] {
			r.topBM25[i] = max(r.topBM25[i], score/x.messages[i].penalty)
		}
		r.maxBM25 = max(r.maxBM25, r.topBM25[i])
	}
	for i := range r.beside {
		r.beside[i] += r.relative(t.gained[i])
	}
}

// relative scales a score by the best message's and by the share of BM25.
func (r *ranking) relative(bm25 float64) float64 {
	if r.maxBM25 == 0 {
		return 0
	}
	if r.cosines == nil {
		return bm25 / r.maxBM25
	}
	return float64(lexicalShare * (bm25 / r.maxBM25))
}

// term holds the scores of one term in the messages.
type term struct {
	*ranking
	scores []float64 // by message, 0 where the term does not occur
	lent   []float64 // by message
	gained []float64 // by message, the sum over earlier terms
	found  []int     // messages with the term
	near   []int     // messages that borrow
}

// add counts a passage's score for its message.
func (t *term) add(i int, score float64) {
	if t.scores[i] == 0 {
		t.found = append(t.found, i)
	}
	t.scores[i] = max(t.scores[i], score/t.x.messages[i].penalty)
}

// lend gives each neighbor of a message with the term the most that any of them lends it,
// then resets for the next term.
func (t *term) lend() {
	for _, i := range t.found {
		t.around(i, func(j int, nearness float64) {
			if most := float64(nearness * (t.scores[i] - t.scores[j])); most > t.lent[j] {
				if t.lent[j] == 0 {
					t.near = append(t.near, j)
				}
				t.lent[j] = most
			}
		})
	}
	for _, j := range t.near {
		t.gained[j] += t.lent[j]
		t.lent[j] = 0
	}
	for _, i := range t.found {
		t.scores[i] = 0
	}
	t.found, t.near = t.found[:0], t.near[:0]
}
