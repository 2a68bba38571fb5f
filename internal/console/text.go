// Package console prepares text for a terminal: it removes control characters, cuts to a
// width and lays out columns.
//
// Text that agents publish is not trusted: an escape sequence in a title or a tool's output
// could move the cursor, rename the window or hide text.
package console

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes control characters visible, except line breaks and tabs. Those below the
// space become their symbols (ESC becomes ␛); others, including marks that change the
// writing direction and other invisible ones that can hide a text, become U+FFFD.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// OneLine is [Clean] for a table cell: line breaks and tabs become spaces.
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
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && !belongs(r), r == '\u2028', r == '\u2029':
		return unicode.ReplacementChar
	}
	return r
}

// belongs reports whether a format character is part of words or of emoji: soft hyphens, what joins and separates letters, and
// the signs of numbers in Arabic.
func belongs(r rune) bool {
	return r == '\u00AD' || r == '\u200C' || r == '\u200D' || unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// Width returns how many terminal cells a text takes; a Chinese character takes two.
func Width(s string) int { return ansi.StringWidth(s) }

// Cut shortens a text to a width and ends it with … if something was cut.
func Cut(s string, width int) string {
	cut := ansi.Truncate(s, width, "…")
	// A letter with a variation selector counts as one cell when it is cut, and as two when it is measured.
	for less := width - 1; Width(cut) > width && less >= 0; less-- {
		cut = ansi.Truncate(s, less, "…")
	}
	return cut
}

// cutStart shortens a text to a width and begins it with … if something was cut.
func cutStart(s string, width int) string {
	if more := Width(s) - width; more > 0 {
		return ansi.TruncateLeft(s, more+1, "…")
	}
	return s
}

// Wrap breaks lines at a width, between words where it can.
func Wrap(s string, width int) string {
	if width < 1 {
		return s
	}
	return ansi.Wrap(s, width, "/")
}
