package window

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mneme.dev/mneme/pkg/graph"
)

// maxMark is more than the longest mark of cut takes.
const maxMark = 120

// share is a percentage of the budget, in characters.
func share(budget, percent int) int { return budget * percent / 100 }

// pieceOf is the longest that one text may be in a room: a quarter of it.
func pieceOf(room int) int { return max(room/4, minPiece) }

// How short texts become in a small budget, and in a step that does not fit otherwise.
const (
	minPiece      = 60
	shortestPiece = 20
)

// textCost is what a text takes in the Markdown. It counts what writeText would write.
func textCost(text string) int {
	text = plain(text)
	n := length(text)
	for {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			return n
		}
		if text = text[i+1:]; text != "" && text[0] != '\n' {
			n++
		}
	}
}

// cut shortens a text to at most room characters of Markdown, with a mark at its end. A text that
// the read model holds only in part gets the mark too. In very little room only "…" fits.
func cut(b graph.Body, room int, seq uint64) string {
	text := plain(b.Text)
	if b.Whole() && (2*b.Chars <= room || textCost(text) <= room) {
		return text
	}
	// Reserve the longest form of the mark, so that the shorter one fits as well.
	mark := func(left int) string { return longMark(left, b.Chars, seq) }
	if room < 3*length(mark(b.Chars)) {
		mark = func(int) string { return shortMark }
	}
	room -= length(mark(b.Chars)) + 2 // and the newline and the tab before it
	if room < 0 {
		return prefix("…", room+length(mark(b.Chars))+2)
	}
	kept := fitting(text, room)
	return kept + "\n" + mark(b.Chars-length(kept))
}

// The marks at the end of a cut text: how much was left out, or, in little room, only that
// something was.
func longMark(left, of int, seq uint64) string {
	return fmt.Sprintf("[… %d of %d characters left out; whole: sequence %d in the log]", left, of, seq)
}

const shortMark = "[… cut]"

// fitting returns the longest prefix of a plain text that takes at most room characters of
// Markdown, without trailing newlines.
func fitting(text string, room int) string {
	n := 0
	newline := false
	for i, r := range text {
		if n++; newline && r != '\n' {
			n++
		}
		if newline = r == '\n'; n > room {
			return strings.TrimRight(text[:i], "\n")
		}
	}
	return text
}

// prefix returns the first n characters of s.
func prefix(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// suffix returns the last n characters of s.
func suffix(s string, n int) string {
	from := len(s)
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
	}
	return s[from:]
}
