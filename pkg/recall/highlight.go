package recall

import (
	"slices"
	"strings"
)

// Span is a part of a text: its bytes from Start to End.
type Span struct{ Start, End int }

// Highlights returns the words of a text that also occur in a query or begin with one of the prefixes,
// in the order of the text. Words are compared as a search compares them: "parsers" is a word of the query
// "parser", and "store" in "pkg/store" is one of "the store".
func Highlights(text, query string, prefixes []string) (spans []Span) {
	asked := queryTerms(query)
	prefixes = slices.Clone(prefixes)
	for i := range prefixes {
		prefixes[i] = strings.ToLower(prefixes[i])
	}
	if len(asked)+len(prefixes) == 0 {
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
	for i := 0; i < len(text); {
		k, size := classAt(text, i)
		end := i + size
		switch k {
		case other:
		case pair:
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
			word := text[i:end]
			begins := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(word), prefix) }
			if isAsked(word) || slices.ContainsFunc(prefixes, begins) {
				spans = append(spans, Span{i, end})
			}
		}
		i = end
	}
	return spans
}

// joined appends a span, or makes the last one longer if they overlap.
func joined(spans []Span, s Span) []Span {
	if n := len(spans); n > 0 && spans[n-1].End > s.Start {
		spans[n-1].End = s.End
		return spans
	}
	return append(spans, s)
}

// maxBegun limits how many terms a prefix stands for: the first ones in alphabetical order.
const maxBegun = 64

// begun returns the terms that begin with one of some prefixes and occur among the first passages.
// The stem of a word may be shorter than the prefix, so it counts too if it is all of the prefix
// but its last letters.
func (x *Index) begun(prefixes []string, passages int) (terms []string) {
	const cut = 4 // letters that a stemmer takes off, and a prefix can have
	for _, prefix := range prefixes {
		prefix = strings.ToLower(prefix)
		if prefix == "" {
			continue
		}
		var found []string
		for term, id := range x.termOf {
			shorter := len(term) >= 3 && len(term) >= len(prefix)-cut && strings.HasPrefix(prefix, term)
			if (shorter || strings.HasPrefix(term, prefix)) && int(x.postings[id][0].passage) < passages {
				found = append(found, term)
			}
		}
		slices.Sort(found)
		terms = append(terms, found[:min(maxBegun, len(found))]...)
	}
	return terms
}
