package window

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"mneme/pkg/files"
	"mneme/pkg/graph"
	"mneme/pkg/recall"
)

// Limits of what is looked at for the relevant code.
const (
	maxCodePassages = 100     // the newest ones
	maxCodeCalls    = 300     // the newest ones
	codePage        = 50      // calls read at once
	maxCodeChars    = 500_000 // about, of their texts
	codePassage     = 500     // characters
	leastCodeLine   = 20      // characters of a line that is told from others
	leastRepeat     = 3       // such lines, to be left out where they are repeated
	leastFresh      = 30      // characters of a passage that were not seen
	maxCodeQuery    = 1_000   // characters of what was said and done last
)

// code is what tools have shown and written of files.
type code struct {
	sources  []source            // the newest first, as far as they were read
	before   uint64              // calls below this sequence were not read; 0 if none will be
	looked   int                 // calls that were read
	chars    int                 // of the sources
	terms    map[string][]string // of passages, by their text
	beside   []uint64            // sequences of what the recent turns show
	passages []passage           // of what the recent turns do not show, the best first
}

// source is a text that a call has shown or written of a file.
type source struct {
	of       passage // without its text
	text     string
	first    int      // number of its first line, 0 if that is not known
	replaced []string // what it was written in place of
}

// passage is a piece of a file: lines that follow each other.
type passage struct {
	path       string
	start, end int // lines of the file, 0 if they are not known
	from, to   int // lines of its source, to not included
	text       string
	eventID    string
	seq        uint64
	turn       int
	score      float64
	cost       int // in characters, alone
	place      int // of its file, among those that are shown
}

var fileTools = files.DefaultTable()

// readCode reads what the next older calls have shown and written of files.
func (b *builder) readCode(ctx context.Context) error {
	c := b.code
	entries, err := b.src.Graph.Transcript(ctx, b.req.Conversation, graph.TranscriptQuery{Before: c.before, Limit: codePage, CallsOnly: true})
	if err != nil {
		return err
	}
	var calls []graph.Ref
	touched := make([]files.Access, len(entries))
	for i, e := range entries {
		if access, ok := b.touches(e.Call); ok {
			touched[i], calls = access, append(calls, e.Call.Ref())
		}
	}
	var results map[graph.Ref]graph.ToolResult
	if len(calls) > 0 {
		if results, err = b.src.Graph.Results(ctx, b.req.Conversation, calls, b.end-1); err != nil {
			return err
		}
	}
	for i, e := range entries {
		of := passage{path: touched[i].Path, turn: e.Call.Turn, seq: e.Call.Seq, eventID: e.Call.EventID}
		switch r, ok := results[e.Call.Ref()]; {
		case r.Success != nil && !*r.Success:
		case touched[i].Kind == files.KindWrite:
			written, replaced := changes(e.Call.Arguments.Text)
			c.chars += e.Call.Arguments.Chars
			c.sources = append(c.sources, source{of: of, text: strings.Join(written, "\n"), replaced: replaced})
		case ok:
			of.seq, of.eventID = r.Seq, r.EventID
			text, first := unnumbered(lineEnds.Replace(r.Result.Text))
			c.chars += r.Result.Chars
			c.sources = append(c.sources, source{of: of, text: text, first: first})
		}
	}
	if c.looked += codePage; len(entries) < codePage || c.looked >= maxCodeCalls || c.chars >= maxCodeChars {
		c.before = 0
		return nil
	}
	c.before = entries[len(entries)-1].Position().Seq
	return nil
}

// cutCode makes the passages: of a line that several sources have the newest counts, what
// was replaced is gone, and what is shown already is left out. It reads as many sources as
// that takes.
func (b *builder) cutCode(ctx context.Context, shown []Item) error {
	c := b.code
	known := knownLines{map[string]bool{}, map[string]bool{}}
	whole := map[uint64]bool{} // what is shown as it is
	for i := range shown {
		it := &shown[i]
		whole[it.Seq] = whole[it.Seq] || it.WholeChars == 0
		whole[it.ResultSeq] = it.ResultWholeChars == 0
		known.see(it.Text)
		if it.Result != nil {
			text, _ := unnumbered(*it.Result)
			known.see(text)
		}
		if it.Arguments != "" {
			written, _ := changes(it.Arguments)
			for _, text := range written {
				known.see(text)
			}
		}
	}
	c.passages = c.passages[:0]
	for i := 0; len(c.passages) < maxCodePassages; i++ {
		for i == len(c.sources) && c.before > 0 {
			if err := b.readCode(ctx); err != nil {
				return err
			}
		}
		if i == len(c.sources) {
			break
		}
		s := &c.sources[i]
		if whole[s.of.seq] {
			continue
		}
		c.add(s.of, s.text, s.first, known)
		for _, text := range s.replaced {
			for line := range strings.SplitSeq(text, "\n") {
				if line = told(line); !known.seen[line] {
					known.gone[line] = true
				}
			}
		}
	}
	return nil
}

// told is what a line is told from others by: as much of it as is shown, wherever it is
// indented.
func told(line string) string { return strings.TrimSpace(clip(line, codePassage)) }

// see notes the lines of a text.
func (k *knownLines) see(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = told(line); length(line) >= leastCodeLine {
			k.seen[line] = true
		}
	}
}

// touches is the file that a call reads or writes, if it is one alone.
func (b *builder) touches(c *graph.ToolCall) (files.Access, bool) {
	if !c.Arguments.Whole() {
		return files.Access{}, false
	}
	list := fileTools.FromCall(files.Call{Tool: c.ToolName, Arguments: json.RawMessage(c.Arguments.Text), Cwd: b.conversation.Cwd})
	list = slices.DeleteFunc(list, func(a files.Access) bool { return a.Kind != files.KindRead && a.Kind != files.KindWrite })
	if len(list) != 1 || b.excluded(list[0].Path) {
		return files.Access{}, false
	}
	return list[0], true
}

// knownLines are those that newer passages have or that are shown, and those that were
// replaced.
type knownLines struct{ seen, gone map[string]bool }

// add cuts a text into passages of what was not seen yet; first is the number of its first
// line, 0 if that is not known. A scrap of a larger text, of which little is new, is none.
func (c *code) add(of passage, text string, first int, known knownLines) {
	all := strings.Split(text, "\n")
	left := known.leftOut(all)
	from, chars, fresh := 0, 0, 0 // of the passage; fresh are characters that were not seen
	end := func(to int) {
		if scrap := to-from < len(all) && fresh < leastFresh; fresh > 0 && !scrap && len(c.passages) < maxCodePassages {
			p := of
			p.text, p.from, p.to = strings.Join(all[from:to], "\n"), from, to
			if first > 0 {
				p.start, p.end = first+from, first+to-1
			}
			c.passages = append(c.passages, p)
		}
		from, chars, fresh = to, 0, 0
	}
	contents := make([]string, len(all))
	for i, line := range all {
		all[i], contents[i] = clip(line, codePassage), told(line)
		if left[i] {
			end(i)
			from = i + 1
			continue
		}
		need := textCost(all[i]) + 2
		if chars+need > codePassage {
			end(i)
		}
		if n := length(contents[i]); n >= leastCodeLine && !known.seen[contents[i]] {
			fresh += n
		}
		chars += need
	}
	end(len(all))
	for _, content := range contents {
		if length(content) >= leastCodeLine {
			known.seen[content] = true
		}
	}
}

// leftOut tells which lines of a text are left out: those that were replaced, and where
// leastRepeat or more follow each other that were seen. Less is left, so that what stands
// around it can be read.
func (k *knownLines) leftOut(all []string) []bool {
	out := make([]bool, len(all))
	from, last, seen := 0, 0, 0 // of the lines at hand that were seen, with short ones between
	end := func() {
		if seen >= leastRepeat {
			for i := from; i <= last; i++ {
				out[i] = true
			}
		}
		seen = 0
	}
	for i, line := range all {
		content := told(line)
		switch {
		case length(content) < leastCodeLine:
		case k.seen[content]:
			if seen == 0 {
				from = i
			}
			last, seen = i, seen+1
		default:
			end()
			out[i] = k.gone[content]
		}
	}
	end()
	return out
}

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
				dst = append(dst, lineEnds.Replace(text))
			}
		}
		return dst
	}
	for _, edit := range edits {
		written, replaced = take(edit, writtenNames, written), take(edit, replacedNames, replaced)
	}
	return written, replaced
}

// rank scores the passages by what they say of a query, by how lately
// their file was touched, and by how lately they were shown, each up to 1; late is how much
// the last two count.
func (c *code) rank(query string, late float64) {
	texts := make([][]string, len(c.passages))
	for i := range c.passages {
		text := c.passages[i].text
		if c.terms[text] == nil {
			c.terms[text] = recall.AppendTerms(nil, text)
		}
		texts[i] = c.terms[text]
	}
	said := recall.Rank(query, texts)
	filesRank, callRank := map[string]int{}, map[uint64]int{}
	for i := range c.passages {
		p := &c.passages[i]
		if _, ok := filesRank[p.path]; !ok {
			filesRank[p.path] = len(filesRank)
		}
		if _, ok := callRank[p.seq]; !ok {
			callRank[p.seq] = len(callRank)
		}
		p.score = said[i] + late*(1/float64(1+filesRank[p.path])+3/float64(3+callRank[p.seq]))
	}
	slices.SortStableFunc(c.passages, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
}
