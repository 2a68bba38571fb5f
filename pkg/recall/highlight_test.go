package recall

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// lit returns the highlighted words of a text.
func lit(text, query string, prefixes ...string) (words []string) {
	for _, s := range Highlights(text, query, prefixes) {
		words = append(words, text[s.Start:s.End])
	}
	return words
}

func TestHighlightsAreTheWordsOfTheQuery(t *testing.T) {
	require.Equal(t, []string{"parsers", "fail"}, lit("The parsers fail here.", "why does the parser fail"))
	require.Equal(t, []string{"parser_test"}, lit("in pkg/store/parser_test.go", "parser"))
	require.Equal(t, []string{"parseHTTPRequest"}, lit("func parseHTTPRequest() {", "http"))
	require.Equal(t, []string{"configured", "config"}, lit("configured by the config", "nothing", "CONF"))
	require.Equal(t, []string{"日本語"}, lit("私は日本語を読む", "日本語"))
	require.Equal(t, []string{"cafés", "Café"}, lit("Les cafés du Café", "", "cafe"))
	require.Equal(t, []string{"cafés"}, lit("Les cafés du coin", "", "CAFÉ"))
	require.Equal(t, []string{"bar"}, lit("foo-bar", "", "foo-b"))
	require.Equal(t, []string{"1,250.50", "3.14", "1.2.3"}, lit("costs 1,250.50, or 3.14. In 1.2.3", "1250.50 3.14 1.2.3"))
	require.Equal(t, []string{"1", "2", "3", "beta"}, lit("1.2.3-beta", "1.2.3-beta"))
	require.Equal(t, []string{"7", "7"}, lit("5,6,7,8,7", "7"), "a list is no number")
	require.Equal(t, []string{"日本語"}, lit("私は日本語を読む", "", "日本語"))
	require.Equal(t, []string{"ทำงาน"}, lit("กำลังทำงานอยู่", "", "ทำงาน"))
	require.Equal(t, []string{"日abc"}, lit("see 日abc", "abc", "日abc"), "the prefix and the word overlap")
	require.Equal(t, []string{"日12.5"}, lit("see 日12.5", "12.5", "日12"))
	require.Empty(t, lit("the of and", "the of and"))
	require.Empty(t, lit("any text", ""))
}

// Highlights are in order, do not overlap, and a text always contains the words of itself.
func TestHighlightsAreWithinTheText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-cA-C_./ -]|日|本|é){0,40}`)).Draw(r, "text")
		prefixes := rapid.SliceOfN(rapid.StringMatching(`([a-c]|日|本){1,3}`), 0, 2).Draw(r, "prefixes")
		end := 0
		for _, s := range Highlights(text, text, prefixes) {
			if s.Start < end || s.End <= s.Start || s.End > len(text) {
				r.Fatalf("%v in %q", s, text)
			}
			end = s.End
		}
		if len(AppendTerms(nil, text)) > 0 && end == 0 && !strings.ContainsAny(text, ".,/\\-_") {
			r.Fatalf("nothing in %q", text)
		}
	})
}

// Each number of a list is looked at once, however long the list is.
func TestALongListOfNumbersIsHighlightedAtOnce(t *testing.T) {
	t.Parallel()
	for _, list := range []string{strings.Repeat("1,", 1<<17), strings.Repeat("1.", 1<<17), strings.Repeat("1,250", 1<<17)} {
		require.Empty(t, Highlights(list, "lock 2", nil))
	}
	require.Len(t, Highlights(strings.Repeat("1,", 1<<17), "1", nil), 1<<17)
}

// A query with the beginning of a word finds what the whole word finds, and answers as of a sequence
// as it did then.
func TestAPrefixFindsTheWordsThatBeginSo(t *testing.T) {
	var x, then Index
	texts := []string{"The configuration fails.", "Lunch at noon.", "Configured by hand.", "A confluence of rivers."}
	for i, text := range texts {
		bag := NewBag(Message{Role: "user", Content: text})
		require.NoError(t, x.Add(uint64(i+1), bag))
		if i < 2 {
			require.NoError(t, then.Add(uint64(i+1), bag))
		}
	}
	found := func(x *Index, asOf uint64, prefixes ...string) (seqs []uint64) {
		for _, h := range x.Search(Query{Prefixes: prefixes, By: ByWords, AsOf: asOf}) {
			seqs = append(seqs, h.Seq)
		}
		return seqs
	}
	require.ElementsMatch(t, []uint64{1, 3, 4}, found(&x, 0, "conf"))
	require.ElementsMatch(t, []uint64{1, 3}, found(&x, 0, "Configura"), "the stem of a word may be shorter")
	require.Equal(t, []uint64{2}, found(&x, 0, "noo"))
	require.Empty(t, found(&x, 0, ""))
	require.Empty(t, found(&x, 2, "river"))
	require.NoError(t, x.Add(5, NewBag(Message{Role: "user", Content: "Les cafés au bord de l'eau, naïvement."})))
	require.NoError(t, x.Add(6, NewBag(Message{Role: "user", Content: "The semi-conductor in pkg/my-store/read_all.go"})))
	for prefix, seq := range map[string]uint64{"café": 5, "CAFE": 5, "naï": 5, "nai": 5, "semi-cond": 6, "pkg/my-store/re": 6, "_read": 6, "l'ea": 5} {
		require.Equal(t, []uint64{seq}, found(&x, 0, prefix), prefix)
	}
	require.Equal(t, then.Search(Query{Text: "lunch", Prefixes: []string{"conf"}}), x.Search(Query{Text: "lunch", Prefixes: []string{"conf"}, AsOf: 2}))
}

func TestATermOfADamagedBagIsNoWordThatBeginsSo(t *testing.T) {
	var x Index
	require.NoError(t, x.Add(1, Bag{Role: "user", Terms: []string{"conf"}, Passages: []Passage{{Start: 0, End: 4}}}))
	require.Empty(t, x.Search(Query{Prefixes: []string{"conf"}, By: ByWords}))
}
