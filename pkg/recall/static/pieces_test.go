package static

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func read[T any](t *testing.T, path string) (v T) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &v))
	return v
}

// piecesOf returns the numbers of the pieces of a text.
func piecesOf(text string) []int { return append([]int(nil), loaded().pieces.of(text)...) }

// The numbers in testdata/pieces.json come from the model's own tokenizer. Its number for
// words that can't be split into pieces is left out here.
func TestPiecesMatchTheModels(t *testing.T) {
	const unknown = 100
	texts, want := read[[]string](t, "testdata/texts.json"), read[[][]int](t, "testdata/pieces.json")
	require.Len(t, want, len(texts))
	for i, text := range texts {
		var known []int
		for _, piece := range want[i] {
			if piece != unknown {
				known = append(known, piece)
			}
		}
		assert.Equal(t, known, piecesOf(text), text)
	}
}

func FuzzPieces(f *testing.F) {
	for _, text := range []string{"", "a##b", "\xff\xfe", "é\u0301", strings.Repeat("x", 200), "東京", "İ", "\xf6ā"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := piecesOf(text)
		again := append(piecesOf(text+" "), piecesOf(" "+text)...)
		assert.Equal(t, append(found, found...), again, "white space around a text does not matter")
	})
}
