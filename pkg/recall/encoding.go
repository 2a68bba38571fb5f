package recall

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// BagVersion is the version of the bag encoding and of the way bags are made.
const BagVersion = 1

// ErrBag is returned by [ParseBag] for anything that is not a bag of this version.
var ErrBag = errors.New("not a bag of version " + string('0'+rune(BagVersion)))

var _ encoding.BinaryAppender = Bag{}

// AppendBinary appends the encoding of the bag; the error is always nil. Numbers are
// unsigned varints as in encoding/binary, in the shortest form; a string is its length and
// its bytes.
//
//	version    one byte
//	role, speaker, session  strings
//	date       year · 512 + month · 32 + day, 0 for none
//	terms      their number; then each as a string, in ascending order
//	passages   their number; then for each
//	  start    distance from the end of the one before, in bytes of the content
//	  length   in bytes
//	  counts   their number; then for each
//	    term   twice the number of terms between it and the one before, + 1 if it occurs more than once
//	    n      how often it occurs, − 2; absent if it occurs once
func (b Bag) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, BagVersion)
	for _, s := range []string{b.Role, b.Speaker, b.Session} {
		dst = appendString(dst, s)
	}
	dst = appendInt(dst, int(b.Date.Year)<<9|int(b.Date.Month)<<5|int(b.Date.Day))
	dst = appendInt(dst, len(b.Terms))
	for _, term := range b.Terms {
		dst = appendString(dst, term)
	}
	dst = appendInt(dst, len(b.Passages))
	end := 0
	for _, p := range b.Passages {
		dst = appendInt(dst, p.Start-end)
		dst = appendInt(dst, p.End-p.Start)
		end = p.End
		dst = appendInt(dst, len(p.Counts))
		before := -1
		for _, c := range p.Counts {
			between := c.Term - before - 1
			before = c.Term
			if c.N == 1 {
				dst = appendInt(dst, between<<1)
			} else {
				dst = appendInt(appendInt(dst, between<<1|1), c.N-2)
			}
		}
	}
	return dst, nil
}

func appendInt(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)) }

func appendString(dst []byte, s string) []byte { return append(appendInt(dst, len(s)), s...) }

// ParseBag decodes the output of [Bag.AppendBinary]. It returns [ErrBag] for anything else:
// then the bag must be made again from the message.
func ParseBag(data []byte) (Bag, error) {
	r := bagReader{rest: string(data)}
	b := r.bag()
	switch {
	case r.failed != "":
		return Bag{}, fmt.Errorf("%w: bad %s at byte %d", ErrBag, r.failed, len(data)-len(r.rest))
	case r.rest != "":
		return Bag{}, fmt.Errorf("%w: %d bytes too many", ErrBag, len(r.rest))
	}
	return b, nil
}

// bagReader decodes a bag from a string, which the bag's strings then share. After a
// failure it reads zeros.
type bagReader struct {
	rest   string
	failed string // what could not be read, "" so far
}

func (r *bagReader) fail(what string) {
	if r.failed == "" {
		r.failed = what
	}
}

func (r *bagReader) bag() Bag {
	if r.rest == "" || r.rest[0] != BagVersion {
		r.fail("version")
		return Bag{}
	}
	r.rest = r.rest[1:]
	b := Bag{Role: r.string("role"), Speaker: r.string("speaker"), Session: r.string("session")}
	date := r.int("date", math.MaxInt16<<9|0x1ff)
	b.Date = Date{int16(date >> 9), int16(date >> 5 & 0xf), int16(date & 0x1f)}
	if n := r.int("number of terms", len(r.rest)/2); n > 0 { // a term takes at least two bytes
		b.Terms = make([]string, n)
	}
	for i := range b.Terms {
		b.Terms[i] = r.string("term")
		if b.Terms[i] == "" || i > 0 && b.Terms[i] <= b.Terms[i-1] {
			r.fail("order of terms")
			return b
		}
	}
	if n := r.int("number of passages", min(MaxPassages, len(r.rest)/3)); n > 0 {
		b.Passages = make([]Passage, n)
	}
	end := 0
	for i := range b.Passages {
		p := &b.Passages[i]
		p.Start = end + r.int("start", math.MaxInt32-end)
		p.End = p.Start + r.int("length", math.MaxInt32-p.Start)
		end = p.End
		p.Counts = r.counts(len(b.Terms))
	}
	return b
}

func (r *bagReader) counts(terms int) []Count {
	n := r.int("number of counts", min(terms, len(r.rest)))
	if n == 0 {
		return nil
	}
	counts := make([]Count, n)
	before := -1
	for i := range counts {
		term := r.int("term of a count", 2*(terms-before-1)-1)
		before += term>>1 + 1
		counts[i] = Count{Term: before, N: 1}
		if term&1 == 1 {
			counts[i].N = 2 + r.int("count", math.MaxInt32-2)
		}
	}
	return counts
}

// int reads a number from 0 to most, both included.
func (r *bagReader) int(what string, most int) int {
	var n uint64
	for i := 0; i < len(r.rest) && i < 5; i++ {
		c := r.rest[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if c == 0 && i > 0 || most < 0 || n > uint64(most) {
				break
			}
			r.rest = r.rest[i+1:]
			return int(n)
		}
	}
	r.fail(what)
	return 0
}

func (r *bagReader) string(what string) string {
	n := r.int(what, len(r.rest))
	if n > len(r.rest) { // the length itself took some of the bytes
		r.fail(what)
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}
