package recall

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// participants are who speaks in the first n messages.
func (x *Index) participants(n int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for s, speaker := range x.speakers {
			if int(speaker.first) >= n || !yield(s, speaker.name) {
				return
			}
		}
	}
}

// Unnamed is a query without the names of who took part in the conversation as of a
// sequence (0 stands for now). Embed this: in every embedding of a text a name weighs
// much, and says little where it may stand in every other message.
func (x *Index) Unnamed(query string, asOf uint64) string {
	for _, name := range x.participants(x.until(asOf)) {
		query, _ = cutName(query, name)
	}
	return strings.Join(strings.Fields(query), " ")
}

// cutName takes a name, where it is a word of its own, out of a text, its possessive s
// with it, and tells whether it was there.
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
