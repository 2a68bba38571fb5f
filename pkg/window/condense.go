package window

import (
	"fmt"
	"regexp"
	"strings"

	"mneme/pkg/graph"
)

// Which results are condensed, and to what.
const (
	freshMessages  = 3     // results of the last 3 messages are not condensed
	condenseAbove  = 1_000 // characters
	condensedChars = 800
)

// shortResult is a result as it is shown: condensed if it is large and old, and in
// any case at most about piece characters long.
func shortResult(b graph.Body, piece int, old bool, seq uint64) string {
	switch {
	case old && b.Chars > condenseAbove:
		return condense(b, min(condensedChars, piece), seq)
	case b.Chars > piece || !b.Whole():
		return condense(b, piece, seq)
	}
	return b.Text
}

// complaint finds the lines of a result that are worth keeping.
var complaint = regexp.MustCompile(`(?i)\b(error|errors|failed|failure|fatal|panic|exception|traceback|denied|not found)\b|(?:Error|Exception):`)

// condense keeps of a result its first lines, the lines in between that speak of
// an error, and its last lines, in at most limit characters. It is the one place
// that decides how results are condensed.
func condense(b graph.Body, limit int, seq uint64) string {
	if b.Chars <= limit && b.Whole() {
		return b.Text
	}
	note := func(kept int) string {
		return fmt.Sprintf("[condensed from %d to %d characters; whole: sequence %d in the log]", b.Chars, kept, seq)
	}
	const gap = "[…]"
	room := limit - length(note(b.Chars)) - 2*(length(gap)+1) - 1
	text := plain(b.Text)
	if room < minPiece {
		return clip(strings.ReplaceAll(text, "\n", " "), max(1, limit))
	}
	head := wholeLines(prefix(text, room/2))
	rest := text[len(head):]
	tail := ""
	if b.Whole() { // otherwise its end is not here
		tail = suffix(rest, room/4)
		if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
			tail = tail[i+1:]
		}
		rest = rest[:len(rest)-len(tail)]
	}
	complaints := complaintsIn(rest, room-length(head)-length(tail))
	parts := []string{head, gap}
	if complaints != "" {
		parts = append(parts, complaints, gap)
	}
	if tail != "" {
		parts = append(parts, tail)
	}
	kept := length(head) + length(complaints) + length(tail)
	return strings.Join(append(parts, note(kept)), "\n")
}

// wholeLines cuts a text after its last line end, if that lies in its second half.
func wholeLines(text string) string {
	if i := strings.LastIndexByte(text, '\n'); i > len(text)/2 {
		return text[:i]
	}
	return text
}

// complaintsIn collects lines that speak of an error, in at most room characters;
// of a long line its beginning.
func complaintsIn(text string, room int) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !complaint.MatchString(prefix(line, 1000)) {
			continue
		}
		line = clip(line, 200)
		if room -= length(line) + 1; room < 0 {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
