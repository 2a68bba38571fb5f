// Package console makes text fit for a terminal: without control characters, of a
// certain width, in columns.
//
// What agents publish is not trusted here: an escape sequence in a title or in a tool's
// output would otherwise move the cursor, rename the window or hide text.
package console

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes every control character visible but line breaks and tabs. Those below
// a space become their pictures (ESC becomes ␛), others U+FFFD, the marks that
// change the direction of writing among them.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// OneLine is [Clean] for a cell: line breaks and tabs become spaces.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return visible(r)
	}, s)
}

func visible(r rune) rune {
	switch {
	case r < ' ':
		return '\u2400' + r
	case r == 0x7F:
		return '\u2421'
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
		return unicode.ReplacementChar
	}
	return r
}

// Width is how many cells of a terminal a text takes; a Chinese character takes two.
func Width(s string) int { return ansi.StringWidth(s) }

// Cut shortens a text to a width, with … as its end if something was cut.
func Cut(s string, width int) string { return ansi.Truncate(s, width, "…") }

// Wrap breaks lines at a width, at words if it can.
func Wrap(s string, width int) string {
	if width < 1 {
		return s
	}
	return ansi.Wrap(s, width, "/")
}
