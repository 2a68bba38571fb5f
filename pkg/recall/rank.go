package recall

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Text is what [Rank] needs from a text: small enough to cache.
type Text struct {
	Terms  []uint64 // hashes of its terms, see [AppendTerms]
	Vector Vector   // its embedding, or nil
}

// NewText prepares a text without its vector.
func NewText(text string) Text {
	terms := AppendTerms(nil, text)
	t := Text{Terms: make([]uint64, len(terms))}
	for i, term := range terms {
		t.Terms[i] = xxhash.Sum64String(term)
	}
	return t
}

// Rank scores texts like an [Index] whose only passages are these texts. If the query or all texts lack a vector, only
// words count and byMeaning is false.
func Rank(query Text, texts []Text) (scores []Parts, byMeaning bool) {
	scores = make([]Parts, len(texts))
	cosines := rankDense(query.Vector, texts)
	words, best, full := rankLexical(query.Terms, texts)
	byMeaning = cosines != nil
	if byMeaning {
		full = max(best, full) / standard.agree.of(words, cosines, best)
	}
	for i, score := range words {
		if byMeaning {
			scores[i].Dense = float64(standard.dense() * cosines[i])
		}
		switch {
		case score == 0:
		case byMeaning:
			scores[i].Lexical = float64(standard.lexical * (score / full))
		default:
			scores[i].Lexical = score / best
		}
	}
	return scores, byMeaning
}

// rankDense returns the cosines, or nil if there are no vectors to compare. A text without a
// vector counts as the average.
func rankDense(query Vector, texts []Text) (cosines []float64) {
	norm, known, sum := query.norm(), 0, 0.0
	cosines = make([]float64, len(texts))
	for i := range texts {
		if v := texts[i].Vector; norm > 0 && len(v) == len(query) {
			cosines[i] = float64(dot(query, v)) / float64(norm*v.norm())
			sum += cosines[i]
			known++
		}
	}
	if known == 0 {
		return nil
	}
	for i := range texts {
		if len(texts[i].Vector) != len(query) {
			cosines[i] = sum / float64(known)
		}
		cosines[i] = max(0, cosines[i])
	}
	return cosines
}

// rankLexical returns the BM25 scores, the best of them, and the one that counts in full where
// there are vectors.
func rankLexical(query []uint64, texts []Text) (scores []float64, best, full float64) {
	terms := slices.Clone(query)
	slices.Sort(terms)
	terms = slices.Compact(terms)
	placeOf := make(map[uint64]int, len(terms))
	var may [1 << 10]uint64 // bit set of term hashes: quickly rejects most words of a text
	for i, term := range terms {
		placeOf[term] = i
		may[term>>6%uint64(len(may))] |= 1 << (term & 63)
	}
	postings := make([][]posting, len(terms))
	total := 0
	counts, found := make([]int32, len(terms)), []int(nil) // of the current text
	for i, text := range texts {
		total += len(text.Terms)
		for _, word := range text.Terms {
			if may[word>>6%uint64(len(may))]&(1<<(word&63)) == 0 {
				continue
			}
			if place, ok := placeOf[word]; ok {
				if counts[place]++; counts[place] == 1 {
					found = append(found, place)
				}
			}
		}
		for _, place := range found {
			postings[place] = append(postings[place], posting{int32(i), counts[place]})
			counts[place] = 0
		}
		found = found[:0]
	}

	scores = make([]float64, len(texts))
	mean := float64(total) / float64(len(texts))
	for _, list := range postings {
		idf := idfOf(len(list), len(texts))
		full += idf
		for _, p := range list {
			scores[p.passage] += standard.bm25(idf, p.n, standard.norm(float64(len(texts[p.passage].Terms)), mean))
		}
	}
	for _, score := range scores {
		best = max(best, score)
	}
	return scores, best, float64(standard.expect * full)
}
