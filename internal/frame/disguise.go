package frame

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// undisguised changes the tag's name where it is written with other characters that look the same, or with invisible ones
// in it: no parser takes it for the tag, but a model may.
func undisguised(text string) string {
	before, after, _ := strings.Cut(word, "-")
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); i++ {
		size := 1
		switch text[i] {
		case '-':
		case 0xe2, 0xef: // the first byte of all other hyphens
			r, n := utf8.DecodeRuneInString(text[i:])
			if size = n; folded(r) != '-' {
				continue
			}
		default:
			continue
		}
		start, ok := begins(text[done:i], before)
		if !ok {
			continue
		}
		end, ok := ends(text[i+size:], after)
		if !ok {
			continue
		}
		b.WriteString(text[done:done+start] + before + " " + after)
		done = i + size + end
		i = done - 1
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// begins returns where a word begins with which a text ends, as a reader sees it.
func begins(text, word string) (at int, ok bool) {
	at = len(text)
	for i := len(word); i > 0; {
		r, n := utf8.DecodeLastRuneInString(text[:at])
		switch {
		case n == 0:
			return 0, false
		case folded(r) == rune(word[i-1]):
			i--
		case !isInvisible(r):
			return 0, false
		}
		at -= n
	}
	return at, true
}

// ends returns where a word ends with which a text begins, as a reader sees it.
func ends(text, word string) (at int, ok bool) {
	for i := 0; i < len(word); {
		r, n := utf8.DecodeRuneInString(text[at:])
		switch {
		case n == 0:
			return 0, false
		case folded(r) == rune(word[i]):
			i++
		case !isInvisible(r):
			return 0, false
		}
		at += n
	}
	return at, true
}

// alike are the letters of other scripts, and the hyphens, that look like those of the tag's name and that Unicode does not
// call compatible with them.
var alike = map[rune]rune{
	'а': 'a', 'е': 'e', 'м': 'm', 'о': 'o', 'п': 'n', 'с': 'c', 'т': 't', 'х': 'x', 'ո': 'n', 'ο': 'o', 'χ': 'x', 'τ': 't', 'ϲ': 'c', 'μ': 'm', 'ν': 'n', 'ε': 'e', 'օ': 'o', 'ᴍ': 'm', 'ɴ': 'n', 'ᴇ': 'e', 'ᴄ': 'c', 'ᴏ': 'o', 'ᴛ': 't',
	'‐': '-', '‑': '-', '‒': '-', '–': '-', '—': '-', '―': '-', '−': '-', '⁃': '-', '﹘': '-',
}

// folded returns the small ASCII letter or the hyphen that a character looks like, or else another character.
func folded(r rune) rune {
	if as, ok := alike[unicode.ToLower(r)]; ok { // before it is decomposed: ϲ would become ς
		return as
	}
	if r >= utf8.RuneSelf {
		if compatible := norm.NFKC.PropertiesString(string(r)).Decomposition(); compatible != nil {
			r, _ = utf8.DecodeRune(compatible) // an accent that follows is invisible enough
		}
	}
	r = unicode.ToLower(r)
	if as, ok := alike[r]; ok {
		return as
	}
	return r
}

// isInvisible reports whether a character takes no place of its own: marks of a direction, joiners, accents, variation
// selectors, and control characters.
func isInvisible(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Other_Default_Ignorable_Code_Point) || r < ' ' && r != '\n' && r != '\t' || r == 0x7f
}
