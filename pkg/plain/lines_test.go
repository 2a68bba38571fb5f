package plain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestEveryLineEndBecomesLFAndOtherControlCharactersGo(t *testing.T) {
	for text, want := range map[string]string{
		"a\r\nb\rc\nd":                   "a\nb\nc\nd",
		"a\u0085b\u2028c\u2029d":         "a\nb\nc\nd",
		"a\vb\fc\x1cd\x1de\x1ef":         "a\nb\nc\nd\ne\nf",
		"a\x00b\bc\x1fd\x7fe\u009bf":     "abcdef",
		"a\tb":                           "a\tb",
		"\x1b[1;31mred\x1b[0m\x1b]0;t\a": "red]0;t",
		"é日本🎉 \u00a0\u2027\u202a":        "é日本🎉 \u00a0\u2027\u202a",
	} {
		assert.Equal(t, want, Lines(text), "%q", text)
	}
	assert.Equal(t, `a\n**User**: b`, Line("a\u2028**User**: b"))
}

// strange is text full of the characters that Lines looks for.
var strange = rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("ab \t\n\r\v\f\x1b\x1c\x1d\x1e\x1f\x7f\u0080\u0085\u009b\u00a0\u2027\u2028\u2029é日🎉[m")), rapid.Rune()))

func TestATextIsSettledIfNothingInItChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strange.Draw(t, "text")
		got := Lines(text)
		assert.Equal(t, got == text, settled(text), "%q", text)
		assert.True(t, settled(got), "%q", got)
		assert.LessOrEqual(t, Length(got), Length(text))
		assert.False(t, strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && endsLine(r) }), "%q", got)
	})
}

func TestArgumentsKeepTheirValueOnOneLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := strange.Draw(t, "value")
		raw, err := json.Marshal(value)
		assert.NoError(t, err)
		// json.Marshal escapes some characters that JSON allows unescaped
		text := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(string(raw))
		if strings.Contains(text, `\\`) {
			text = string(raw)
		}
		got := JSON(text)
		assert.Equal(t, got, Lines(got))
		assert.NotContains(t, got, "\n")
		var read string
		assert.NoError(t, json.Unmarshal([]byte(got), &read))
		assert.Equal(t, value, read)
	})
}
