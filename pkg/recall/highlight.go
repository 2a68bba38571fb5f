package recall

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Span is a part of a text: its bytes from Start to End.
type Span struct{ Start, End int }

// Highlights returns the words of a text that also occur in a query or begin with one of the prefixes,
// in the order of the text. Words are compared as a search compares them: "parsers" is a word of the query
// "parser", and "store" in "pkg/store" is one of "the store".
func Highlights(text, query string, prefixes []string) (spans []Span) {
	asked := queryTerms(query)
	var begun, written []string // as terms have them, and as they stand in a text
	for _, prefix := range prefixes {
		if word := lastWord(prefix); word != "" {
			begun, written = append(begun, folded(word)), append(written, word)
		}
	}
	if len(asked)+len(begun) == 0 {
		return nil
	}
	var terms []string
	isAsked := func(word string) bool {
		terms = AppendTerms(terms[:0], word)
		return slices.ContainsFunc(terms, func(term string) bool {
			_, ok := slices.BinarySearch(asked, term)
			return ok
		})
	}
	number := 0 // the end of the last number
	for i := 0; i < len(text); {
		k, size := classAt(text, i)
		end := i + size
		switch k {
		case other:
		case pair:
			if at := slices.IndexFunc(written, func(prefix string) bool { return strings.HasPrefix(text[i:], prefix) }); at >= 0 {
				spans = joined(spans, Span{i, i + len(written[at])})
				break
			}
			second, more := nextClass(text, end)
			if second == pair {
				if isAsked(text[i : end+more]) {
					spans = joined(spans, Span{i, end + more})
				}
			} else if isAsked(text[i:end]) {
				spans = joined(spans, Span{i, end})
			}
		default:
			for end < len(text) && (isWord(text, end) || text[end] == '_' && isWord(text, end+1)) {
				_, more := classAt(text, end)
				end += more
			}
			if i >= number {
				if number = numberEnd(text, i); number > end && isAsked(text[i:number]) {
					end = number
					spans = joined(spans, Span{i, end})
					break
				}
			}
			if isAsked(text[i:end]) || begins(text[i:end], begun) {
				spans = joined(spans, Span{i, end}) // a prefix such as 日a reaches into the word
			}
		}
		i = end
	}
	return spans
}

// begins reports whether a word begins with one of some prefixes.
func begins(word string, prefixes []string) bool {
	if len(prefixes) == 0 {
		return false
	}
	word = folded(word)
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(word, prefix) })
}

// numberEnd returns the end of the number that begins at start, with its points and the commas between its thousands: it
// is one term.
func numberEnd(text string, start int) int {
	i := start
	for ; i < len(text); i++ {
		if !asciiDigit(text[i]) && (text[i] != '.' && text[i] != ',' || !joins(text, start, i) || !isDigit(text, i-1) || !isDigit(text, i+1)) {
			break
		}
	}
	return i
}

// folded returns a word as terms have it, but for its stem.
func folded(word string) string { return fold(strings.ToLower(word)) }

// lastWord returns the last word of the beginning of a name.
func lastWord(prefix string) string {
	from := len(prefix)
	for from > 0 {
		_, size := utf8.DecodeLastRuneInString(prefix[:from])
		if from -= size; !isWord(prefix, from) && prefix[from] != '_' {
			if k, _ := classAt(prefix, from); k != pair {
				from += size
				break
			}
		}
	}
	return strings.TrimLeft(prefix[from:], "_")
}

// joined appends a span, or makes the last one longer if they overlap.
func joined(spans []Span, s Span) []Span {
	if n := len(spans); n > 0 && spans[n-1].End > s.Start {
		spans[n-1].End = max(spans[n-1].End, s.End)
		return spans
	}
	return append(spans, s)
}

// maxBegun limits how many terms a prefix stands for: the first ones in alphabetical order.
const maxBegun = 64

// begun returns the terms that begin with one of some prefixes and occur among the first passages.
// The stem of a word may be shorter than the prefix, so it counts too if it is all of the prefix
// but its last letters. If no term begins with the prefix, because it is of several words, its last word counts.
func (x *Index) begun(prefixes []string, passages int) (terms []string) {
	for _, prefix := range prefixes {
		found := x.begunWith(folded(prefix), passages)
		if len(found) == 0 {
			found = x.begunWith(folded(lastWord(prefix)), passages)
		}
		terms = append(terms, found[:min(maxBegun, len(found))]...)
	}
	return terms
}

func (x *Index) begunWith(prefix string, passages int) (found []string) {
	const cut = 4 // letters that a stemmer takes off, and a prefix can have
	if prefix == "" {
		return nil
	}
	for term, id := range x.termOf {
		if len(x.postings[id]) == 0 { // a damaged bag may hold a term that none of its passages has
			continue
		}
		shorter := len(term) >= 3 && len(term) >= len(prefix)-cut && strings.HasPrefix(prefix, term)
		if (shorter || strings.HasPrefix(term, prefix)) && int(x.postings[id][0].passage) < passages {
			found = append(found, term)
		}
	}
	slices.Sort(found)
	return found
}
