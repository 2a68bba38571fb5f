package project

import (
	"math"
	"strings"

	"mneme.dev/mneme/pkg/recall"
)

// BM25 as package recall has it for passages: the texts are short, so their length counts little.
const (
	k1 = 0.6
	b  = 0.3
)

// QueryTerms returns the distinct terms of a query.
func QueryTerms(text string) (list []string) {
	known := map[string]bool{}
	for _, term := range recall.AppendTerms(nil, text) {
		if !known[term] && len(list) < maxQuery {
			known[term] = true
			list = append(list, term)
		}
	}
	return list
}

// maxQuery is how many terms of a query count.
const maxQuery = 64

// fit scores texts, each given by its distinct terms, by the terms of a query. The best has 1, or all have 0.
func fit(query []string, texts []string) []float64 {
	scores := make([]float64, len(texts))
	if len(query) == 0 {
		return scores
	}
	wanted := map[string]int{}
	for i, term := range query {
		wanted[term] = i
	}
	counts := make([]int, len(query))
	has := make([][]int, len(texts))
	lengths, total := make([]int, len(texts)), 0
	for i, text := range texts {
		for term := range strings.FieldsSeq(text) {
			lengths[i]++
			if at, ok := wanted[term]; ok {
				has[i] = append(has[i], at)
				counts[at]++
			}
		}
		total += lengths[i]
	}
	best := 0.0
	average := math.Max(1, float64(total)/math.Max(1, float64(len(texts))))
	for i := range texts {
		norm := (k1 + 1) / (1 + k1*(1-b+b*float64(lengths[i])/average))
		for _, at := range has[i] {
			n := float64(counts[at])
			scores[i] += math.Log(1+(float64(len(texts))-n+0.5)/(n+0.5)) * norm
		}
		best = math.Max(best, scores[i])
	}
	if best > 0 {
		for i := range scores {
			scores[i] /= best
		}
	}
	return scores
}
