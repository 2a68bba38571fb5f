package code

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
)

// fragment is code that a call showed or wrote, prepared for cutting into passages. A line longer
// than a passage keeps only its beginning.
type fragment struct {
	lines []fragmentLine
	text  string
	first int // number of its first line in the file, 0 if unknown
	chars int // of the result or the arguments that it comes from
}

// fragmentLine is a line of a text.
type fragmentLine struct {
	hash  uint64 // of the text that identifies it, see told
	begin uint32 // in the text, in bytes
	chars uint16
	told  uint16 // characters of the text that identifies it
}

// newFragment prepares a text whose line ends are LF.
func newFragment(text string, first, chars int) *fragment {
	t := &fragment{first: first, chars: chars, lines: make([]fragmentLine, 0, 1+strings.Count(text, "\n"))}
	var w strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if len(t.lines) > 0 {
			w.WriteByte('\n')
		}
		line = plain.Clip(line, passageChars)
		tells := told(line)
		t.lines = append(t.lines, fragmentLine{hash: hashOf(tells), begin: uint32(w.Len()), chars: uint16(plain.Length(line)), told: uint16(plain.Length(tells))})
		w.WriteString(line)
	}
	t.text = strings.Clone(w.String()) // which may have grown to twice as much
	return t
}

// between returns lines from..to, to excluded.
func (t *fragment) between(from, to int) string {
	end := len(t.text)
	if to < len(t.lines) {
		end = int(t.lines[to].begin) - 1
	}
	return t.text[t.lines[from].begin:end]
}

// writtenText returns the text that a call's arguments write, and the hashes of the lines that it
// replaces.
func writtenText(arguments graph.Body) (text *fragment, gone []uint64) {
	written, replaced := Changes(arguments.Text)
	for _, text := range replaced {
		for line := range strings.SplitSeq(text, "\n") {
			gone = append(gone, hashOf(told(line)))
		}
	}
	return newFragment(strings.Join(written, "\n"), 0, arguments.Chars), gone
}

// bytes estimates the memory used.
func (t *fragment) bytes() int {
	if t == nil {
		return 0
	}
	return len(t.text) + 16*len(t.lines) + 64
}

// told returns what identifies a line: as much of it as is shown, without its indentation.
func told(line string) string { return strings.TrimSpace(plain.Clip(line, passageChars)) }

// hashOf identifies a line in comparisons.
func hashOf(text string) uint64 { return xxhash.Sum64String(text) }

// numberOf returns the number that a tool put before a line, and the line without it.
func numberOf(line string) (n int, rest string, ok bool) {
	trimmed := strings.TrimLeft(line, " ")
	digits := 0
	for digits < len(trimmed) && trimmed[digits] >= '0' && trimmed[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(trimmed[:digits])
	if err != nil {
		return 0, line, false
	}
	for _, sign := range [...]string{"→", "\t", ": ", ":", "|"} {
		if rest, ok = strings.CutPrefix(trimmed[digits:], sign); ok {
			return n, rest, true
		}
	}
	return 0, line, false
}

// Unnumbered returns the text of a file without the line numbers that a tool added, and the number
// of the first line, 0 if there are none.
func Unnumbered(text string) (plain string, first int) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		n, rest, ok := numberOf(line)
		switch {
		case !ok && first == 0:
			return text, 0
		case !ok:
			return strings.Join(lines[:i], "\n"), first // added below by a tool
		case i > 0 && n != first+i:
			return text, 0
		case i == 0:
			first = n
		}
		lines[i] = rest
	}
	return strings.Join(lines, "\n"), first
}

// The names that tools use for what they write and what they replace.
var (
	writtenNames  = []string{"content", "contents", "file_text", "new_string", "new_str", "newText", "new_text", "text", "code_edit"}
	replacedNames = []string{"old_string", "old_str", "oldText", "old_text"}
)

// Changes returns the texts that a call's arguments write, and those that they replace.
func Changes(arguments string) (written, replaced []string) {
	var object map[string]any
	if json.Unmarshal([]byte(arguments), &object) != nil {
		return nil, nil
	}
	edits := []map[string]any{object}
	if list, ok := object["edits"].([]any); ok {
		for _, one := range list {
			if edit, ok := one.(map[string]any); ok {
				edits = append(edits, edit)
			}
		}
	}
	take := func(edit map[string]any, names []string, dst []string) []string {
		for _, name := range names {
			if text, ok := edit[name].(string); ok && text != "" {
				dst = append(dst, plain.Lines(text))
			}
		}
		return dst
	}
	for _, edit := range edits {
		written, replaced = take(edit, writtenNames, written), take(edit, replacedNames, replaced)
	}
	return written, replaced
}
