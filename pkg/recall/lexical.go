package recall

import (
	"cmp"
	"slices"
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

// bm25 returns what a term that occurs n times in a passage adds to the passage's score. norm is the norm of the
// passage's length.
func (w *weights) bm25(idf float64, n int32, norm float64) float64 {
	f := float64(n)
	return float64(idf * f * (w.k1 + 1) / (f + norm))
}

// norm returns how the length of a passage scales its scores. The conversions keep the compiler from fusing operations,
// which only some processors do.
func (w *weights) norm(length, mean float64) float64 {
	norm := 1 - w.b + float64(w.b*length)/mean
	return float64(w.k1 * norm)
}

// logs are natural logarithms of numbers of passages.
var logs = func() (list [MaxPassages + 1]float64) {
	for n := 1; n < len(list); n++ {
		list[n] = ln(float64(n))
	}
	return list
}()

// penalty returns what the scores of a message's passages are divided by: at least 1.
func (r *ranking) penalty(i int32) float64 {
	n := int(r.x.firsts[i+1] - r.x.firsts[i])
	return 1 + float64(r.w.length*logs[min(n, MaxPassages)])
}

// lexical computes BM25 over passages. It also lends each message what its neighbors have
// more of a term than it has itself: an answer follows its question, but says little of the
// topic.
func (r *ranking) lexical(terms []string) {
	x, total := r.x, r.passages()
	r.bm25, r.topBM25, r.worded = zeros(r.bm25, total), sized(r.topBM25, r.n), zeros(r.worded, r.n)
	r.maxBM25, r.full = 0, 0
	all, mean := total, float64(x.sums[total])/float64(total)
	if r.among != nil {
		all, mean = r.among.passages, float64(r.among.length)/float64(max(1, r.among.passages))
	}
	t := &r.term
	t.begin(x, r.w, mean, r.n)
	for _, word := range terms {
		id, ok := x.termOf[word]
		if !ok {
			r.full += idfOf(0, all)
			continue
		}
		list := x.postings[id]
		here := holding(list, total)
		df := here
		if r.among != nil {
			df = r.among.holding[word]
		}
		idf := idfOf(df, all)
		r.full += idf
		t.score(r, list[:here], idf)
		t.lend(r)
	}
	first := 0
	for i := range r.topBM25 {
		end, top := int(x.firsts[i+1]), 0.0
		for _, score := range r.bm25[first:end] {
			top = max(top, score)
		}
		if top > 0 {
			top /= r.penalty(int32(i))
			r.maxBM25 = max(r.maxBM25, top)
		}
		r.topBM25[i], first = top, end
	}
	r.full = max(r.maxBM25, float64(r.w.expect*r.full))
}

// holding counts the postings of the first passages.
func holding(list []posting, passages int) int {
	n, _ := slices.BinarySearchFunc(list, int32(passages), func(p posting, n int32) int { return cmp.Compare(p.passage, n) })
	return n
}

// Statistics say how common the words of a query are in some passages. The zero value is of none.
type Statistics struct {
	passages int
	length   int64          // of all of them, in terms
	holding  map[string]int // passages, by term of the query
}

// Count adds the messages of an index that a query may find, only those after a sequence.
func (s *Statistics) Count(x *Index, q Query, after uint64) {
	n, skipped := x.until(q.AsOf), 0
	if after > 0 {
		skipped = x.until(after)
	}
	if skipped >= n {
		return
	}
	if s.holding == nil {
		s.holding = map[string]int{}
	}
	from, to := int(x.firsts[skipped]), int(x.firsts[n])
	s.passages += to - from
	s.length += x.sums[to] - x.sums[from]
	for _, word := range x.terms(&q, n) {
		if id, ok := x.termOf[word]; ok {
			s.holding[word] += holding(x.postings[id], to) - holding(x.postings[id], from)
		}
	}
}

// relative scales a score by the best message's and, where there are vectors, by the share of
// BM25. If even the best one holds little of the query, meaning decides more.
func (r *ranking) relative(bm25 float64) float64 {
	if bm25 == 0 { // as in most messages
		return 0
	}
	if !r.byMeaning {
		return bm25 / r.maxBM25
	}
	return float64(r.w.lexical * (bm25 / r.full))
}

// term holds the scores of one term in the first n messages.
type term struct {
	n      int
	norms  []float64 // by the length of a passage
	scores []float64 // by message, 0 where the term does not occur
	lent   []float64 // by message
	found  []int32   // messages with the term, in order
	near   []int32   // messages that borrow
}

// begin prepares for the terms of a query. Between terms, scores and lent are zero.
func (t *term) begin(x *Index, w *weights, mean float64, n int) {
	t.n = n
	t.norms = zeros(t.norms, int(x.longest)+1)
	for length := range t.norms {
		t.norms[length] = w.norm(float64(length), mean)
	}
	if len(t.scores) < n {
		t.scores, t.lent = zeros(t.scores, n), zeros(t.lent, n)
	}
}

// score adds a term's scores to those of its passages, and notes the best one of each
// message.
func (t *term) score(r *ranking, list []posting, idf float64) {
	x := r.x
	message, top := int32(-1), 0.0
	note := func() {
		if message >= 0 {
			t.found = append(t.found, message)
			t.scores[message] = top / r.penalty(message)
		}
	}
	for _, p := range list {
		passage := &x.passages[p.passage]
		score := r.w.bm25(idf, p.n, t.norms[passage.length])
		r.bm25[p.passage] += score
		if passage.message != message {
			note()
			message, top = passage.message, 0
		}
		top = max(top, score)
	}
	note()
}

// lend gives each neighbor of a message with the term the most that any of them lends it,
// then resets for the next term.
func (t *term) lend(r *ranking) {
	near, nearness := r.x.near, r.w.nearness
	for _, i := range t.found {
		score := t.scores[i]
		for at, d := near[i].before, 0; d < len(nearness) && at >= 0; at, d = near[at].before, d+1 {
			t.offer(at, float64(nearness[d]*(score-t.scores[at])))
		}
		for at, d := near[i].after, 0; d < len(nearness) && at >= 0 && int(at) < t.n; at, d = near[at].after, d+1 {
			t.offer(at, float64(nearness[d]*(score-t.scores[at])))
		}
	}
	for _, j := range t.near {
		r.worded[j] += t.lent[j]
		t.lent[j] = 0
	}
	for _, i := range t.found {
		t.scores[i] = 0
	}
	t.found, t.near = t.found[:0], t.near[:0]
}

// offer offers a message what it can borrow of the term.
func (t *term) offer(j int32, most float64) {
	if most <= t.lent[j] {
		return
	}
	if t.lent[j] == 0 {
		t.near = append(t.near, j)
	}
	t.lent[j] = most
}
