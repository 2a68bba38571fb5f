package recall

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// participants yields the speakers of the first n messages.
func (x *Index) participants(n int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for s, speaker := range x.speakers {
			if int(speaker.first) >= n || !yield(s, speaker.name) {
				return
			}
		}
	}
}

// Unnamed removes from a query the names of those who took part in the conversation as of a
// sequence (0 means now). Embed its result: a name weighs heavily in every embedding, but
// says little where it may occur in every other message.
func (x *Index) Unnamed(query string, asOf uint64) string {
	for _, name := range x.participants(x.until(asOf)) {
		query, _ = cutName(query, name)
	}
	return strings.Join(strings.Fields(query), " ")
}

// cutName removes a name from a text where it is a whole word, along with a possessive s,
// and reports whether the name occurred.
func cutName(text, name string) (rest string, found bool) {
	var out strings.Builder
	from := 0
	for at := 0; name != ""; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			break
		}
		start := at + i
		end := start + len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, size := utf8.DecodeRuneInString(text[end:])
		if isWordRune(before) || isWordRune(after) {
			at = start + max(1, len(name))
			continue
		}
		if after == '\'' || after == '’' {
			s, _ := utf8.DecodeRuneInString(text[end+size:])
			next, _ := utf8.DecodeRuneInString(text[min(len(text), end+size+1):])
			if s == 's' && !isWordRune(next) {
				end += size + 1
			}
		}
		out.WriteString(text[from:start])
		from, at, found = end, end, true
	}
	if !found {
		return text, false
	}
	out.WriteString(text[from:])
	return out.String(), true
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || unicode.IsMark(r))
}
