package recall

import (
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"mneme.dev/mneme/internal/testdata"
)

func TestTerms(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"words are stemmed, stop words left out":        {"The cats were running", []string{"cat", "run"}},
		"contractions of stop words leave nothing":      {"I'm sure we've seen it; didn’t you?", []string{"sure", "seen"}},
		"a possessive is its noun":                      {"Caroline's", []string{"carolin"}},
		"an identifier is split at case and kept whole": {"parseHTTPRequest", []string{"parsehttprequest", "pars", "http", "request"}},
		"an identifier is split at underscores":         {"read_all_v2", []string{"read_all_v2", "read", "v2"}},
		"underscores around an identifier do not count": {"__init__", []string{"init", "init"}},
		"capitals and an s are a plural":                {"two PRs, getURLs", []string{"two", "pr", "geturls", "get", "url"}},
		"a path is kept whole, its last element too":    {"pkg/read_all.go", []string{"pkg/read_all.go", "read_all.go", "pkg", "read_all", "read", "go"}},
		"a file name":            {"see main.go.", []string{"see", "main.go", "main", "go"}},
		"hyphens separate words": {"well-known", []string{"well", "known"}},
		"numbers keep their point, not their separators": {"1,250.5 or 3.14", []string{"1250.5", "3.14"}},
		"a comma not between thousands":                  {"1,25", []string{"1", "25"}},
		"accents on Latin letters are taken off":         {"Café CAFÉ cafe\u0301", []string{"cafe", "cafe", "cafe"}},
		"marks of other scripts stay":                    {"हिन्दी", []string{"हिन्दी"}},
		"compatible forms are one":                       {"ﬁne ＡＢＣ", []string{"fine", "abc"}},
		"Chinese is indexed by pairs":                    {"東京都 京", []string{"東京", "京都", "京"}},
		"a long vowel belongs to its word":               {"エラー", []string{"エラ", "ラー"}},
		"a mark apart from its kana":                     {"か\u3099く", []string{"がく"}},
		"Thai is indexed by pairs, marks included":       {"ข้อมูล ปี ๒๕๖๗", []string{"ข้อ", "อมู", "มูล", "ปี", "๒๕๖๗"}},
		"overlong terms are left out":                    {strings.Repeat("ab3", 50) + " tail", []string{"tail"}},
		"invalid bytes separate words":                   {"alpha\xffbeta", []string{"alpha", "beta"}},
		"marks alone give no terms":                      {"… -- // __ ''", nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, AppendTerms(nil, c.text)) })
	}
}

// The cache is shared and lossy, so results must not depend on earlier callers.
func TestTermsDoNotDependOnTheCache(t *testing.T) {
	texts := make([]string, 8)
	for i := range texts {
		var b strings.Builder
		for j := range 20_000 { // more words than cache slots
			b.WriteString(strings.Repeat(string(rune('a'+j%26)), 1+j%5))
			b.WriteByte(byte('a' + i))
			b.WriteString(string(rune('a'+j/26%26)) + string(rune('a'+j/676%26)) + "ing ")
		}
		texts[i] = b.String()
	}
	want := make([][]string, len(texts))
	for i, text := range texts {
		want[i] = AppendTerms(nil, text)
	}
	var wg sync.WaitGroup
	for i, text := range texts {
		wg.Go(func() { assert.Equal(t, want[i], AppendTerms(nil, text)) })
	}
	wg.Wait()
}

// A query finds a name by any word that people remember of it.
func TestEachWordOfANameFindsIt(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{3,8}`)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 2, 4).Draw(t, "words")
		var camel string
		for _, w := range words {
			camel += strings.ToUpper(w[:1]) + w[1:]
		}
		for _, name := range []string{camel, strings.Join(words, "_"), strings.Join(words, "/") + ".go", strings.Join(words, "-")} {
			terms := AppendTerms(nil, name)
			for _, w := range words {
				assert.Subset(t, terms, AppendTerms(nil, w), name)
			}
		}
	})
}

func FuzzTerms(f *testing.F) {
	for _, text := range []string{"", "a", "parseHTTPRequest a/b_c.go 1,000.5", "東京", "é\u0301\u0301", "'s_s's", "\xff\xfe_A", "A\u0300bC", "''''aed", "_.-/,\\", "İSTANBUL ǅ", "ข้อa่", "か\u3099ー"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms := AppendTerms(nil, text)
		for _, term := range terms {
			// Lower-casing and folding may make a letter up to three times longer.
			if term == "" || len(term) > 3*maxTerm || !utf8.ValidString(term) || strings.ContainsAny(term, " \n\t") {
				t.Fatalf("term %q", term)
			}
		}
		assert.Equal(t, terms, AppendTerms(nil, text))
	})
}

// recorded returns text of recorded agents: messages and results.
func recorded(t testing.TB) string {
	var b strings.Builder
	for e := range testdata.Events(t, "claude_code") {
		b.WriteString(e.Content)
		b.WriteString(e.Text())
		b.WriteByte('\n')
		if b.Len() > 8<<20 {
			break
		}
	}
	return b.String()
}

func BenchmarkTerms(b *testing.B) {
	text := recorded(b)
	var terms []string
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		terms = AppendTerms(terms[:0], text)
	}
}
