package code

import (
	"cmp"
	"slices"

	"mneme.dev/mneme/pkg/plain"
)

// Tool takes the place of a tool's name for code that no tool has shown yet.
const Tool = "mneme index"

// Indexed is code of the conversation's project from its index.
type Indexed struct {
	Project string
	Root    string // the folder that was indexed
	Seq     uint64 // of the event that says so
	// Done reports that no indexing is running. While one runs, searches rank by words alone, because the missing
	// vectors would change what counts as similar.
	Done      bool
	ByMeaning bool    // the search also compared meaning
	Found     int     // scopes that fit
	Scopes    []Scope // best first, at most MaxScopes
}

// Scope is a piece of a file of the project.
type Scope struct {
	Path    string // as tools name it
	EventID string
	Seq     uint64 // of the event that indexed the file
	N       int    // among the scopes of the file
	Start   int    // its first line
	Text    string
}

// Limits of what is taken from an index.
const (
	// MaxScopes is how many scopes of an index are considered for a context.
	MaxScopes = 20
	// InitialScopes is how many are searched for, before those that fit far less well than the best are left out.
	InitialScopes = 100
)

// LeftOut is a scope that Cut did not make into a passage.
type LeftOut struct {
	Passage // all of it
	Reason  string
}

// Reasons to leave a scope out.
const (
	reasonExcluded = "excluded by a pattern"
	reasonShort    = "its lines are too short to tell apart"
	reasonKnown    = "its lines are shown, newer elsewhere or replaced"
)

// SetIndexed adds the code of an index to the texts that Cut cuts. Each scope is cut to what a passage can hold.
func (c *Search) SetIndexed(x *Indexed) {
	c.indexed, c.excluded = nil, nil
	for i := range x.Scopes[:min(len(x.Scopes), MaxScopes)] {
		s := &x.Scopes[i]
		text := firstLines(plain.Lines(s.Text), passageChars)
		if text == "" {
			continue
		}
		p := Passage{Path: s.Path, Tool: Tool, EventID: s.EventID, Seq: s.Seq, of: newFragment(text, s.Start, plain.Length(text)), part: s.N + 1, wordsOnly: !x.Done}
		if c.src.Excluded(s.Path) {
			c.excluded = append(c.excluded, p.leftOut(reasonExcluded))
			continue
		}
		c.indexed = append(c.indexed, p)
	}
	// Newest first, like calls; scopes of one file in the order of their lines.
	slices.SortStableFunc(c.indexed, func(a, b Passage) int { return cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(a.part, b.part)) })
}

// firstLines cuts a text after the last line that fits.
func firstLines(text string, most int) string {
	chars, end := 0, 0
	for at := 0; at < len(text); {
		next := len(text)
		for i := at; i < len(text); i++ {
			if text[i] == '\n' {
				next = i + 1
				break
			}
		}
		if chars += plain.Length(text[at:next]) + 1; chars > most {
			break
		}
		at, end = next, next
	}
	for end > 0 && text[end-1] == '\n' {
		end--
	}
	if end == 0 {
		return plain.Clip(text, most)
	}
	return text[:end]
}

// addIndexed adds the indexed scopes that are newer than a sequence. Texts added before are newer than these scopes, so
// lines that tools have shown since the file was indexed are left out of them.
func (c *Search) addIndexed(next int, above uint64, known *knownLines) int {
	for next < len(c.indexed) && c.indexed[next].Seq > above {
		c.limit++ // scopes do not reduce the room for what tools showed
		p, n := c.indexed[next], len(c.Passages)
		if c.add(p, known); len(c.Passages) == n {
			c.Left = append(c.Left, p.leftOut(known.whyNone()))
		}
		next++
	}
	return next
}

func (p Passage) leftOut(reason string) LeftOut {
	p.to = len(p.of.lines)
	return LeftOut{p, reason}
}

// whyNone says why the last marked text has no passage.
func (k *knownLines) whyNone() string {
	for _, m := range k.marks {
		if m != markShort {
			return reasonKnown
		}
	}
	return reasonShort
}
