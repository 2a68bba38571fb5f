package recall

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
)

// MaxPassage is the length of the longest passage, in Unicode code points. Retrieval worked
// best with passages of a few sentences.
const MaxPassage = 600

// Sentences returns the sentences of a text in order, without surrounding space. A newline
// also ends a sentence.
//
// The boundaries are those of Unicode Standard Annex 29, except that a sentence does not
// end inside "a?b" or after a common abbreviation, an initial or the number of a list item.
func Sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for start, end := range pieces(text) {
			if s := strings.TrimSpace(text[start:end]); s != "" && !yield(s) {
				return
			}
		}
	}
}

// Passages returns the pieces of a text that are ranked: consecutive sentences packed up to
// [MaxPassage]. A longer sentence is cut at the end of a word, if there is one in the last
// half of what fits. Passages are unchanged pieces of the text with only white space
// between them.
func Passages(text string) []string {
	var out []string
	for start, end := range passages(text) {
		out = append(out, text[start:end])
	}
	return out
}

// passages yields the byte ranges of the passages.
func passages(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		start, end, chars := 0, 0, 0 // of the current passage
		flush := func() bool {
			from := end - len(strings.TrimLeftFunc(text[start:end], unicode.IsSpace))
			s := strings.TrimSpace(text[start:end])
			return s == "" || yield(from, from+len(s))
		}
		for from, to := range pieces(text) {
			n := utf8.RuneCountInString(text[from:to])
			if chars+n > MaxPassage {
				if !flush() {
					return
				}
				start, chars = from, 0
			}
			for n > MaxPassage {
				end = start + cut(text[start:to])
				if !flush() {
					return
				}
				n -= utf8.RuneCountInString(text[start:end])
				start = end
			}
			end = to
			chars += n
		}
		flush()
	}
}

// cut returns where to cut a text of more than MaxPassage characters.
func cut(text string) int {
	count, half, space := 0, 0, 0
	for i, r := range text {
		if count == MaxPassage/2 {
			half = i
		}
		if unicode.IsSpace(r) {
			space = i
		}
		if count == MaxPassage {
			if space > half && half > 0 {
				return space
			}
			return i
		}
		count++
	}
	return len(text)
}

// pieces yields the ranges of a text's sentences, trailing space included. Together they
// cover the text.
func pieces(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		start := 0
		for it := sentences.FromString(text); it.Next(); {
			if end := it.End(); ends(text[start:end]) {
				if !yield(start, end) {
					return
				}
				start = end
			}
		}
		if start < len(text) {
			yield(start, len(text))
		}
	}
}

// abbreviations rarely end a sentence; they are listed as written before the period.
var abbreviations = map[string]bool{
	"e.g": true, "i.e": true, "eg": true, "ie": true, "cf": true, "vs": true, "approx": true, "incl": true, "resp": true,
	"mr": true, "mrs": true, "ms": true, "dr": true, "prof": true, "st": true, "fig": true, "sec": true,
}

// ends reports whether what the library calls a sentence really ends one.
func ends(piece string) bool {
	last, _ := utf8.DecodeLastRuneInString(piece)
	if last == '\n' || last == '\r' || last == '\u2028' || last == '\u2029' || last == '\u0085' {
		return true
	}
	body := strings.TrimRightFunc(piece, unicode.IsSpace)
	if len(body) == len(piece) {
		return last >= utf8.RuneSelf // 。 needs no space after it
	}
	word, pointed := strings.CutSuffix(body, ".")
	if !pointed {
		return true
	}
	word = word[strings.LastIndexFunc(word, unicode.IsSpace)+1:]
	word = strings.TrimLeft(word, "(\"'[")
	if len(word) == 1 && asciiClass[word[0]&0x7f] == upper && word != "I" || abbreviations[strings.ToLower(word)] {
		return false
	}
	return !isNumber(word) || strings.TrimSpace(body) != word+"."
}
