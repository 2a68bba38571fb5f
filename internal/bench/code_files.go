package bench

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window/code"
)

// codeSession is a recorded session with what its calls showed and changed in files.
type codeSession struct {
	id              string
	root            string // its working directory, "" if unknown
	began           time.Time
	events          []events.Event
	facts           []codeFact
	asked           int                  // row of the first user message
	calls           []int                // rows of calls
	seqs            [2][]uint64          // of each row, with and without an index
	known           map[string]*codeFile // by path from the root, when it began
	indexed, scopes int                  // in the index then
}

// codeFact is what a call showed or changed in a file.
type codeFact struct {
	at   time.Time // no earlier than those before it in the session
	row  int       // of the call
	done int       // row of the result
	root string
	path string // from the root
	kind files.Kind

	first       int // the number of the first line that a read returned
	whole       bool
	text        string // read, or written
	old, change []string
}

// codeFile is what calls have shown of a file. It is never modified.
type codeFile struct {
	lines []string
	shown []bool // by line; a line that was not shown is empty
}

// text is the content of a file, with empty lines in place of lines that were never shown.
func (f *codeFile) text() string {
	if f == nil {
		return ""
	}
	return strings.Join(f.lines, "\n") + "\n"
}

func newCodeFile(text string) *codeFile {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return &codeFile{lines, slices.Repeat([]bool{true}, len(lines))}
}

// after returns a file as it is after a call, or nil if nothing is known about it.
func (f *codeFile) after(fact *codeFact) *codeFile {
	switch {
	case len(fact.old) > 0:
		return f.edited(fact)
	case fact.kind == files.KindWrite || fact.whole:
		return newCodeFile(fact.text)
	case fact.first > 0:
		out, _ := f.with(fact.first-1, strings.Split(fact.text, "\n"))
		return out
	}
	return f
}

// with puts lines that a read showed into the file, and returns where: if the file already holds the first and the last
// of them, at their places, because it may have moved since it was seen; otherwise at their line numbers.
func (f *codeFile) with(at int, lines []string) (out *codeFile, from int) {
	if f == nil {
		f = &codeFile{}
	}
	from, to := at, at+len(lines)
	if a, i, b, j := f.anchors(lines); a >= i && b >= a {
		from, to = a-i, b+len(lines)-j
	}
	out = &codeFile{slices.Clone(f.lines), slices.Clone(f.shown)}
	for len(out.lines) < to {
		out.lines, out.shown = append(out.lines, ""), append(out.shown, false)
	}
	out.lines = slices.Replace(out.lines, from, to, lines...)
	out.shown = slices.Replace(out.shown, from, to, slices.Repeat([]bool{true}, len(lines))...)
	return out, from
}

// anchors finds the first and the last of those lines that the file holds exactly once. It returns their places in the
// file, -1 if there are none, and their places among the lines.
func (f *codeFile) anchors(lines []string) (a, i, b, j int) {
	places := make(map[string]int, len(f.lines))
	for n, line := range f.lines {
		if _, again := places[line]; again {
			n = -1
		}
		places[line] = n
	}
	a, b = -1, -1
	for n, line := range lines {
		if place, ok := places[line]; ok && place >= 0 && len(strings.TrimSpace(line)) >= minLine {
			if b, j = place, n; a < 0 {
				a, i = place, n
			}
		}
	}
	return a, i, b, j
}

// edited applies an edit, as far as the replaced text is known.
func (f *codeFile) edited(fact *codeFact) *codeFile {
	if f == nil {
		return nil
	}
	for i, old := range fact.old {
		from, to, ok := f.lookup(old)
		if !ok {
			continue
		}
		change := ""
		if i < len(fact.change) {
			change = fact.change[i]
		}
		lines := strings.Split(strings.Replace(strings.Join(f.lines[from:to], "\n"), old, change, 1), "\n")
		f = &codeFile{
			slices.Concat(f.lines[:from], lines, f.lines[to:]),
			slices.Concat(f.shown[:from], slices.Repeat([]bool{true}, len(lines)), f.shown[to:]),
		}
	}
	return f
}

// lookup returns the range of lines that hold a text; to is excluded.
func (f *codeFile) lookup(text string) (from, to int, ok bool) {
	if f == nil || text == "" {
		return 0, 0, false
	}
	before, _, ok := strings.Cut(f.text(), text)
	from = strings.Count(before, "\n")
	return from, min(from+strings.Count(text, "\n")+1, len(f.lines)), ok
}

// read reads what the calls of a session did to files.
func (s *codeSession) read() error {
	table, pending := files.DefaultTable(), map[string][]codeFact{}
	var now time.Time
	s.asked = -1
	for row, e := range s.events {
		if e.Time.After(now) {
			now = e.Time // clocks of agents run backwards
		}
		if row == 0 || s.began.IsZero() {
			s.began = now
		}
		r, err := events.Record(e)
		if err != nil {
			return err
		}
		switch p := r.Payload.(type) {
		case *events.MessageCreated:
			if p.Role == "user" && s.asked < 0 {
				s.asked = row
			}
		case *events.ToolCalled:
			s.calls = append(s.calls, row)
			for _, a := range table.FromCall(files.Call{Tool: p.ToolName, Arguments: p.Arguments, Cwd: s.root}) {
				if a.Kind == files.KindRead || a.Kind == files.KindWrite {
					pending[p.ToolCallID] = append(pending[p.ToolCallID], newCodeFact(row, a, p.Arguments))
				}
			}
		case *events.ToolReturned:
			list := pending[p.ToolCallID]
			if delete(pending, p.ToolCallID); len(list) != 1 || p.Success != nil && !*p.Success {
				continue // with several files it is not known which part of a result belongs to which
			}
			fact := list[0]
			if fact.at, fact.done = now, row; fact.kind == files.KindRead {
				if fact.text, fact.first = code.Unnumbered(plain.Lines(p.Text())); fact.first == 0 {
					continue
				}
				fact.whole = fact.whole && fact.first == 1
			}
			s.facts = append(s.facts, fact)
		}
	}
	return nil
}

// newCodeFact begins a fact with what a call says.
func newCodeFact(row int, a files.Access, arguments json.RawMessage) codeFact {
	f := codeFact{row: row, path: a.Path, kind: a.Kind}
	if a.Kind == files.KindWrite {
		if f.change, f.old = code.Changes(string(arguments)); len(f.old) == 0 {
			f.text = strings.Join(f.change, "\n")
		}
		return f
	}
	var part struct{ Limit, Offset any }
	f.whole = json.Unmarshal(arguments, &part) == nil && part.Limit == nil && part.Offset == nil
	return f
}
