package recall

import (
	"slices"
	"time"
)

// MaxPassages is how many passages of a message are indexed, from its beginning: about
// 600,000 characters. A longer message is a file or a dump, and is found by its beginning.
const MaxPassages = 1024

// Message is the part of a message that the index uses.
type Message struct {
	Role    string
	Speaker string    // the speaker's name, where a role has several; "" for none
	Session string    // "" where there are none
	Time    time.Time // its date in its own time zone counts; zero for none
	Content string
}

// A Bag holds what the index needs from a message: the terms of each passage without their
// order. It is made once and stored with the message, so an index is loaded without texts.
type Bag struct {
	Role     string
	Speaker  string
	Session  string
	Date     Date
	Terms    []string // of all passages, each once, sorted
	Passages []Passage
}

// Passage is a piece of one message, the unit of ranking: the bytes from Start to End of
// its content.
type Passage struct {
	Start, End int
	Counts     []Count
}

// Count is how often a term occurs in a passage, 1 or more.
type Count struct {
	Term int // the place of the term in [Bag.Terms]
	N    int
}

// NewBag makes the bag of a message. The speaker's name is a term of each passage, so that
// a query that names the speaker finds it.
func NewBag(m Message) Bag {
	b := Bag{Role: m.Role, Speaker: m.Speaker, Session: m.Session, Date: dateOf(m.Time)}
	speaker := AppendTerms(nil, m.Speaker)
	var terms [][]string // of each passage, sorted, with repetitions
	for start, end := range passages(m.Content) {
		if len(terms) == MaxPassages {
			break
		}
		of := AppendTerms(slices.Clone(speaker), m.Content[start:end])
		slices.Sort(of)
		terms = append(terms, of)
		b.Passages = append(b.Passages, Passage{Start: start, End: end})
		b.Terms = append(b.Terms, of...)
	}
	slices.Sort(b.Terms)
	b.Terms = slices.Clip(slices.Compact(b.Terms))
	for i, of := range terms {
		b.Passages[i].Counts = counts(b.Terms, of)
	}
	return b
}

// counts counts sorted terms, all of which are in the sorted vocabulary.
func counts(vocabulary, terms []string) []Count {
	var counts []Count
	at := -1
	for i, term := range terms {
		if i > 0 && term == terms[i-1] {
			counts[len(counts)-1].N++
			continue
		}
		if at++; vocabulary[at] != term { // the next one, unless other passages have terms in between
			further, _ := slices.BinarySearch(vocabulary[at:], term)
			at += further
		}
		counts = append(counts, Count{Term: at, N: 1})
	}
	return counts
}
