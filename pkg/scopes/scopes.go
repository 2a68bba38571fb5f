package scopes

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a file and of what is cut from it.
const (
	MaxFileBytes  = 1 << 20 // a larger file is skipped
	MaxScopes     = 1_000   // of a file; the rest is counted in [File].Left
	MaxNameBytes  = 200     // of a name; the rest is cut
	MaxTextBytes  = 4 << 10 // of the text of a scope, cut at the end of a line
	maxFileText   = 1 << 20 // of the texts of all scopes together
	maxLineBytes  = 300     // on average: a file with longer lines is minified
	maxNesting    = 32      // types inside types; deeper ones are part of those around them
	maxBlockLines = 60      // of code between declarations, and of a file without any
	leastBlock    = 2       // lines that make code between declarations worth a scope
)

// Kind says what a scope is.
type Kind string

// The kinds.
const (
	Function Kind = "function" // also a method
	Type     Kind = "type"     // a class, struct, interface, enum or trait
	Value    Kind = "value"    // constants and variables of a package
	Section  Kind = "section"  // of a document, named by its heading
	Block    Kind = "block"    // code between declarations; it has no name
)

// Scope is a piece of a file.
type Scope struct {
	Name       string // as in "Store.Close"; "" if it has none
	Kind       Kind
	Start, End int // lines, from 1; End is included
	// Text is its beginning: at most [MaxTextBytes], and of a type what comes before the first scope inside it.
	Text string
}

// File is a file that was cut.
type File struct {
	Language string
	Lines    int
	Scopes   []Scope // ordered by their first lines
	Left     int     // scopes over a limit
}

// Reason says why a file was not cut.
type Reason string

// The reasons.
const (
	Unknown  Reason = "unknown"  // no language has files of this name
	Binary   Reason = "binary"   // it holds no text
	Minified Reason = "minified" // its lines are too long to be read by anyone
	TooLarge Reason = "large"    // it is over MaxFileBytes
	Empty    Reason = "empty"    // it holds nothing but white space
)

// Cut cuts a file. Its name determines the language; the reason is "" if it was cut. Bytes that are not UTF-8 become
// U+FFFD, and CR LF becomes LF.
func Cut(name string, content []byte) (File, Reason) {
	lang := languageOf(name)
	switch {
	case lang == nil:
		return File{}, Unknown
	case len(content) > MaxFileBytes:
		return File{Language: lang.name}, TooLarge
	}
	f := File{Language: lang.name}
	if reason := unusable(content); reason != "" {
		return f, reason
	}
	src := newSource(content)
	f.Lines = len(src.lines)
	var list []Scope
	switch lang.cut {
	case byParser:
		list = cutGo(src)
	case byBrackets:
		list = cutBrackets(src, lang)
	case byIndentation:
		list = cutIndented(src, lang)
	case byHeadings:
		list = cutMarkdown(src)
	}
	f.Scopes, f.Left = src.finish(list, lang)
	return f, ""
}

// Known reports whether some language has files of this name. It costs far less than reading the file.
func Known(name string) bool { return languageOf(name) != nil }

// unusable looks for content that nobody can read.
func unusable(content []byte) Reason {
	if bytes.IndexByte(content, 0) >= 0 {
		return Binary
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return Empty
	}
	if len(content) > 4*maxLineBytes && len(content)/(1+bytes.Count(content, []byte{'\n'})) > maxLineBytes {
		return Minified
	}
	if utf8.Valid(content) {
		return ""
	}
	wrong := 0
	for rest := content; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			wrong++
		}
		rest = rest[size:]
	}
	if wrong > len(content)/10 {
		return Binary
	}
	return ""
}

// source is the text of a file and its lines.
type source struct {
	text  string
	lines []int // where each begins
}

func newSource(content []byte) *source {
	text := string(content)
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	s := &source{text: text, lines: make([]int, 0, 1+strings.Count(text, "\n"))}
	for at := 0; at < len(text); {
		s.lines = append(s.lines, at)
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	return s
}

// line returns the number of the line that holds a byte, from 0.
func (s *source) line(at int) int {
	i, found := slices.BinarySearch(s.lines, at)
	if !found {
		i--
	}
	return max(i, 0)
}

// at returns a line without its end. Lines count from 0.
func (s *source) at(line int) string { return strings.TrimSuffix(s.between(line, line+1), "\n") }

// between returns lines from..to, to excluded.
func (s *source) between(from, to int) string {
	if from >= to || from >= len(s.lines) {
		return ""
	}
	end := len(s.text)
	if to < len(s.lines) {
		end = s.lines[to]
	}
	return s.text[s.lines[from]:end]
}

func (s *source) blank(line int) bool { return strings.TrimSpace(s.at(line)) == "" }

// finish orders scopes, adds the code between them, fills in their texts and applies the limits.
func (s *source) finish(list []Scope, lang *language) (out []Scope, left int) {
	order := func(a, b Scope) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) }
	slices.SortStableFunc(list, order)
	list = append(list, s.blocks(list, lang)...)
	slices.SortStableFunc(list, order)
	list = slices.CompactFunc(list, func(a, b Scope) bool { return a.Start == b.Start && a.End == b.End })
	if left = len(list) - MaxScopes; left > 0 {
		list = list[:MaxScopes]
	}
	left = max(left, 0)
	room := maxFileText
	for i := range list {
		it := &list[i]
		it.Name = clip(it.Name, MaxNameBytes)
		end := it.End
		if i+1 < len(list) && list[i+1].Start > it.Start && list[i+1].Start <= end {
			end = list[i+1].Start - 1
		}
		it.Text = strings.TrimRight(atLine(s.between(it.Start-1, end), MaxTextBytes), " \t\n")
		if room -= len(it.Text); room < 0 {
			return list[:i:i], left + len(list) - i
		}
	}
	return list, left
}

// atLine cuts a text at the end of a line, or inside its first line if that is too long.
func atLine(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if i := strings.LastIndexByte(text[:most+1], '\n'); i > 0 {
		return text[:i]
	}
	return clip(text, most)
}

// clip cuts a text to a number of bytes, at the end of a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// blocks returns the code that belongs to no scope.
func (s *source) blocks(list []Scope, lang *language) (out []Scope) {
	if lang.cut == byHeadings {
		return nil
	}
	from := 0 // the next line that belongs to no scope
	for _, it := range list {
		if it.Start-1 > from {
			out = s.block(out, from, it.Start-1, lang)
		}
		from = max(from, it.End)
	}
	return s.block(out, from, len(s.lines), lang)
}

// block cuts lines from..to into blocks, at blank lines. A line that begins at the margin begins a block if the last one is
// long enough.
func (s *source) block(out []Scope, from, to int, lang *language) []Scope {
	const enough = 30
	begin, told := -1, 0
	end := func(at int) {
		for at > begin && begin >= 0 && s.blank(at-1) {
			at--
		}
		if begin >= 0 && told >= leastBlock {
			out = append(out, Scope{Kind: Block, Start: begin + 1, End: at})
		}
		begin, told = -1, 0
	}
	for i := from; i < to; i++ {
		line := s.at(i)
		trimmed := strings.TrimSpace(line)
		if trimmed == "" {
			continue
		}
		margin := line[0] != ' ' && line[0] != '\t'
		if begin >= 0 && (i-begin >= maxBlockLines || i-begin >= enough && margin && s.blank(i-1)) {
			end(i)
		}
		if begin < 0 {
			begin = i
		}
		if !lang.dull(trimmed) {
			told++
		}
	}
	end(to)
	return out
}
