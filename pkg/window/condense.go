package window

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/summary"
)

// shortResult returns a result as shown: condensed if it is large and old, and always cut to about
// piece characters.
func (w *window) shortResult(r *graph.ToolResult, piece int) string {
	if w.isCondensed(r.Result, r.Seq) && w.mode == CondenseLLM {
		if c, ok := w.condensed[r.Ref()]; ok {
			return cut(c.Content, min(summary.CondensedChars, piece), r.Seq) + "\n" + condensedNote(r.Result, c.Content.Chars, r.Seq)
		}
	}
	limit := piece
	if w.isCondensed(r.Result, r.Seq) {
		limit = min(limit, summary.CondensedChars)
	}
	at := shortening{r.Seq, limit}
	text, ok := w.shortened[at]
	if !ok {
		text = w.short(r.Result, piece, r.Seq)
		if w.shortened == nil {
			w.shortened = map[shortening]string{}
		}
		w.shortened[at] = text
	}
	return text
}

// shortening caches a shortened result by its length, because turns are tried with several rooms
// and most results come out the same in all of them.
type shortening struct {
	seq   uint64
	limit int
}

// isCondensed reports whether a text is shown condensed.
func (w *window) isCondensed(b graph.Body, seq uint64) bool {
	return w.mode != CondenseOff && w.old(seq) && b.Chars > summary.CondenseAbove
}

// short returns the text of a result, shortened without a model.
func (w *window) short(b graph.Body, piece int, seq uint64) string {
	switch {
	case w.isCondensed(b, seq) && w.mode == CondenseClear:
		return fmt.Sprintf("[cleared: %d characters; whole: sequence %d in the log]", b.Chars, seq)
	case w.isCondensed(b, seq):
		return condense(b, min(summary.CondensedChars, piece), seq)
	case b.Chars > piece || !b.Whole():
		return condense(b, piece, seq)
	}
	return plain.Text(b.Text)
}

// condensedNote says how much a text was shortened, and where the whole text is.
func condensedNote(b graph.Body, kept int, seq uint64) string {
	return fmt.Sprintf("[condensed from %d to %d characters; whole: sequence %d in the log]", b.Chars, kept, seq)
}

// complaints lists the words that make a line worth keeping, by first letter. Searching letter by
// letter is far faster than a regular expression.
var complaints = func() (by [utf8.RuneSelf][]string) {
	for _, word := range []string{
		"error", "Error", "ERROR", "fail", "Fail", "FAIL", "panic", "fatal", "Fatal", "FATAL",
		"xception", "raceback", "denied", "not found", "No such file",
	} {
		by[word[0]] = append(by[word[0]], word)
	}
	return by
}()

// complains reports whether a line mentions an error. It reads only the beginning of a very long
// line.
func complains(line string) bool {
	line = line[:min(len(line), 1_000)]
	for i := range len(line) {
		if line[i] >= utf8.RuneSelf {
			continue
		}
		for _, word := range complaints[line[i]] {
			if strings.HasPrefix(line[i:], word) {
				return true
			}
		}
	}
	return false
}

// condense keeps a result's first lines, lines in between that mention an error, and last lines, in
// at most limit characters. No other code condenses results.
func condense(b graph.Body, limit int, seq uint64) string {
	if b.Chars <= limit && b.Whole() {
		return plain.Text(b.Text)
	}
	note := func(kept int) string { return condensedNote(b, kept, seq) }
	const gap = "[…]"
	room := limit - plain.Length(note(b.Chars)) - 2*(plain.Length(gap)+1) - 1
	text := plain.Text(b.Text)
	if room < minPiece {
		return plain.Clip(strings.ReplaceAll(text, "\n", " "), max(1, limit))
	}
	head := wholeLines(plain.Prefix(text, room/2))
	rest := text[len(head):]
	tail := lastLines(rest, room/4)
	if !b.Whole() {
		tail = "" // the read model lacks the end
	}
	middle := complaintsIn(rest[:len(rest)-len(tail)], room-1-plain.Length(head)-plain.Length(tail)) // it has line ends on both sides
	if middle == "" && tail != "" {
		tail = lastLines(rest, room-plain.Length(head))
	}
	parts := []string{head, gap}
	if middle != "" {
		parts = append(parts, middle, gap)
	}
	if tail != "" {
		parts = append(parts, tail)
	}
	kept := plain.Length(head) + plain.Length(middle) + plain.Length(tail)
	return strings.Join(append(parts, note(kept)), "\n")
}

// wholeLines cuts a text after its last line end, if that is in its second half.
func wholeLines(text string) string {
	if i := strings.LastIndexByte(text, '\n'); i > len(text)/2 {
		return text[:i]
	}
	return text
}

// lastLines returns about the last n characters of a text, from the beginning of a line if one is
// in the first half of them.
func lastLines(text string, n int) string {
	text = plain.Suffix(text, n)
	if i := strings.IndexByte(text, '\n'); i >= 0 && i < len(text)/2 {
		return text[i+1:]
	}
	return text
}

// complaintsIn collects lines that mention an error in at most room characters. It takes only the
// beginning of a long line.
func complaintsIn(text string, room int) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !complains(line) {
			continue
		}
		line = plain.Clip(line, 200)
		if room -= plain.Length(line) + 1; room < 0 {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
