package recall

import (
	"fmt"
	"math"
	"slices"
)

// Vector is the direction of a text's embedding, one byte per dimension. It is four times
// smaller than floats, and its products are whole numbers, equal on every machine. Its
// length has no meaning.
type Vector []int8

// Quantize returns the vector nearest to v in direction. It returns nil if v is empty, all
// zero, or holds a NaN or an infinity.
func Quantize(v []float32) Vector {
	var most float64
	for _, f := range v {
		a := math.Abs(float64(f))
		if math.IsNaN(a) || math.IsInf(a, 0) {
			return nil
		}
		most = max(most, a)
	}
	if most == 0 {
		return nil
	}
	q := make(Vector, len(v))
	for i, f := range v {
		q[i] = int8(math.RoundToEven(float64(f) / most * 127))
	}
	return q
}

// AppendVector appends a vector as it is stored, one byte per dimension. nil is stored as
// zeros.
func AppendVector(dst []byte, v Vector, dimensions int) []byte {
	for _, x := range v {
		dst = append(dst, byte(x))
	}
	return append(dst, make([]byte, dimensions-len(v))...)
}

// ParseVectors decodes what [AppendVector] appended. It returns [ErrVectors] for a wrong
// length.
func ParseVectors(data []byte, dimensions int) ([]Vector, error) {
	if dimensions <= 0 || len(data)%dimensions != 0 {
		return nil, fmt.Errorf("%d bytes are not vectors of %d dimensions: %w", len(data), dimensions, ErrVectors)
	}
	all := make(Vector, len(data))
	for i, b := range data {
		all[i] = int8(b)
	}
	vectors := make([]Vector, len(data)/dimensions)
	for i := range vectors {
		v := all[i*dimensions : (i+1)*dimensions : (i+1)*dimensions]
		if !slices.ContainsFunc(v, func(x int8) bool { return x != 0 }) {
			continue
		}
		vectors[i] = v
	}
	return vectors, nil
}

// norm returns the vector's length, 0 for nil.
func (v Vector) norm() float64 { return math.Sqrt(float64(dot(v, v))) }

// dot returns the inner product. It does not overflow up to 100,000 dimensions.
func dot(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 { // always equally long; the second test removes bounds checks
		s0 += int32(a[0])*int32(b[0]) + int32(a[4])*int32(b[4])
		s1 += int32(a[1])*int32(b[1]) + int32(a[5])*int32(b[5])
		s2 += int32(a[2])*int32(b[2]) + int32(a[6])*int32(b[6])
		s3 += int32(a[3])*int32(b[3]) + int32(a[7])*int32(b[7])
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += int32(a[i]) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}
