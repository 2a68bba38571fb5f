package llm

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/summary"
)

func TestACutTextEndsASentence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"Short.", 10, "Short."},
		{"One sentence. Another sentence.", 20, "One sentence."},
		{"It is version 1.2.3 of all. And then more", 30, "It is version 1.2.3 of all."},
		{"One line\nAnother line", 14, "One line"},
		{"一つの文。もう一つの文。", 8, "一つの文。"},
		{"A. is too short an answer to be kept", 30, "A. is too short an answer to…"},
		{strings.Repeat("x", 20), 10, "xxxxxxxxx…"},
	} {
		require.Equal(t, c.want, cut(c.text, c.most))
	}
}

func TestTheTextsOfADraftAreCleaned(t *testing.T) {
	t.Parallel()
	d, err := readDraft(`{"conversation": " a\u0000b\nc ", "actions": " ", "findings": ["", " two\n lines ", "1", "2", "3", "4", "5"], "topics": ["a", "b", "c", "d", "e"]}`, math.MaxInt)
	require.Nil(t, err)
	require.Equal(t, summary.Draft{Conversation: "ab\nc", Findings: []string{"two lines", "1", "2", "3", "4"}, Topics: []string{"a", "b", "c", "d"}}, d)
}

func TestAnyAnswerOfTheModelFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			words := rapid.SliceOfN(rapid.SampledFrom([]string{"word", " ", "Ende. ", "語。", "\n", strings.Repeat("long", 20), "é! ", "\x07"}), 0, 20).Draw(t, "words")
			return strings.Repeat(strings.Join(words, ""), rapid.SampledFrom([]int{0, 1, 10, 100}).Draw(t, "times"))
		})
		written := map[string]any{
			"conversation": "x" + text.Draw(t, "conversation"), "actions": text.Draw(t, "actions"),
			"findings": rapid.SliceOfN(text, 0, 8).Draw(t, "findings"), "topics": rapid.SliceOfN(text, 0, 6).Draw(t, "topics"),
		}
		answer, err := json.Marshal(written)
		require.NoError(t, err)
		d, unusable := readDraft(string(answer), math.MaxInt)
		require.Nil(t, unusable)
		require.LessOrEqual(t, draftSize(d), maxDraft)
		require.NotEmpty(t, d.Conversation)
		require.LessOrEqual(t, len(d.Findings), maxFindings)
		require.LessOrEqual(t, len(d.Topics), maxTopics)
		require.True(t, utf8.ValidString(d.Conversation))
		short := written["conversation"].(string)
		if runes(short) <= minConverse {
			require.Equal(t, clean(short), d.Conversation, "short texts stay")
		}
	})
}
