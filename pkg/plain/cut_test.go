package plain

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestCharactersAreCodePoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(strange, rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		n := rapid.IntRange(0, 100).Draw(t, "n")
		all := []rune(text)
		assert.Equal(t, len(all), Length(text))
		assert.Equal(t, string(all[max(0, len(all)-n):]), string([]rune(Suffix(text, n))))
	})
}
