package static

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sum(t *testing.T, data any) string {
	hash := sha256.New()
	require.NoError(t, binary.Write(hash, binary.LittleEndian, data))
	return hex.EncodeToString(hash.Sum(nil))
}

// If you change the table or the vocabulary, change [Model] and these sums too.
func TestModelNamesThisTable(t *testing.T) {
	assert.Equal(t, "mneme-static-128-v2", Model)
	assert.Equal(t, "f9f67cc1a43b8a64642a719e9155cc9714738d3df95377987a1aaaca749ed68d", sum(t, []byte(tableBytes)))
	assert.Equal(t, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3", sum(t, []byte(vocabulary)))

	rows, width := binary.LittleEndian.Uint32([]byte(tableBytes)), binary.LittleEndian.Uint32([]byte(tableBytes[4:]))
	assert.EqualValues(t, Dimensions, width)
	assert.EqualValues(t, len(tableBytes), 8+rows*(4+width))
	assert.Len(t, loaded().pieces.starts, int(rows)-len(loaded().pieces.continues))
}

// Embeddings must have the same bits on every machine.
func TestEmbeddingsAreBitExact(t *testing.T) {
	var all []float32
	for _, text := range read[[]string](t, "testdata/texts.json") {
		all = append(all, Embed(text)...)
	}
	assert.Equal(t, "cd1f386ee6ad01606382548456e941b0f0a3e5cd9ad68464167ba6bb426130d6", sum(t, all))
}

func cosine(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestTextsOfSimilarMeaningAreCloser(t *testing.T) {
	for _, c := range [][3]string{
		{"The doctor was late.", "My physician arrived after the appointment.", "The bread was stale."},
		{"fix the crash at startup", "the program panics when it is launched", "plant roses in spring"},
		{"When is the wedding?", "They are getting married in June.", "The engine needs oil."},
	} {
		text, near, far := Embed(c[0]), Embed(c[1]), Embed(c[2])
		assert.Greater(t, cosine(text, near), cosine(text, far)+0.1, c)
	}
}

func TestEmbeddingHasLengthOne(t *testing.T) {
	for _, text := range []string{"a", "some words", "東京"} {
		v := Embed(text)
		assert.Len(t, v, Dimensions)
		assert.InDelta(t, 1, math.Sqrt(cosine(v, v)), 1e-6)
	}
}

func TestTextWithoutKnownPiecesHasNoEmbedding(t *testing.T) {
	for _, text := range []string{"", " \n", "\xff\xfe", "🎉🎉", "\u0007"} {
		assert.Nil(t, Embed(text), "%q", text)
	}
}

func TestEmbeddingsAreTheSameInParallel(t *testing.T) {
	want := Embed("the quick brown fox")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				assert.Equal(t, want, Embed("the quick brown fox"))
			}
		})
	}
	wg.Wait()
}

func BenchmarkEmbed(b *testing.B) {
	const text = "I'm working on a project with scheduled two-week sprints, and the first sprint ends on March 29, " +
		"focusing on user registration and login. I need to plan the sprint carefully to ensure we meet the deadline."
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Embed(text)
	}
}
