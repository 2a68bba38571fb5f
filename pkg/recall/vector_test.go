package recall

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestQuantizedVectorKeepsItsDirection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		value := rapid.SliceOfN(rapid.Float32Range(-1e6, 1e6), n, n)
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		qa, qb := Quantize(a), Quantize(b)
		if qa == nil || qb == nil {
			return
		}
		var ab, aa, bb float64
		for i := range a {
			ab += float64(a[i]) * float64(b[i])
			aa += float64(a[i]) * float64(a[i])
			bb += float64(b[i]) * float64(b[i])
		}
		// Rounding errs by half a step in each dimension, relative to a length of at least 127.
		allowed := 2 * math.Sqrt(float64(n)) / 2 / 127 * 1.01
		assert.InDelta(t, ab/math.Sqrt(aa*bb), float64(dot(qa, qb))/(qa.norm()*qb.norm()), allowed)
	})
}

func TestNoDirectionMeansNoVector(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range [][]float32{nil, {}, {0, 0}, {1, inf}, {nan}} {
		assert.Nil(t, Quantize(v))
	}
	assert.Equal(t, Vector{127, -127, 0, 64}, Quantize([]float32{1e-30, -1e-30, 0, 0.5e-30}))
}

func TestVectorsThatDoNotFitAreRefused(t *testing.T) {
	x := indexOf(t, "one", "two", "")
	assert.ErrorIs(t, x.SetVectors(4, []Vector{{1}}), ErrVectors)
	assert.ErrorIs(t, x.SetVectors(1, nil), ErrVectors)
	assert.ErrorIs(t, x.SetVectors(3, []Vector{{1}}), ErrVectors)
	require.NoError(t, x.SetVectors(1, []Vector{nil}))
	require.NoError(t, x.SetVectors(2, []Vector{{1, 2}}))
	assert.ErrorIs(t, x.SetVectors(1, []Vector{{1}}), ErrVectors)
	require.NoError(t, x.SetVectors(3, []Vector{}))

	hits := x.Search(Query{Vector: Vector{2, 4}})
	require.NotEmpty(t, hits)
	assert.InDelta(t, 1, hits[0].Cosine, 1e-15)
	assert.Empty(t, x.Search(Query{Vector: Vector{1}}), "a query of another width ranks without vectors")
}

// Vectors may come late and in any order.
func TestOrderOfVectorsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var at, late Index
		vectors := map[uint64][]Vector{}
		var order []uint64
		for i, m := range drawMessages(t) {
			seq, bag := uint64(i+1), NewBag(m)
			vectors[seq] = drawVectors(t, bag)
			require.NoError(t, at.Add(seq, bag))
			require.NoError(t, at.SetVectors(seq, vectors[seq]))
			require.NoError(t, late.Add(seq, bag))
			order = append(order, seq)
		}
		for _, seq := range rapid.Permutation(order).Draw(t, "order") {
			require.NoError(t, late.SetVectors(seq, vectors[seq]))
		}
		query := Query{Text: "a fox", Vector: Vector{7, 7, -7}}
		assert.Equal(t, at.Search(query), late.Search(query))
	})
}

func TestLogarithm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-300, 1e300).Draw(t, "x")
		assert.InEpsilon(t, math.Log(x)+1e3, ln(x)+1e3, 1e-14)
		near := rapid.Float64Range(1, 3).Draw(t, "near")
		assert.InDelta(t, math.Log(near), ln(near), 1e-15)
	})
	assert.Zero(t, ln(1))
}
