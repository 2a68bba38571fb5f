package extractive

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"mneme/pkg/recall"
)

// maxSentence is the length from which on a sentence is cut, in characters: a quarter of
// the whole. Only pasted texts have such sentences.
const maxSentence = 300

// sentence is one that a summary may quote.
type sentence struct {
	text    string
	speaker string
	user    bool // the user's own words
	group   int  // the message, or the child, that it stands in
	terms   []string
	named   int     // names of things and numbers in it
	prior   float64 // what its place and its form say of its worth
	taken   bool
}

// newSentence prepares a sentence: on one line, not too long, with the prior 1.
func newSentence(text, speaker string, group int) *sentence {
	text = clip(oneLine(text), maxSentence)
	s := &sentence{text: text, speaker: speaker, group: group, prior: 1}
	s.terms = recall.AppendTerms(nil, text)
	for word := range strings.FieldsSeq(text) {
		if isName(strings.Trim(word, ".,;:!?()[]\"'")) {
			s.named++
		}
	}
	return s
}

// termSet is the set of the terms of some words.
func termSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, term := range recall.AppendTerms(nil, words) {
		set[term] = true
	}
	return set
}

// isName tells whether a word names something or counts: a number, an identifier, a
// file, a capitalised abbreviation with more than one capital.
func isName(word string) bool {
	before := rune(0)
	for i, r := range word {
		switch {
		case unicode.IsDigit(r), r == '_',
			(r == '/' || r == '.') && i > 0 && i < len(word)-1,
			unicode.IsUpper(r) && unicode.IsLower(before):
			return true
		}
		before = r
	}
	return false
}

// whole is a sentence as it is written among others: with a mark at its end.
func (s *sentence) whole() string {
	last, _ := utf8.DecodeLastRuneInString(s.text)
	if unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune(")]\"'%", last) {
		return s.text + "."
	}
	if last == ':' {
		return s.text[:len(s.text)-1] + "."
	}
	return s.text
}

// coverage is what a selection of sentences covers: the objective that is maximised
// (see doc.go).
type coverage struct {
	weights map[string]float64
	covered map[string]bool
}

// newCoverage weighs the terms of all sentences: the more messages speak of a term the
// more it is worth, by the logarithm. What names a thing counts double: that is what is
// asked for later.
func newCoverage(all []*sentence) *coverage {
	c := &coverage{weights: map[string]float64{}, covered: map[string]bool{}}
	last := map[string]int{}
	for _, s := range all {
		for _, term := range s.terms {
			if group, seen := last[term]; !seen || group != s.group {
				last[term] = s.group
				c.weights[term]++
			}
		}
	}
	for term, messages := range c.weights {
		w := math.Log2(1 + messages)
		if strings.ContainsAny(term, "0123456789_./") {
			w *= 2
		}
		c.weights[term] = w
	}
	return c
}

// gain is the weight that a sentence adds to what is covered.
func (c *coverage) gain(s *sentence) float64 {
	sum := 0.0
	for i, term := range s.terms {
		if !c.covered[term] && !within(s.terms[:i], term) {
			sum += c.weights[term]
		}
	}
	return sum
}

func within(terms []string, term string) bool {
	for _, t := range terms {
		if t == term {
			return true
		}
	}
	return false
}

// take marks a sentence and what it covers.
func (c *coverage) take(s *sentence) {
	s.taken = true
	for _, term := range s.terms {
		c.covered[term] = true
	}
}

// lengthPower is how much a sentence's length counts against it. With 1 the shortest
// sentences win, with 0 the longest; between 0.3 and 0.8 little changes.
const lengthPower = 0.5

// best is the sentence that gains most for its length among those that fit into room
// and are wanted; nil if none gains anything. Of equals the first wins.
func (c *coverage) best(all []*sentence, room int, worth func(*sentence) float64) *sentence {
	var found *sentence
	top := 0.0
	for _, s := range all {
		if s.taken {
			continue
		}
		w := worth(s)
		if w <= 0 {
			continue
		}
		n := cost(s)
		if n > room {
			continue
		}
		if score := w * c.gain(s) / math.Pow(float64(n), lengthPower); score > top {
			found, top = s, score
		}
	}
	return found
}

// cost is the room that a sentence takes, its speaker and the space before it included.
// Neighbours share a speaker, so this is the most.
func cost(s *sentence) int {
	n := length(s.whole()) + 1
	if s.speaker != "" {
		n += length(s.speaker) + 2
	}
	return n
}
