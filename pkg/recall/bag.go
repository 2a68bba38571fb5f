package recall

import (
	"slices"
	"time"
)

// MaxPassages is how many passages of one message are indexed, the first ones: some
// 600,000 characters. What is longer is a file or a dump, found by its beginning.
const MaxPassages = 1024

// Message is what the index reads of a message.
type Message struct {
	Role    string
	Speaker string    // who speaks, where a role has several; "" for none
	Session string    // "" where there are none
	Time    time.Time // its date counts as written, in its own zone; zero for none
	Content string
}

// A Bag is what the index needs of a message: its terms without their order, by
// passage. It is made once and stored with the message, so that an index is loaded
// without texts.
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

// NewBag is the bag of a message. The speaker's name is a term of each passage, so that
// who is asked for is found.
func NewBag(m Message) Bag {
	b := Bag{Role: m.Role, Speaker: m.Speaker, Session: m.Session, Date: DateOf(m.Time)}
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

// counts are the counts of sorted terms, all of which are in the sorted vocabulary.
func counts(vocabulary, terms []string) []Count {
	var counts []Count
	for at, i := 0, 0; i < len(terms); i++ {
		if i > 0 && terms[i] == terms[i-1] {
			counts[len(counts)-1].N++
			continue
		}
		further, _ := slices.BinarySearch(vocabulary[at:], terms[i])
		at += further
		counts = append(counts, Count{Term: at, N: 1})
	}
	return counts
}
