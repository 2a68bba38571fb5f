package recall

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func indexOf(texts ...string) *Index {
	x := &Index{}
	for _, text := range texts {
		x.Add(BagOf(text))
	}
	return x
}

func TestScoresAreThoseOfTheFormula(t *testing.T) {
	x := indexOf("red apple apple", "green apple tree", "blue sky over green hills")
	got := x.Scores(nil, BagOf("green apples, apples"), x.Len())

	mean := (3.0 + 3 + 4) / 3 // "over" is a stop word
	idf := func(df float64) float64 { return math.Log(1 + (3-df+0.5)/(df+0.5)) }
	part := func(f, length float64) float64 { return f * 1.9 / (f + 0.9*(0.6+0.4*length/mean)) }
	assert.InDelta(t, idf(2)*part(2, 3), got[0], 1e-12)
	assert.InDelta(t, idf(2)*part(1, 3)+idf(2)*part(1, 3), got[1], 1e-12)
	assert.InDelta(t, idf(2)*part(1, 4), got[2], 1e-12)
}

func TestNothingAskedOrNothingFoundScoresNothing(t *testing.T) {
	x := indexOf("some words", "")
	assert.Equal(t, []float64{0, 0}, x.Scores(nil, BagOf("other"), 2))
	assert.Equal(t, []float64{0, 0}, x.Scores(nil, nil, 9))
	assert.Empty(t, (&Index{}).Scores(nil, BagOf("word"), 1))
	assert.Equal(t, []float64{0}, indexOf("the").Scores(nil, BagOf("word"), 1))
}

// What is added later changes nothing of a ranking as of an earlier position.
func TestAPastRankingIsRepeated(t *testing.T) {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"ant", "bee", "cow", "dog", "elk", "fox"}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		passages := rapid.SliceOfN(words, 1, 12).Draw(t, "passages")
		n := rapid.IntRange(1, len(passages)).Draw(t, "n")
		var past, all Index
		for i, p := range passages {
			bag := BagOf(strings.Join(p, " "))
			if i < n {
				past.Add(bag)
			}
			all.Add(bag)
		}
		query := BagOf("fox bee cow")
		assert.Equal(t, past.Scores(nil, query, n), all.Scores([]float64{7}, query, n))
	})
}
