package recall

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrOrder is returned by [Index.Add] for a sequence that is not above the last one.
var ErrOrder = errors.New("messages must be added in the order of their sequences")

// ErrVectors is returned by [Index.SetVectors] for vectors that do not fit.
var ErrVectors = errors.New("the vectors do not fit the message")

// Index ranks the messages of one conversation. Messages are added in the order of their
// sequences. A query as of a sequence gives the result that it would if nothing later had
// been added, because all statistics can be computed for that point.
//
// The zero value is an empty index. Concurrent reads are safe, but not concurrently with
// Add or SetVectors.
type Index struct {
	last     uint64
	messages []message
	near     []links // by message
	firsts   []int32 // by message, its first passage; then the number of passages
	newest   []int32 // by session, its last message
	speakers []speaker

	sessionOf map[string]int32
	speakerOf map[string]int32

	passages []passage
	longest  int32   // the greatest length of a passage, in terms
	sums     []int64 // sums[i] is the total length of the passages before i, in terms
	termOf   map[string]int32
	postings [][]posting // by term

	width   int // of the vectors, 0 if there are none
	vectors []int8
	norms   []float64 // 0 where a passage has no vector

	ids   []int32 // of the terms of the message being added
	bytes int
}

type message struct {
	seq     uint64
	session int32
	speaker int32 // -1 for none
	date    Date
	role    role
}

// links are the messages before and after one in its session, -1 for none.
type links struct{ before, after int32 }

type passage struct {
	message    int32
	start, end int32 // in the content
	length     int32 // in terms
}

type posting struct {
	passage int32
	n       int32
}

type speaker struct {
	name  string
	first int32 // first message by this speaker
}

// Last returns the sequence of the last message, 0 for none.
func (x *Index) Last() uint64 { return x.last }

// Len returns the number of messages that have text.
func (x *Index) Len() int { return len(x.messages) }

// Bytes returns the approximate memory of the index.
func (x *Index) Bytes() int { return x.bytes }

// Approximate cost of one element in bytes, including the spare capacity of slices and
// maps.
const (
	messageBytes = (24 + 8 + 4) * 5 / 4
	passageBytes = 28 + 8
	postingBytes = 10
	termBytes    = 96
)

// TermBytes is about what a term of a bag adds to [Index.Bytes] besides its text, unless the index
// has it already.
const TermBytes = termBytes

// BagBytes returns about what a bag adds to [Index.Bytes] besides new terms.
func BagBytes(b *Bag) int {
	n := messageBytes
	for i := range b.Passages {
		n += passageBytes + len(b.Passages[i].Counts)*postingBytes
	}
	return n
}

// Add appends a message. If seq is not above [Index.Last], it returns [ErrOrder] and
// changes nothing. A message without text is never found and is nobody's neighbor; it only
// moves Last.
func (x *Index) Add(seq uint64, b Bag) error {
	if last := x.Last(); seq <= last {
		return fmt.Errorf("sequence %d after %d: %w", seq, last, ErrOrder)
	}
	x.last = seq
	if len(b.Passages) == 0 {
		return nil
	}
	if x.termOf == nil {
		x.termOf, x.sessionOf, x.speakerOf = map[string]int32{}, map[string]int32{}, map[string]int32{}
		x.sums, x.firsts = []int64{0}, []int32{0}
	}
	i := int32(len(x.messages))
	s := x.session(b.Session)
	before := x.newest[s]
	if x.newest[s] = i; before >= 0 {
		x.near[before].after = i
	}
	x.near = append(x.near, links{before: before, after: -1})
	x.messages = append(x.messages, message{seq: seq, session: s, speaker: x.speaker(b.Speaker, i), date: b.Date, role: roles[b.Role]})
	x.addPassages(i, b)
	x.firsts = append(x.firsts, int32(len(x.passages)))
	x.bytes += messageBytes
	return nil
}

func (x *Index) session(name string) int32 {
	s, ok := x.sessionOf[name]
	if !ok {
		s = int32(len(x.newest))
		x.newest = append(x.newest, -1)
		x.sessionOf[strings.Clone(name)] = s
		x.bytes += len(name) + termBytes
	}
	return s
}

func (x *Index) speaker(name string, i int32) int32 {
	if name == "" {
		return -1
	}
	s, ok := x.speakerOf[name]
	if !ok {
		s = int32(len(x.speakers))
		name = strings.Clone(name)
		x.speakers = append(x.speakers, speaker{name, i})
		x.speakerOf[name] = s
		x.bytes += len(name) + termBytes
	}
	return s
}

func (x *Index) addPassages(i int32, b Bag) {
	ids := slices.Grow(x.ids[:0], len(b.Terms))[:len(b.Terms)]
	x.ids = ids
	for t, term := range b.Terms {
		id, ok := x.termOf[term]
		if !ok {
			id = int32(len(x.postings))
			x.termOf[strings.Clone(term)] = id // the bag's strings may be parts of a larger string
			x.postings = append(x.postings, nil)
			x.bytes += len(term) + termBytes
		}
		ids[t] = id
	}
	for _, p := range b.Passages {
		number, length := int32(len(x.passages)), 0
		for _, c := range p.Counts {
			id := ids[c.Term]
			x.postings[id] = append(x.postings[id], posting{number, int32(c.N)})
			length += c.N
		}
		x.passages = append(x.passages, passage{i, int32(p.Start), int32(p.End), int32(length)})
		x.longest = max(x.longest, int32(length))
		x.sums = append(x.sums, x.sums[number]+int64(length))
		x.bytes += passageBytes + len(p.Counts)*postingBytes
	}
}

// SetVectors sets the vectors of a message's passages, in order; nil means that a passage
// has none. Vectors may come in any order of messages and at any time. SetVectors returns
// [ErrVectors] and changes nothing if there is no such message, if the number of passages
// differs, or if a vector's width differs from earlier ones.
func (x *Index) SetVectors(seq uint64, vectors []Vector) error {
	i, ok := slices.BinarySearchFunc(x.messages, seq, func(m message, seq uint64) int { return cmp.Compare(m.seq, seq) })
	if !ok && len(vectors) == 0 { // the message may have no text
		return nil
	}
	if !ok {
		return fmt.Errorf("no message with text has sequence %d: %w", seq, ErrVectors)
	}
	first, end := x.span(i)
	if len(vectors) != end-first {
		return fmt.Errorf("%d vectors for %d passages of sequence %d: %w", len(vectors), end-first, seq, ErrVectors)
	}
	width, some := x.width, false
	for _, v := range vectors {
		if v == nil {
			continue
		}
		if width == 0 {
			width = len(v)
		}
		if len(v) != width {
			return fmt.Errorf("a vector of %d dimensions among those of %d: %w", len(v), width, ErrVectors)
		}
		some = true
	}
	if !some {
		return nil
	}
	x.width = width
	if grow := len(x.passages) - len(x.norms); grow > 0 {
		x.vectors = append(x.vectors, make([]int8, grow*width)...)
		x.norms = append(x.norms, make([]float64, grow)...)
		x.bytes += grow * (width + 8) * 9 / 8
	}
	for j, v := range vectors {
		copy(x.vectors[(first+j)*width:(first+j+1)*width], v)
		x.norms[first+j] = v.norm()
	}
	return nil
}

// span returns the range of a message's passages.
func (x *Index) span(i int) (first, end int) { return int(x.firsts[i]), int(x.firsts[i+1]) }

// until returns how many messages there were as of a sequence; 0 means now.
func (x *Index) until(seq uint64) int {
	if seq == 0 || seq >= x.Last() {
		return len(x.messages)
	}
	n, _ := slices.BinarySearchFunc(x.messages, seq+1, func(m message, seq uint64) int { return cmp.Compare(m.seq, seq) })
	return n
}

// Unembedded returns the sequences s, above < s ≤ upTo, of messages without vectors.
func (x *Index) Unembedded(above, upTo uint64) (list []uint64) {
	first := 0
	if above > 0 {
		first = x.until(above)
	}
next:
	for i := first; i < len(x.messages) && x.messages[i].seq <= upTo; i++ {
		from, end := x.span(i)
		for p := from; p < min(end, len(x.norms)); p++ {
			if x.norms[p] != 0 {
				continue next
			}
		}
		list = append(list, x.messages[i].seq)
	}
	return list
}
