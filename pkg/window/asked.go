package window

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Asked is what a search query asks for, see [Ask].
type Asked struct {
	Text     string   // the words to rank by, those of phrases included
	Prefixes []string // beginnings of words to rank by

	// Phrases as in [Filter].
	Contains, Without []string
}

// Limits of marks in a query. A longer query is a text that somebody pasted, and its quotes and
// dashes are not marks.
const (
	maxMarkedChars = 500
	maxMarks       = 16 // of phrases to contain, and of those to be without; further ones are words
)

// Ask reads the marks in a query: a "phrase in quotes" must be there, a -word or -"phrase" must not, and a word*
// matches all words that begin with it. A quote that is never closed, a dash before a space, a second dash or a digit,
// and an asterisk elsewhere are not marks. So "--race" and "-5" are plain words.
func Ask(query string) (a Asked) {
	if utf8.RuneCountInString(query) > maxMarkedChars {
		a.Text = query
		return a
	}
	var words []string
	for rest := strings.TrimLeftFunc(query, unicode.IsSpace); rest != ""; rest = strings.TrimLeftFunc(rest, unicode.IsSpace) {
		var one mark
		one, rest = nextMark(rest)
		switch {
		case one.without && len(a.Without) < maxMarks:
			a.Without = append(a.Without, one.text)
		case (one.quoted || one.open) && !one.without && len(a.Contains) < maxMarks:
			a.Contains = append(a.Contains, one.text)
			text, open := strings.CutSuffix(one.text, "*")
			if open { // its last word is the beginning of words, not a word itself
				last := strings.LastIndexFunc(text, unicode.IsSpace) + 1
				a.Prefixes = append(a.Prefixes, text[last:])
				text = strings.TrimSpace(text[:last])
			}
			if text != "" {
				words = append(words, text)
			}
		default:
			words = append(words, one.written)
		}
	}
	a.Text = strings.Join(words, " ")
	return a
}

// mark is a word of a query, or a phrase in quotes.
type mark struct {
	written               string // as it is in the query
	text                  string // without dash and quotes
	without, quoted, open bool
}

// nextMark takes the first word or phrase of a text that begins with one.
func nextMark(text string) (m mark, rest string) {
	body, dash := strings.CutPrefix(text, "-")
	if quote, ok := strings.CutPrefix(body, `"`); ok {
		if end := strings.IndexByte(quote, '"'); end >= 0 && hasWord(quote[:end]) {
			rest = quote[end+1:]
			phrase := strings.TrimSpace(quote[:end])
			return mark{written: text[:len(text)-len(rest)], text: phrase, without: dash, quoted: true, open: strings.HasSuffix(phrase, "*")}, rest
		}
	}
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		end = len(text)
	}
	m.written, rest = text[:end], text[end:]
	m.text = strings.TrimPrefix(m.written, "-")
	first, _ := utf8.DecodeRuneInString(m.text)
	m.without = dash && (unicode.IsLetter(first) || first == '_')
	stem, star := strings.CutSuffix(m.text, "*")
	last, _ := utf8.DecodeLastRuneInString(stem)
	m.open = star && hasWord(string(last)) && !strings.Contains(stem, "*") && (m.without || !dash)
	return m, rest
}

// hasWord reports whether a text has a letter or a digit.
func hasWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
