package window

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
)

// Whatever a text is and whichever part of it was found, it is shown in the room that there is.
func TestShortenedTextsFitIntoTheirRoom(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"word ", "\n", "é日本🎉", "error: it broke ", "\n\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxx", "\t", "\r\n", "日本"})
	rapid.Check(t, func(r *rapid.T) {
		text := ""
		for _, s := range rapid.SliceOfN(word, 0, 60).Draw(r, "words") {
			text += s
		}
		places := []int{len(text)}
		for i := range text {
			places = append(places, i)
		}
		start, end := rapid.SampledFrom(places).Draw(r, "start"), rapid.SampledFrom(places).Draw(r, "end")
		room, body := rapid.IntRange(20, 600).Draw(r, "room"), graph.NewBody(text)
		for name, shown := range map[string]string{
			"excerpt": excerptOf(body, min(start, end), max(start, end), room), "cut": cut(body, room, 123),
		} {
			require.Truef(r, utf8.ValidString(shown), "%s: %q", name, shown)
			require.LessOrEqualf(r, textCost(shown), room, "%s: %q", name, shown)
		}
		require.LessOrEqual(r, plain.Length(condense(body, room, 123_456)), room)
	})
}
