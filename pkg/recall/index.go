package recall

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrOrder comes back from [Index.Add] for a sequence that is not above the last one.
var ErrOrder = errors.New("messages are added in the order of their sequences")

// ErrVectors comes back from [Index.SetVectors] for vectors that do not fit.
var ErrVectors = errors.New("the vectors do not fit the message")

// Index ranks the messages of one conversation. Messages are added in the order of their
// sequences, and a query as of a sequence answers what it would if nothing later had
// been added: all statistics are kept so that they can be taken there.
//
// The zero value is an empty index. Reads may run beside each other, but not beside Add
// and SetVectors.
type Index struct {
	last     uint64
	messages []message
	sessions []session
	speakers []speaker

	sessionOf map[string]int32
	speakerOf map[string]int32

	passages []passage
	sums     []int64 // sums[i]: the lengths of the passages before i, in terms
	termOf   map[string]int32
	postings [][]posting // by term

	width   int // of the vectors, 0 while there are none
	vectors []int8
	norms   []float64 // 0 where a passage has no vector

	bytes int
}

type message struct {
	seq     uint64
	first   int32 // its first passage; the next message's first is its end
	session int32
	place   int32 // in its session
	speaker int32 // -1 for none
	date    Date
	role    role
	penalty float64 // of its number of passages, 1 or more
}

type passage struct {
	message    int32
	start, end int32 // in the content
	length     int32 // in terms
}

type posting struct {
	passage int32
	n       int32
}

type session struct {
	messages []int32
}

type speaker struct {
	name  string
	first int32 // the first message
}

// Last is the sequence of the last message, 0 for none.
func (x *Index) Last() uint64 { return x.last }

// Len is the number of messages that have text.
func (x *Index) Len() int { return len(x.messages) }

// Bytes is about how much memory the index takes.
func (x *Index) Bytes() int { return x.bytes }

// What an element costs, with what slices and maps keep in reserve.
const (
	messageBytes = 56 + 12
	passageBytes = 28 + 8
	postingBytes = 10
	termBytes    = 96
)

// Add appends a message. It fails with [ErrOrder] and changes nothing if seq is not above
// [Index.Last]. A message without text is never found and stands beside no other: it only
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
		x.sums = []int64{0}
	}
	i := int32(len(x.messages))
	s := x.session(b.Session)
	x.messages = append(x.messages, message{
		seq: seq, first: int32(len(x.passages)), session: s, place: int32(len(x.sessions[s].messages)),
		speaker: x.speaker(b.Speaker, i), date: b.Date, role: roles[b.Role],
		penalty: 1 + float64(lengthPenalty*ln(float64(len(b.Passages)))),
	})
	x.sessions[s].messages = append(x.sessions[s].messages, i)
	x.addPassages(i, b)
	x.bytes += messageBytes
	return nil
}

func (x *Index) session(name string) int32 {
	s, ok := x.sessionOf[name]
	if !ok {
		s = int32(len(x.sessions))
		x.sessions = append(x.sessions, session{})
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
	ids := make([]int32, len(b.Terms))
	for t, term := range b.Terms {
		id, ok := x.termOf[term]
		if !ok {
			id = int32(len(x.postings))
			x.termOf[strings.Clone(term)] = id // the bag's strings may be parts of a larger one
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
		x.sums = append(x.sums, x.sums[number]+int64(length))
		x.bytes += passageBytes + len(p.Counts)*postingBytes
	}
}

// SetVectors gives a message the vectors of its passages, in their order; nil stands
// where there is none. They may come in any order, long after the message. It fails with
// [ErrVectors] and changes nothing if there is no such message, if it has another number
// of passages, or if a vector is of another width than those before.
func (x *Index) SetVectors(seq uint64, vectors []Vector) error {
	i, ok := slices.BinarySearchFunc(x.messages, seq, func(m message, seq uint64) int { return cmp.Compare(m.seq, seq) })
	if !ok && len(vectors) == 0 { // it may have no text
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

// span is the range of a message's passages.
func (x *Index) span(i int) (first, end int) {
	first, end = int(x.messages[i].first), len(x.passages)
	if i+1 < len(x.messages) {
		end = int(x.messages[i+1].first)
	}
	return first, end
}

// until is how many messages there were as of a sequence; 0 stands for now.
func (x *Index) until(seq uint64) int {
	if seq == 0 || seq >= x.Last() {
		return len(x.messages)
	}
	n, _ := slices.BinarySearchFunc(x.messages, seq+1, func(m message, seq uint64) int { return cmp.Compare(m.seq, seq) })
	return n
}

// Unembedded are the sequences of messages without vectors, above one and up to another.
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
