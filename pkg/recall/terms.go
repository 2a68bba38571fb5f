package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTerm is the longest term in bytes: enough for a long path or a SHA-512 in hex. Nobody
// types longer ones; they are mostly encoded data.
const maxTerm = 128

// AppendTerms appends the terms of a text to dst, in order and with repetitions. It never
// fails: invalid UTF-8 separates words.
func AppendTerms(dst []string, text string) []string {
	t := termer{terms: dst}
	for i := 0; i < len(text); {
		k, size := classAt(text, i)
		switch {
		case k == other:
			i += size
		case k == pair:
			i = t.pairs(text, i)
		default:
			i = t.name(text, i)
		}
	}
	return t.terms
}

// Classes of characters.
type class byte

const (
	other class = iota
	lower
	upper
	digit
	pair // a character of a script without spaces between words, with its marks
)

var asciiClass = func() (table [utf8.RuneSelf]class) {
	for c := range table {
		switch {
		case c >= 'a' && c <= 'z':
			table[c] = lower
		case c >= 'A' && c <= 'Z':
			table[c] = upper
		case c >= '0' && c <= '9':
			table[c] = digit
		}
	}
	return table
}()

// unspaced are the scripts without spaces between words, and firstUnspaced is before all of them.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

const firstUnspaced = '\u0e00'

// Unspaced reports whether a character is of a script without spaces between words, such as Chinese or Thai.
func Unspaced(r rune) bool {
	switch {
	case r < firstUnspaced:
		return false
	case r == 'ー', r == 'ｰ': // long vowels in Katakana, which no script claims
		return true
	}
	return unicode.In(r, unspaced...) && !unicode.IsDigit(r) && !unicode.IsPunct(r)
}

// marksAt returns the length of the marks at i, vowels and tones that belong to the character before them. No script has
// more than a few at once.
func marksAt(s string, i int) (length int) {
	const most = 8
	for n := 0; n < most && i+length < len(s) && s[i+length] >= utf8.RuneSelf; n++ {
		r, size := utf8.DecodeRuneInString(s[i+length:])
		if !unicode.IsMark(r) {
			break
		}
		length += size
	}
	return length
}

// classAt returns the class of the character at i and its length in bytes.
func classAt(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	switch {
	case r == utf8.RuneError && size == 1:
		return other, size
	case Unspaced(r):
		return pair, size + marksAt(s, i+size)
	case unicode.IsUpper(r), unicode.IsTitle(r):
		return upper, size
	case unicode.IsLetter(r), unicode.IsMark(r):
		return lower, size
	case unicode.IsNumber(r):
		return digit, size
	}
	return other, size
}

// isWord reports whether the character at i belongs to a word.
func isWord(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	k, _ := classAt(s, i)
	return k == lower || k == upper || k == digit
}

func isDigit(s string, i int) bool { return i >= 0 && i < len(s) && asciiDigit(s[i]) }

func asciiDigit(c byte) bool { return c >= '0' && c <= '9' }

// termer collects the terms of one text.
type termer struct {
	terms   []string
	letters []byte // of the current term, in lower case
}

// add adds the term that s gives, if any.
func (t *termer) add(s string, f form) {
	if len(s) > maxTerm {
		return
	}
	if f == stem && isPlural(s) {
		s = s[:len(s)-1] // the stemmer keeps the s of words without a vowel
	}
	t.letters = appendLower(t.letters[:0], s)
	if term := termOf(t.letters, f); term != "" {
		t.terms = append(t.terms, term)
	}
}

func appendLower(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			return append(dst[:len(dst)-i], strings.ToLower(s)...)
		}
		if asciiClass[c] == upper {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// pairs adds each pair of adjacent characters in the run that begins at i, or the character
// itself if it is alone. It returns the end of the run.
func (t *termer) pairs(text string, i int) int {
	start, before := i, -1
	for i < len(text) {
		k, size := classAt(text, i)
		if k != pair {
			break
		}
		if before >= 0 {
			t.add(text[before:i+size], stem)
		}
		before = i
		i += size
	}
	if before == start {
		t.add(text[start:i], stem)
	}
	return i
}

func nextClass(s string, i int) (class, int) {
	if i >= len(s) {
		return other, 0
	}
	return classAt(s, i)
}

// name adds the terms of the name that begins at i and returns its end. A name is words
// joined by single characters other than spaces.
func (t *termer) name(text string, i int) int {
	start := i
	var joined, slashed, cased, parted bool // joined by . or a slash; by a slash; contains an identifier; is more than one
	last := other
	for i < len(text) {
		k, size := classAt(text, i)
		if k == other || k == pair {
			if !joins(text, start, i) {
				break
			}
			switch text[i] {
			case '.':
				joined = true
			case '/', '\\':
				joined, slashed = true, true
			case '_':
				cased = true
			}
			parted = parted || text[i] != '_'
		}
		cased = cased || k == upper && last != other && last != upper || k == lower && last == upper && i-start > 1
		last = k
		i += size
	}
	name := text[start:i]
	switch {
	case isNumber(name):
		t.add(strings.ReplaceAll(name, ",", ""), asIs)
		return i
	case joined:
		t.add(name, asIs)
		if base := name[strings.LastIndexAny(name, `/\`)+1:]; slashed && strings.Contains(base, ".") {
			t.add(base, asIs)
		}
	}
	if !parted {
		t.identifier(name, cased)
		return i
	}
	for name != "" {
		end := strings.IndexAny(name, `./\-,`)
		if end < 0 {
			end = len(name)
		}
		t.identifier(name[:end], cased)
		name = name[min(end+1, len(name)):]
	}
	return i
}

// joins reports whether the character at i, neither letter nor digit, joins the parts of a
// name before and after it.
func joins(s string, start, i int) bool {
	switch s[i] {
	case '.', '/', '\\', '-':
		return i > start && s[i-1] != '_' && isWord(s, i+1)
	case '_':
		return i+1 < len(s) && (s[i+1] == '_' || isWord(s, i+1))
	case ',': // between thousands
		return isDigit(s, i-1) && isDigit(s, i+1) && isDigit(s, i+2) && isDigit(s, i+3) && !isWord(s, i+4)
	}
	return false
}

// isNumber reports whether a name consists of digits, points and commas only.
func isNumber(name string) bool {
	for i := range len(name) {
		if c := name[i]; !asciiDigit(c) && c != '.' && c != ',' {
			return false
		}
	}
	return true
}

// identifier adds the terms of letters, digits and underscores. cased means that there may
// be more than one word in it.
func (t *termer) identifier(s string, cased bool) {
	end := len(s)
	if cased {
		end = wordEnd(s)
	}
	if end == len(s) {
		t.add(s, stem)
		return
	}
	t.add(strings.Trim(s, "_"), asIs)
	for ; s != ""; end = wordEnd(s) {
		t.add(s[:end], stem)
		s = strings.TrimLeft(s[end:], "_")
	}
}

// wordEnd returns where the first word of an identifier ends: before an underscore, before
// a capital that follows a small letter or digit, and before the last of several capitals
// if a small letter follows, unless that letter is a plural s.
func wordEnd(s string) int {
	before := other
	for i := 0; i < len(s); {
		k, size := classAt(s, i)
		switch after, _ := nextClass(s, i+size); {
		case k == other,
			k == upper && (before == lower || before == digit),
			k == upper && before == upper && after == lower && s[i+size:] != "s":
			return i
		}
		before = k
		i += size
	}
	return len(s)
}

// isPlural reports whether s is capitals followed by an s, such as PRs.
func isPlural(s string) bool {
	if len(s) < 3 || s[len(s)-1] != 's' {
		return false
	}
	for i := range len(s) - 1 {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}
