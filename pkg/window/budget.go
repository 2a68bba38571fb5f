package window

import (
	"strings"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
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
	text = plain.Text(text)
	n := plain.Length(text)
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
	text := plain.Text(b.Text)
	if b.Whole() && (2*b.Chars <= room || textCost(text) <= room) {
		return text
	}
	// Reserve the longest form of the mark, so that the shorter one fits as well.
	mark := func(left int) string { return plain.CutMark(left, b.Chars, seq) }
	if room < 3*plain.Length(mark(b.Chars)) {
		mark = func(int) string { return plain.ShortCutMark }
	}
	room -= plain.Length(mark(b.Chars)) + 2 // and the newline and the tab before it
	if room < 0 {
		return plain.Prefix("…", room+plain.Length(mark(b.Chars))+2)
	}
	kept := fitting(text, room)
	return kept + "\n" + mark(b.Chars-plain.Length(kept))
}

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

// onOneLine escapes line ends and control characters in the strings of arguments. Arguments are
// JSON, so their value stays the same.
func onOneLine(arguments graph.Body) graph.Body {
	text := plain.JSON(arguments.Text)
	arguments.Bytes += len(text) - len(arguments.Text)
	if text != arguments.Text {
		arguments.Chars += plain.Length(text) - plain.Length(arguments.Text)
	}
	arguments.Text = text
	return arguments
}
