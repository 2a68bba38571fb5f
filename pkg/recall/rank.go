package recall

// Rank scores texts, of which it gets what [AppendTerms] gives, by BM25 as an [Index] of
// them would, the best one with 1: each is a passage, and together they are all there is.
func Rank(query string, texts [][]string) []float64 {
	terms := queryTerms(query)
	placeOf := make(map[string]int, len(terms))
	for i, term := range terms {
		placeOf[term] = i
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
