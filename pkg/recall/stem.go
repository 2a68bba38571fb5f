package recall

import (
	"unicode"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"

	"mneme.dev/mneme/internal/memo"
)

// form says how letters become a term.
type form byte

const (
	asIs form = iota // a name: as written, in lower case
	stem             // a word: its stem, or nothing for a stop word
)

// Most of a text is the same few thousand words, and stemming a word costs twenty times its look-up. Together the memos
// take about 2 MB when they are full.
var (
	names = memo.New(1<<13, fold)
	stems = memo.New(1<<14, func(letters string) string { return stemmed(fold(letters)) })
)

// termOf returns the term that lower-case letters make, "" for none.
func termOf(letters []byte, f form) string {
	if f == stem {
		return stems.Of(letters)
	}
	return names.Of(letters)
}

// remnants are what contractions of stop words leave after an apostrophe: I'm, we're,
// you'll, didn't. The "won" of "won't" is not listed because it is also a word.
var remnants = map[string]bool{
	"m": true, "re": true, "ve": true, "ll": true, "d": true, "ain": true, "aren": true, "couldn": true, "didn": true,
	"doesn": true, "hadn": true, "hasn": true, "haven": true, "isn": true, "shouldn": true, "wasn": true, "weren": true, "wouldn": true,
}

// stemmed returns a word's stem, "" for a stop word.
func stemmed(word string) string {
	if english.IsStopWord(word) || remnants[word] {
		return ""
	}
	return english.Stem(word, true)
}

// fold removes accents from Latin letters and replaces compatible forms (ligatures, full
// width) with plain ones. Marks of other scripts carry meaning and stay.
func fold(word string) string {
	if ascii(word) {
		return word
	}
	out := make([]rune, 0, len(word))
	latin := false
	for _, r := range norm.NFKD.String(word) {
		if unicode.Is(unicode.Mn, r) && latin || unicode.IsSpace(r) { // some marks are combined with a space
			continue
		}
		latin = unicode.Is(unicode.Latin, r)
		out = append(out, unicode.ToLower(r))
	}
	return norm.NFC.String(string(out))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
