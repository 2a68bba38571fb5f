package recall

import "github.com/cespare/xxhash/v2"

// HashedTerms are the terms of a text as [Rank] takes them, which is what [AppendTerms]
// gives as hashes: these are small enough to be kept.
func HashedTerms(text string) []uint64 {
	terms := AppendTerms(nil, text)
	hashes := make([]uint64, len(terms))
	for i, term := range terms {
		hashes[i] = xxhash.Sum64String(term)
	}
	return hashes
}

// Rank scores texts, of which it gets the [HashedTerms], by BM25 as an [Index] of
// them would, the best one with 1: each is a passage, and together they are all there is.
func Rank(query string, texts [][]uint64) []float64 {
	terms := queryTerms(query)
	placeOf := make(map[uint64]int, len(terms))
	for i, term := range terms {
		placeOf[xxhash.Sum64String(term)] = i
	}
	postings := make([][]posting, len(terms))
	total := 0
	counts, found := make([]int32, len(terms)), []int(nil) // of a text
	for i, text := range texts {
		total += len(text)
		for _, word := range text {
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

	scores, best := make([]float64, len(texts)), 0.0
	mean := float64(total) / float64(len(texts))
	for _, list := range postings {
		idf := idfOf(len(list), len(texts))
		for _, p := range list {
			scores[p.passage] += bm25(idf, p.n, float64(len(texts[p.passage])), mean)
		}
	}
	for _, score := range scores {
		best = max(best, score)
	}
	for i := range scores {
		if best > 0 {
			scores[i] /= best
		}
	}
	return scores
}
