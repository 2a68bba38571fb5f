package extractive

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mneme.dev/mneme/pkg/recall"
)

// maxSentence limits the length of a sentence, in characters, to a quarter of a draft. Only
// pasted texts have longer ones.
const maxSentence = 300

// sentence is a candidate for quotation.
type sentence struct {
	text    string
	speaker string
	user    bool // the user's own words
	group   int  // number of its message or child
	terms   []string
	named   int     // number of names and numbers in it
	prior   float64 // its value by position and form
	taken   bool
}

// newSentence prepares a sentence: one line, not too long, prior 1.
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

// termSet returns the set of the terms of some words.
func termSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, term := range recall.AppendTerms(nil, words) {
		set[term] = true
	}
	return set
}

// isName reports whether a word names or counts something: a number, an identifier, a file,
// a word with a capital inside.
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

// whole returns the sentence with a closing mark.
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

// coverage says which terms are covered, to compute the objective that is maximized, see doc.go.
type coverage struct {
	weights map[string]float64
	covered map[string]bool
}

// newCoverage weighs the terms of all sentences by the logarithm of the number of messages
// that use them. Terms that name a thing count double because people ask for them later.
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

// gain returns the weight that a sentence would add.
func (c *coverage) gain(s *sentence) float64 {
	sum := 0.0
	for i, term := range s.terms {
		if !c.covered[term] && !slices.Contains(s.terms[:i], term) {
			sum += c.weights[term]
		}
	}
	return sum
}

// take takes a sentence and marks its terms as covered.
func (c *coverage) take(s *sentence) {
	s.taken = true
	for _, term := range s.terms {
		c.covered[term] = true
	}
}

// lengthPower is how much length counts against a sentence. With 1 the shortest sentences
// win, with 0 the longest; between 0.3 and 0.8 little changes.
const lengthPower = 0.5

// best returns the sentence with the most gain for its length among those that fit into
// room and have a positive worth. If several have the same gain, it returns the first. It
// returns nil if none gains anything.
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

// cost returns the most space that a sentence can take, including its speaker and a space.
// Adjacent sentences share a speaker.
func cost(s *sentence) int {
	n := length(s.whole()) + 1
	if s.speaker != "" {
		n += length(s.speaker) + 2
	}
	return n
}
