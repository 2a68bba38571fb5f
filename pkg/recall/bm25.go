package recall

import (
	"math"
	"slices"
)

// The constants of BM25, chosen by measurement on recorded conversations. The usual
// k1 = 1.2 and b = 0.75 are for whole documents; a passage is short and of even length,
// so a repetition and its length say less.
const (
	K1 = 0.9
	B  = 0.4
)

// Index ranks the passages of one conversation by BM25 (S. Robertson and H. Zaragoza,
// The Probabilistic Relevance Framework: BM25 and Beyond, 2009), with
//
//	idf(t) = ln(1 + (N − df + 0.5) / (df + 0.5))
//	score  = Σ idf(t) · f · (K1 + 1) / (f + K1 · (1 − B + B · length / mean length))
//
// over the terms of the query, each once; f is how often the passage has the term.
//
// The zero value is an empty index. Reads may run beside each other, but not beside Add.
type Index struct {
	postings map[string][]posting
	lengths  []int // of passages, in terms
	sums     []int // sums[i]: the lengths of the passages before i
}

type posting struct {
	passage int
	n       int
}

// Add appends a passage and returns its number: 0, 1, 2, …
func (x *Index) Add(b Bag) int {
	if x.postings == nil {
		x.postings = map[string][]posting{}
		x.sums = []int{0}
	}
	p, length := len(x.lengths), b.Len()
	for _, c := range b {
		x.postings[c.Term] = append(x.postings[c.Term], posting{p, c.N})
	}
	x.lengths = append(x.lengths, length)
	x.sums = append(x.sums, x.sums[p]+length)
	return p
}

// Len is the number of passages.
func (x *Index) Len() int { return len(x.lengths) }

// Scores sets dst to the scores of the first n passages, as if the index held no more,
// and returns it; 0 where no term of the query occurs. So a past ranking is repeated
// over a newer index. An n above Len counts as Len.
func (x *Index) Scores(dst []float64, query Bag, n int) []float64 {
	n = max(0, min(n, x.Len()))
	dst = append(dst[:0], make([]float64, n)...)
	if n == 0 || x.sums[n] == 0 {
		return dst
	}
	mean := float64(x.sums[n]) / float64(n)
	for _, c := range query {
		list := x.postings[c.Term]
		df, _ := slices.BinarySearchFunc(list, n, func(p posting, n int) int { return p.passage - n })
		idf := math.Log(1 + (float64(n-df)+0.5)/(float64(df)+0.5))
		for _, p := range list[:df] {
			// The conversions keep the compiler from fusing, which some processors do and some not.
			norm := 1 - B + float64(B*float64(x.lengths[p.passage]))/mean
			f := float64(p.n)
			dst[p.passage] += float64(idf * f * (K1 + 1) / (f + float64(K1*norm)))
		}
	}
	return dst
}
