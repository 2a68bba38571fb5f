package codebase

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// Named returns the scopes with a name, or whose name ends with it after a dot, by their paths and lines.
func (x *Index) Named(name string, asOf uint64) (list []Hit) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for p := range x.of {
		i := x.newest(p, asOf)
		if i < 0 {
			continue
		}
		f := &x.files[i]
		for n, s := range f.scopes {
			if s.IsNamed(name) {
				list = append(list, f.hit(n))
			}
		}
	}
	slices.SortFunc(list, func(a, b Hit) int { return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.N, b.N)) })
	return list
}

// IsNamed reports whether a scope has a name, or one that ends with it after a dot.
func (s *Scope) IsNamed(name string) bool {
	return s.Name != "" && (s.Name == name || lastOf(s.Name) == name)
}

// Ending returns the files whose paths are this one or end with it, sorted.
func (x *Index) Ending(end string, asOf uint64) (list []string) {
	ends := graph.FileMatcher(end)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for p := range x.of {
		if x.newest(p, asOf) >= 0 && ends(p) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// Within returns the longest path of the index that another path ends with, "" if there is none: the same file in
// another checkout.
func (x *Index) Within(whole string, asOf uint64) (longest string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for p := range x.of {
		if len(p) > len(longest) && graph.FileMatcher(p)(whole) && x.newest(p, asOf) >= 0 {
			longest = p
		}
	}
	return longest
}

func (f *file) hit(n int) Hit {
	return Hit{Seq: f.seq, EventID: f.eventID, N: n, Path: f.path, Language: f.language, Scope: f.scopes[n]}
}

// linesOf returns where a scope was as of a sequence: in the version of its file that counted, or in the first one if the
// file was indexed later. Zeros mean that it wasn't there.
func (x *Index) linesOf(h Hit, asOf uint64) (start, end int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	list := x.of[h.Path]
	if len(list) == 0 {
		return 0, 0
	}
	i := x.newest(h.Path, asOf)
	if first := &x.files[list[0]]; i < 0 && first.seq > asOf {
		i = list[0]
	}
	if i < 0 {
		return 0, 0
	}
	if h.Name == "" || x.files[i].seq == h.Seq {
		return h.Start, h.End
	}
	for _, s := range x.files[i].scopes { // of several, the nearest
		if s.Name == h.Name && s.Kind == h.Kind && (start == 0 || distance(s.Start, h.Start) < distance(start, h.Start)) {
			start, end = s.Start, s.End
		}
	}
	return start, end
}

func distance(a, b int) int { return max(a-b, b-a) }

// Naming knows which messages name a scope. A message names it by
//
//   - a place: a file, with as much of its path as is needed to identify it, and lines of the scope, as of the message;
//   - a name: that of the scope, if no other scope has it or the message also names the file.
//
// A name that could be an ordinary word, such as Retry, must be written as code: in backticks or as a call. If a method
// has such a name, it must be written with its type.
type Naming struct {
	index     *Index
	scope     Hit
	asOf      uint64
	names     []naming
	qualifies []string          // what may come before a plain name: the package, or the file without its ending
	fits      map[string]bool   // paths that were compared
	lines     map[uint64][2]int // of the scope, as of sequences
}

// naming is a name of a scope.
type naming struct {
	name   string
	unique bool
	plain  bool // it could be a word of any text
}

// Naming returns the [Naming] of a scope of this index, as of a sequence.
func (x *Index) Naming(scope Hit, asOf uint64) *Naming {
	base := path.Base(scope.Path)
	n := &Naming{index: x, scope: scope, asOf: asOf, fits: map[string]bool{}, lines: map[uint64][2]int{}, qualifies: []string{path.Base(path.Dir(scope.Path)), strings.TrimSuffix(base, path.Ext(base))}}
	if scope.Name == "" || strings.ContainsFunc(scope.Name, unicode.IsSpace) { // headings are words
		return n
	}
	last := lastOf(scope.Name)
	same := x.Named(last, asOf)
	if scope.Name != last {
		whole := 0
		for _, h := range same {
			if h.Name == scope.Name {
				whole++
			}
		}
		n.names = append(n.names, naming{scope.Name, whole == 1, false})
	}
	if plain := isPlain(last); !plain || scope.Name == last {
		n.names = append(n.names, naming{last, len(same) == 1, plain})
	}
	return n
}

// lastOf returns the part of a name after the last dot.
func lastOf(name string) string { return name[strings.LastIndexAny(name, ".:#")+1:] }

// isPlain reports whether a name could be a word of any text: letters of which only the first may be a capital.
func isPlain(name string) bool {
	for i, r := range name {
		if !unicode.IsLetter(r) || i > 0 && unicode.IsUpper(r) {
			return false
		}
	}
	return true
}

// Terms returns the search terms by which messages that may name the scope are found in all conversations.
func (n *Naming) Terms() (terms []string) {
	for _, of := range n.names {
		if list := graph.QueryTerms(of.name); len(list) > 0 {
			terms = append(terms, list[0]) // the whole name
		}
	}
	if list := graph.QueryTerms(path.Base(n.scope.Path)); len(list) > 0 {
		terms = append(terms, list[0])
	}
	return terms
}

// Refers reports whether a message's reference is to the scope.
func (n *Naming) Refers(seq uint64, r events.Reference) bool {
	if !n.isFile(r.File) {
		return false
	}
	if r.Name != "" && (r.Name == n.scope.Name || r.Name == lastOf(n.scope.Name)) {
		return true
	}
	return n.holds(seq, r.StartLine, r.EndLine)
}

// holds reports whether a range of lines overlaps the scope as it was at a sequence.
func (n *Naming) holds(seq uint64, from, to int) bool {
	if from == 0 && to == 0 {
		return false
	}
	lines, known := n.lines[seq]
	if !known {
		lines[0], lines[1] = n.index.linesOf(n.scope, seq)
		n.lines[seq] = lines
	}
	return lines[0] > 0 && from <= lines[1] && max(from, to) >= lines[0]
}

// isFile reports whether a path, as somebody wrote it, means the scope's file: it ends with all of the scope's path, or
// it is the end of that path and of no other.
func (n *Naming) isFile(written string) bool {
	written = graph.SoughtPath(written) // a text can write the same path in many ways
	fits, known := n.fits[written]
	if !known {
		fits = graph.FileMatcher(n.scope.Path)(written)
		if !fits && graph.FileMatcher(written)(n.scope.Path) {
			fits = len(n.index.Ending(written, n.asOf)) == 1
		}
		n.fits[written] = fits
	}
	return fits
}

// In returns how the beginning of a message names the scope, in the message's words: a place, else a name; "" if it
// doesn't.
func (n *Naming) In(seq uint64, text string) string {
	text = text[:min(len(text), maxText)]
	place, file := n.placeIn(seq, text)
	if place != "" {
		return place
	}
	for _, of := range n.names {
		if (of.unique || file) && n.written(of, text) {
			return of.name
		}
	}
	return ""
}

// placeIn returns the first place named in a text that is in the scope, and whether the text names the
// file.
func (n *Naming) placeIn(seq uint64, text string) (place string, file bool) {
	base := path.Base(n.scope.Path)
	for at := 0; ; {
		i := strings.Index(text[at:], base)
		if i < 0 {
			return "", file
		}
		begin := at + i
		at = begin + len(base)
		if isNameAt(text, at) {
			continue
		}
		for begin > 0 && at-begin <= maxWritten && isPathByte(text[begin-1]) {
			begin--
		}
		if at-begin > maxWritten || !n.isFile(text[begin:at]) {
			continue
		}
		file = true
		if from, to, size := linesAt(text[at:]); size > 0 && n.holds(seq, from, to) {
			return text[begin : at+size], true
		}
	}
}

// Limits of a text, in bytes.
const (
	maxText    = 32 << 10 // how much of the beginning is read
	maxWritten = 256      // of a path or a qualifier
)

func isPathByte(c byte) bool {
	return c >= utf8.RuneSelf || c == '/' || c == '\\' || c == '.' || c == '-' || c == '_' || c == '~' || c == '@' || c == '+' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// isNameAt reports whether a name or the ending of a file continues at a place.
func isNameAt(text string, i int) bool {
	if i < len(text) && text[i] == '.' {
		i++
	}
	r, _ := utf8.DecodeRuneInString(text[i:])
	return i < len(text) && isName(r)
}

func isName(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// linesAt reads lines at the beginning of a text, and how many bytes they take: :12, :12-34, #L12, #L12-L34.
func linesAt(text string) (from, to, size int) {
	rest, ok := strings.CutPrefix(text, ":")
	mark := ""
	if !ok {
		if rest, ok = strings.CutPrefix(text, "#L"); !ok {
			return 0, 0, 0
		}
		mark = "L"
	}
	if from, rest, ok = leading(rest); !ok {
		return 0, 0, 0
	}
	to = from
	if more, found := strings.CutPrefix(rest, "-"+mark); found {
		if last, after, numbered := leading(more); numbered {
			to, rest = last, after
		}
	}
	return from, to, len(text) - len(rest)
}

// leading reads the number that a text begins with.
func leading(text string) (number int, rest string, ok bool) {
	i := 0
	for i < len(text) && i < 9 && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	number, err := strconv.Atoi(text[:i])
	return number, text[i:], err == nil && number > 0
}

// written reports whether a text has a name, as a whole word.
func (n *Naming) written(of naming, text string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], of.name)
		if i < 0 {
			return false
		}
		begin := at + i
		at = begin + len(of.name)
		before, _ := utf8.DecodeLastRuneInString(text[:begin])
		after, _ := utf8.DecodeRuneInString(text[at:])
		if begin > 0 && isName(before) || at < len(text) && isName(after) {
			continue
		}
		if !of.plain || n.asCode(text, begin, at) {
			return true
		}
	}
}

// asCode reports whether a name in a text is written as code: called, or alone in backticks, and without a qualifier or
// with the scope's.
func (n *Naming) asCode(text string, begin, end int) bool {
	called := strings.HasPrefix(text[end:], "(")
	if begin > 0 && (text[begin-1] == '.' || text[begin-1] == ':') {
		from := begin
		for from > 0 && begin-from <= maxWritten && (isPathByte(text[from-1]) || text[from-1] == ':') && text[from-1] != '/' {
			from--
		}
		if !slices.Contains(n.qualifies, strings.Trim(text[from:begin], ".:")) {
			return false
		}
		begin = from
	}
	return called || begin > 0 && text[begin-1] == '`' && strings.HasPrefix(text[end:], "`")
}
