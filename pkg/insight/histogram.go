package insight

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Histogram counts values in buckets whose width is at most a sixteenth of their values, so a quantile is wrong by at
// most 1/32. Up to 31 it is exact. It has no settings, uses integers alone, and two can be added: equal values make
// equal histograms on every machine and in every order. It is sorted by bucket.
type Histogram []bin

type bin struct {
	bucket int
	n      int64
}

// fine is how many bits after the highest one select a bucket.
const fine = 4

// Add counts a value; one below 0 counts as 0.
func (h *Histogram) Add(v int64) { h.put(bin{bucket(v), 1}, 0) }

// Merge adds another histogram.
func (h *Histogram) Merge(other Histogram) {
	if *h == nil && len(other) > 0 {
		*h = slices.Clone(other)
		return
	}
	at := 0
	for _, b := range other {
		at = h.put(b, at)
	}
}

// put adds to a bucket, which is not before the position from. It returns the bucket's position.
func (h *Histogram) put(b bin, from int) int {
	at, found := slices.BinarySearchFunc((*h)[from:], b, func(x, y bin) int { return cmp.Compare(x.bucket, y.bucket) })
	if at += from; found {
		(*h)[at].n += b.n
	} else {
		*h = slices.Insert(*h, at, b)
	}
	return at
}

// tally adds up many histograms: it has a place for each bucket up to the last.
type tally []int64

func (t *tally) add(h Histogram) {
	if len(h) == 0 {
		return
	}
	t.reach(h[len(h)-1].bucket)
	for _, b := range h {
		(*t)[b.bucket] += b.n
	}
}

func (t *tally) merge(o tally) {
	t.reach(len(o) - 1)
	for b, n := range o {
		(*t)[b] += n
	}
}

// reach makes a place for a bucket.
func (t *tally) reach(bucket int) {
	if more := bucket + 1 - len(*t); more > 0 {
		*t = append(*t, make([]int64, more)...)
	}
}

// histogram returns the sum.
func (t tally) histogram() Histogram {
	buckets := 0
	for _, n := range t {
		if n > 0 {
			buckets++
		}
	}
	h := make(Histogram, 0, buckets)
	for b, n := range t {
		if n > 0 {
			h = append(h, bin{b, n})
		}
	}
	return h
}

// Count returns how many values were added.
func (h Histogram) Count() (n int64) {
	for _, b := range h {
		n += b.n
	}
	return n
}

// Quantile returns the value that a share of the values does not exceed, 0 of none. Half is the median.
func (h Histogram) Quantile(share float64) int64 {
	rank := int64(share*float64(h.Count()-1)) + 1
	for _, b := range h {
		if rank -= b.n; rank <= 0 {
			return middle(b.bucket)
		}
	}
	return 0
}

func bucket(v int64) int {
	v = max(v, 0)
	if v < 2<<fine {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - fine - 1
	return shift<<fine + int(v>>shift)
}

// middle returns the value in the middle of a bucket.
func middle(b int) int64 {
	if b < 2<<fine {
		return int64(b)
	}
	shift := b>>fine - 1
	low := int64(b-shift<<fine) << shift
	return low + int64(1)<<shift/2
}

// Total returns the sum of the values.
func (h Histogram) Total() (sum int64) {
	for _, b := range h {
		sum += middle(b.bucket) * b.n
	}
	return sum
}

// MarshalJSONTo writes an object of the buckets, as of a map: its names are sorted as texts.
func (h Histogram) MarshalJSONTo(e *jsontext.Encoder) error {
	type named struct {
		name string
		n    int64
	}
	list := make([]named, len(h))
	for i, b := range h {
		list[i] = named{strconv.Itoa(b.bucket), b.n}
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	text := make([]byte, 0, 12*len(h)+2)
	for i, b := range list {
		text = append(text, "{,"[min(i, 1)], '"')
		text = append(append(text, b.name...), '"', ':')
		text = strconv.AppendInt(text, b.n, 10)
	}
	if len(list) == 0 {
		text = append(text, '{')
	}
	return e.WriteValue(append(text, '}'))
}

// errHistogram means that a stored histogram is not what MarshalJSONTo writes.
var errHistogram = errors.New("not a histogram")

// UnmarshalJSONFrom reads what MarshalJSONTo writes.
func (h *Histogram) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if raw.Kind() != '{' {
		return errHistogram
	}
	*h = nil
	var numbers [2]int64 // the bucket and its count
	which, digits := 0, 0
	for _, c := range raw[1:] {
		switch {
		case c >= '0' && c <= '9':
			numbers[which] = numbers[which]*10 + int64(c-'0')
			digits++
		case c == '"' || c == ' ':
		case c == ':' && which == 0 && digits > 0:
			which, digits = 1, 0
		case (c == ',' || c == '}') && which == 1 && digits > 0:
			*h = append(*h, bin{int(numbers[0]), numbers[1]})
			numbers, which, digits = [2]int64{}, 0, 0
		case c == '}' && len(*h) == 0:
		default:
			return errHistogram
		}
	}
	slices.SortFunc(*h, func(a, b bin) int { return cmp.Compare(a.bucket, b.bucket) })
	return nil
}
