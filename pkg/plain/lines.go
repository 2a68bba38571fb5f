// Package plain prepares recorded texts for a context: line ends, names on one line, names in place of files in base64, and
// cutting by characters. Everything counts Unicode code points.
package plain

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Lines returns a text as contexts show it. Every line end that some reader knows becomes LF,
// so that the next line gets its tab: CR, CR LF, VT, FF, FS, GS and RS, U+0085, U+2028 and U+2029
// (from Python's str.splitlines and JavaScript's /^/m). TAB is the only other control character
// that stays; terminal color sequences are removed. No character becomes more than one.
func Lines(text string) string {
	if settled(text) { // nearly always true, and far cheaper to check
		return text
	}
	if strings.IndexByte(text, '\x1b') >= 0 {
		text = terminalSequence.ReplaceAllString(text, "")
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case endsLine(r):
			return '\n'
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text)
}

// terminalSequence matches a terminal's control sequence, such as the one for red.
var terminalSequence = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// endsLine reports whether some reader takes a character for the end of a line.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\x1c', '\x1d', '\x1e', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// settled reports whether Lines would change nothing. It checks eight bytes in one step,
// because contexts check every text that they show.
func settled(text string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(text) >= 8 {
		eight := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 | uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
		// Each term sets the high bit of suspicious bytes: DEL and what is not ASCII, then what is
		// neither LF nor TAB and below the space.
		low := eight &^ highs
		suspicious := (low + ones | eight) & highs
		suspicious |= ^(low + ones*(0x80-' ')) & (low ^ ones*'\n' + ones*0x7f) & (low ^ ones*'\t' + ones*0x7f) & highs
		if suspicious != 0 && !settledBytes(text, 8) {
			return false
		}
		text = text[8:]
	}
	return settledBytes(text, len(text))
}

// settledBytes checks the characters that begin in the first n bytes.
func settledBytes(text string, n int) bool {
	for i := range n {
		switch c := text[i]; {
		case c < ' ':
			if c != '\n' && c != '\t' {
				return false
			}
		case c == 0x7f:
			return false
		case c == 0xc2: // of U+0080 to U+00BF
			if i+1 < len(text) && text[i+1] < 0xa0 {
				return false
			}
		case c == 0xe2: // of U+2028 and U+2029
			if rest := text[i:]; strings.HasPrefix(rest, "\u2028") || strings.HasPrefix(rest, "\u2029") {
				return false
			}
		}
	}
	return true
}

// Text returns [Lines] of a text without the line ends at its beginning and end.
func Text(text string) string { return strings.Trim(Lines(text), "\n") }

// JSON escapes what [Lines] would change in JSON, which keeps its value.
func JSON(text string) string {
	if settled(text) {
		return text
	}
	var w strings.Builder
	for _, r := range text {
		if r >= 0x7f && (unicode.IsControl(r) || endsLine(r)) {
			fmt.Fprintf(&w, `\u%04x`, r)
			continue
		}
		w.WriteRune(r)
	}
	return w.String()
}

// The most characters shown of a name: of the name of a tool or a file, and of a speaker or an
// origin.
const (
	maxNameChars    = 512
	maxSpeakerChars = 60
)

// Line returns a name on one line, cut to 512 characters: \n stands for a line end.
func Line(name string) string {
	return Clip(strings.ReplaceAll(Lines(name), "\n", `\n`), maxNameChars)
}

// Speaker returns the name of a speaker or an origin on one line, cut to 60 characters.
func Speaker(name string) string { return Clip(Line(name), maxSpeakerChars) }
