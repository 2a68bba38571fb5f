package scopes

import "strings"

// mask returns the text with a space for each byte of its strings, comments and preprocessor lines; line ends stay.
func mask(text string, x *syntax) []byte {
	out := []byte(text)
	var first [256]bool // bytes that can begin something
	for _, list := range [][]string{x.line, x.long, {x.open}} {
		for _, sign := range list {
			if sign != "" {
				first[sign[0]] = true
			}
		}
	}
	for i := range len(x.quotes) {
		first[x.quotes[i]] = true
	}
	first['\''], first['r'], first['#'] = first['\''] || x.chars, first['r'] || x.raw, first['#'] || x.macros
	for at := 0; at < len(text); {
		if !first[text[at]] {
			at++
			continue
		}
		end := at + 1
		if to := x.past(text, at); to > at {
			hide(out[at:to])
			end = to
		}
		at = end
	}
	return out
}

func hide(b []byte) {
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
}

// past returns the end of the string, comment or preprocessor line that begins at a byte, or at itself if none does.
func (x *syntax) past(text string, at int) int {
	rest := text[at:]
	for _, sign := range x.line {
		if strings.HasPrefix(rest, sign) && (sign != "#" || at == 0 || !isWord(text[at-1]) && text[at-1] != '{') { // $# and ${#x} of a shell
			return at + lineEnd(rest)
		}
	}
	if x.open != "" && strings.HasPrefix(rest, x.open) {
		return at + after(rest, len(x.open), x.close)
	}
	for _, sign := range x.long {
		if strings.HasPrefix(rest, sign) {
			return at + afterQuote(rest, len(sign), sign, true)
		}
	}
	switch c := rest[0]; {
	case strings.IndexByte(x.quotes, c) >= 0:
		return at + afterQuote(rest, 1, rest[:1], false)
	case c == '\'' && x.chars:
		return at + afterChar(rest)
	case c == '/' && x.script:
		return at + afterPattern(text, at)
	case c == 'r' && x.raw:
		return at + afterRaw(text, at)
	case c == '#' && x.macros && beginsLine(text, at):
		return at + macroEnd(rest)
	}
	return at
}

// beginsLine reports whether only white space is before a byte on its line.
func beginsLine(text string, at int) bool {
	for at > 0 && (text[at-1] == ' ' || text[at-1] == '\t') {
		at--
	}
	return at == 0 || text[at-1] == '\n'
}

func lineEnd(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// macroEnd is the end of a line that a backslash may continue.
func macroEnd(text string) int {
	for at := 0; ; {
		n := at + lineEnd(text[at:])
		if n == len(text) || text[n-1] != '\\' {
			return n
		}
		at = n + 1
	}
}

func after(text string, from int, sign string) int {
	if i := strings.Index(text[from:], sign); i >= 0 {
		return from + i + len(sign)
	}
	return len(text)
}

// afterQuote returns the end of a string. One that does not end on its line, and should, ends with the line.
func afterQuote(text string, from int, sign string, long bool) int {
	for at := from; at < len(text); at++ {
		switch {
		case text[at] == '\\':
			at++
		case text[at] == '\n' && !long:
			return at
		case text[at] == sign[0] && strings.HasPrefix(text[at:], sign):
			return at + len(sign)
		}
	}
	return len(text)
}

// afterChar returns the end of a character, or 0 if the quote begins none, as in Rust's 'a or C++'s 1'000.
func afterChar(text string) int {
	for at := 1; at < min(len(text), 12) && text[at] != '\n'; at++ {
		switch text[at] {
		case '\\':
			at++
		case '\'':
			if at == 1 {
				return 0
			}
			return at + 1
		case ' ', ',', '>', ';', ')':
			if at > 1 {
				return 0
			}
		}
	}
	return 0
}

// How far a slash is looked around from. A file can consist of slashes on one line, so this must not depend on the line's
// length.
const (
	maxBefore  = 256
	maxPattern = 1_000
)

// afterPattern returns the length of a regular expression, 0 if the slash divides.
func afterPattern(text string, at int) int {
	before := text[max(0, at-maxBefore):at]
	before = strings.TrimRight(before[1+strings.LastIndexByte(before, '\n'):], " \t")
	if before != "" {
		last := before[len(before)-1]
		word := before[len(strings.TrimRightFunc(before, func(r rune) bool { return r < 0x80 && isWord(byte(r)) })):]
		if isWord(last) && word != "return" && word != "yield" && word != "case" && word != "typeof" || last == ')' || last == ']' || last == '}' || last == '<' {
			return 0
		}
	}
	class := false
	for i := at + 1; i < min(len(text), at+maxPattern) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return i + 1 - at
			}
		}
	}
	return 0
}

// afterRaw returns the length of a string like r#"…"#, 0 if none begins.
func afterRaw(text string, at int) int {
	if at > 0 && isWord(text[at-1]) && text[at-1] != 'b' {
		return 0
	}
	rest := text[at+1:]
	signs := len(rest) - len(strings.TrimLeft(rest, "#"))
	if signs > 16 || signs == len(rest) || rest[signs] != '"' {
		return 0
	}
	return 1 + after(rest, signs+1, `"`+rest[:signs])
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
