package window

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"mneme.dev/mneme/pkg/graph"
)

// codeText is what a call has shown or written of a file, with what it takes to cut it
// into passages. Of a line that is longer than a passage it has the beginning.
type codeText struct {
	lines []codeLine
	text  string
	first int // number of its first line in the file, 0 if that is not known
	chars int // of the result that it is from, or of the arguments
}

// codeLine is a line of a text.
type codeLine struct {
	hash  uint64 // of what it is told from others by
	begin uint32 // in the text, in bytes
	chars uint16
	told  uint16 // characters of what it is told from others by
}

// newCodeText prepares a text whose line ends are LF.
func newCodeText(text string, first, chars int) *codeText {
	t := &codeText{first: first, chars: chars, lines: make([]codeLine, 0, 1+strings.Count(text, "\n"))}
	var w strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if len(t.lines) > 0 {
			w.WriteByte('\n')
		}
		line = clip(line, codePassage)
		tells := told(line)
		t.lines = append(t.lines, codeLine{hash: hashOf(tells), begin: uint32(w.Len()), chars: uint16(length(line)), told: uint16(length(tells))})
		w.WriteString(line)
	}
	t.text = strings.Clone(w.String()) // which may have grown to twice as much
	return t
}

// between are lines, the last one not included.
func (t *codeText) between(from, to int) string {
	end := len(t.text)
	if to < len(t.lines) {
		end = int(t.lines[to].begin) - 1
	}
	return t.text[t.lines[from].begin:end]
}

// writtenText is what the arguments of a call write, and the hashes of the lines that it
// replaces.
func writtenText(arguments graph.Body) (text *codeText, gone []uint64) {
	written, replaced := changes(arguments.Text)
	for _, text := range replaced {
		for line := range strings.SplitSeq(text, "\n") {
			gone = append(gone, hashOf(told(line)))
		}
	}
	return newCodeText(strings.Join(written, "\n"), 0, arguments.Chars), gone
}

// bytes is about what it takes in memory.
func (t *codeText) bytes() int {
	if t == nil {
		return 0
	}
	return len(t.text) + 16*len(t.lines) + 64
}

// told is what a line is told from others by: as much of it as is shown, wherever it is
// indented.
func told(line string) string { return strings.TrimSpace(clip(line, codePassage)) }

// hashOf stands for a line where lines are compared.
func hashOf(text string) uint64 { return xxhash.Sum64String(text) }

// numberOf is the number that a tool has put before a line, and the line without it.
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

// unnumbered is the text of a file without the numbers that a tool has put before its
// lines, and the number of the first line, 0 if there are none.
func unnumbered(text string) (plain string, first int) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		n, rest, ok := numberOf(line)
		switch {
		case !ok && first == 0:
			return text, 0
		case !ok:
			return strings.Join(lines[:i], "\n"), first // what a tool adds below
		case i > 0 && n != first+i:
			return text, 0
		case i == 0:
			first = n
		}
		lines[i] = rest
	}
	return strings.Join(lines, "\n"), first
}

// How tools name what they write and what they replace.
var (
	writtenNames  = []string{"content", "contents", "file_text", "new_string", "new_str", "newText", "new_text", "text", "code_edit"}
	replacedNames = []string{"old_string", "old_str", "oldText", "old_text"}
)

// changes are the texts that the arguments of a call write, and those that they replace.
func changes(arguments string) (written, replaced []string) {
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
				dst = append(dst, unixLines(text))
			}
		}
		return dst
	}
	for _, edit := range edits {
		written, replaced = take(edit, writtenNames, written), take(edit, replacedNames, replaced)
	}
	return written, replaced
}
