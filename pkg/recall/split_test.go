package recall

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestSentences(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"marks and newlines end sentences":    {"It works. Does it? Yes!\nNext line", []string{"It works.", "Does it?", "Yes!", "Next line"}},
		"abbreviations and initials do not":   {"Ask Dr. Smith, e.g. Tuesday. J. Doe came.", []string{"Ask Dr. Smith, e.g. Tuesday.", "J. Doe came."}},
		"the number of an item stays with it": {"1. First thing. 2. Second thing.", []string{"1. First thing.", "2. Second thing."}},
		"a number at the end ends it":         {"There were 12. Then 3.", []string{"There were 12.", "Then 3."}},
		"names and versions are whole":        {"Edit main.go in v1.2. Then go.", []string{"Edit main.go in v1.2.", "Then go."}},
		"marks inside a word end nothing":     {"Open http://x/?Q=1 if a!=b.", []string{"Open http://x/?Q=1 if a!=b."}},
		"a quotation keeps its mark":          {`He said "Stop." Then he left.`, []string{`He said "Stop."`, "Then he left."}},
		"Japanese needs no space":             {"東京です。大阪です。", []string{"東京です。", "大阪です。"}},
		"empty lines and spaces give none":    {" \n\n\t\n", nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, slices.Collect(Sentences(c.text))) })
	}
}

func TestPassagesPackSentences(t *testing.T) {
	sentence := strings.Repeat("word ", 39) + "end. " // 200 characters
	got := Passages(strings.Repeat(sentence, 7))
	assert.Len(t, got, 3)
	assert.Equal(t, strings.TrimSpace(strings.Repeat(sentence, 3)), got[0])
}

func TestLongSentenceIsCutBetweenWords(t *testing.T) {
	for i, p := range Passages(strings.Repeat("wörter ", 400)) {
		assert.True(t, strings.HasPrefix(p, "wörter") && strings.HasSuffix(p, "wörter"), "passage %d: %q", i, p)
	}
	encoded := strings.Repeat("x", 1_500)
	assert.Equal(t, []string{encoded[:600], encoded[600:1_200], encoded[1_200:]}, Passages(encoded))
}

// whole fails the test unless the passages of a text are short and contain all of it.
func whole(t testing.TB, text string) {
	t.Helper()
	var all strings.Builder
	for _, p := range Passages(text) {
		if n := utf8.RuneCountInString(p); n == 0 || n > MaxPassage {
			t.Fatalf("%d characters: %q", n, p)
		}
		all.WriteString(p)
	}
	if solid(all.String()) != solid(text) {
		t.Fatalf("%q became %q", text, all.String())
	}
}

// solid returns a text without its white space.
func solid(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if !unicode.IsSpace(r) {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

func TestPassagesLoseNothing(t *testing.T) {
	piece := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[A-Z][a-zé ]{0,300}[.!?。] ?\n?`),
		rapid.Map(rapid.IntRange(0, 1_500), func(n int) string { return strings.Repeat("長", n) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		var joined string
		for _, p := range Passages(text) {
			if n := utf8.RuneCountInString(p); n == 0 || n > MaxPassage {
				t.Fatalf("%d characters", n)
			}
			joined += p
		}
		if solid(joined) != solid(text) {
			t.Fatalf("lost text of %q", text)
		}
	})
}

func FuzzPassages(f *testing.F) {
	for _, text := range []string{"", "a. b", "1. A", strings.Repeat("ab cd. ", 300), strings.Repeat("\u0301", 700), "\xff\n\xf0\x9f", "Dr. X?y! 。"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		whole(t, text)
		var all strings.Builder
		for s := range Sentences(text) {
			all.WriteString(s)
		}
		if solid(all.String()) != solid(text) {
			t.Fatalf("%q became %q", text, all.String())
		}
	})
}

func BenchmarkPassages(b *testing.B) {
	text := recorded(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Passages(text)
	}
}
