package extractive

import "strings"

// names counts in how many entries each identifier occurs.
type names struct {
	counts map[string]*occurrences
	order  []string
}

type occurrences struct{ entries, last int }

func newNames() *names { return &names{counts: map[string]*occurrences{}} }

// Length limits, in bytes, of an identifier worth mentioning.
const (
	shortestName = 6
	longestName  = 40
)

// read counts the identifiers in an entry's text: words of letters, digits and underscores
// with a change of case or an underscore inside. Path elements and JSON keys don't count.
func (n *names) read(text string, entry int) {
	start, compound := -1, false
	for i := 0; i <= len(text); i++ {
		var c byte
		if i < len(text) {
			c = text[i]
		}
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' {
			if start < 0 {
				start, compound = i, false
			} else if before := text[i-1]; c == '_' || 'A' <= c && c <= 'Z' && ('a' <= before && before <= 'z' || isDigit(before)) {
				compound = true
			}
			continue
		}
		if compound && i-start >= shortestName && i-start <= longestName && !inPath(text, start, i) && !strings.HasPrefix(text[i:], `":`) {
			n.count(text[start:i], entry)
		}
		start, compound = -1, false
	}
}

func (n *names) count(name string, entry int) {
	if name[0] == '_' || name[len(name)-1] == '_' || isEncoded(name) {
		return
	}
	o := n.counts[name]
	if o == nil {
		o = &occurrences{last: -1}
		n.counts[name] = o
		n.order = append(n.order, name)
	}
	if o.last != entry {
		o.entries, o.last = o.entries+1, entry
	}
}

// isEncoded distinguishes a hash or a base 64 id from a name: it is all hexadecimal, or has single digits between
// letters in several places.
func isEncoded(name string) bool {
	if strings.Trim(name, "0123456789abcdef_") == "" {
		return true
	}
	between := 0
	for i := 1; i < len(name)-1; i++ {
		if isDigit(name[i]) && !isDigit(name[i-1]) && name[i-1] != '_' && !isDigit(name[i+1]) && name[i+1] != '_' {
			between++
		}
	}
	return between > 1
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// into adds the identifiers of several entries to the tally, with their number of entries.
func (n *names) into(t tally) {
	const enough = 3 // entries: more than a call and its result
	for _, name := range n.order {
		if k := n.counts[name].entries; k >= enough {
			t.add(cameUp, name, k)
		}
	}
}

// inPath reports whether a word is a path element, a file name or a tag.
func inPath(text string, start, end int) bool {
	if start > 0 && strings.IndexByte(`/\-<`, text[start-1]) >= 0 {
		return true
	}
	rest := text[end:]
	if rest == "" {
		return false
	}
	if strings.IndexByte(`/\-`, rest[0]) >= 0 {
		return true
	}
	extension := 1
	for extension < len(rest) && rest[extension] >= 'a' && rest[extension] <= 'z' {
		extension++
	}
	const longest = 4 // letters of a usual extension
	return rest[0] == '.' && extension > 1 && extension <= 1+longest && (extension == len(rest) || rest[extension] != '(')
}
