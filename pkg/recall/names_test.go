package recall

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestNamesAreRemovedFromAQuery(t *testing.T) {
	x := &Index{}
	for i, speaker := range []string{"Caroline", "Jo", "Caroline", "Dr. Ying Yu", "", "Zoë"} {
		assert.NoError(t, x.Add(uint64(i+1), NewBag(Message{Speaker: speaker, Content: "words"})))
	}
	for query, want := range map[string]string{
		"When did Caroline go?":                "When did go?",
		"What is Caroline's plan?":             "What is plan?",
		"Caroline’s plan":                      "plan",
		"Carolines and Joanna and Jo":          "Carolines and Joanna and",
		"What does Dr. Ying Yu ask Jo and Zoë": "What does ask and",
		"Jo's'":                                "'",
		"Jo'sx":                                "'sx",
		"caroline \n Jo":                       "caroline",
		"":                                     "",
	} {
		assert.Equal(t, want, x.Unnamed(query, 0), query)
	}
	assert.Equal(t, "Jo", x.Unnamed("Jo Caroline", 1), "someone who has not spoken yet is unknown")
}

func FuzzCutName(f *testing.F) {
	for _, c := range [][2]string{{"Jo's and Jo", "Jo"}, {"’s", "’"}, {"aa", "a"}, {"\xff\xff", "\xff"}, {"é", "e"}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		rest, found := cutName(text, name)
		if !found && rest != text || found && (!strings.Contains(text, name) || len(rest)+len(name) > len(text)) {
			t.Fatalf("%q", rest)
		}
		if utf8.ValidString(text) && utf8.ValidString(name) && !utf8.ValidString(rest) {
			t.Fatalf("%q is not UTF-8", rest)
		}
	})
}
