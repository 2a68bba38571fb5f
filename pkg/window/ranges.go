package window

import (
	"strings"

	"mneme.dev/mneme/pkg/plain"
)

// Range is a place in the Markdown of a context: characters, in Unicode code points from 0, End not
// included; and lines, which LF alone ends, from 1, LastLine included. Items begin and end with
// whole lines, so each line belongs to at most one item.
type Range struct {
	Start     int `json:"start"`
	End       int `json:"end"`
	FirstLine int `json:"first_line"`
	LastLine  int `json:"last_line"`
}

// ruler measures the Markdown that is written to it.
type ruler struct{ chars, lines int }

// WriteString implements output.
func (r *ruler) WriteString(s string) (int, error) {
	r.chars += plain.Length(s)
	r.lines += strings.Count(s, "\n")
	return len(s), nil
}

// WriteByte implements output, for ASCII.
func (r *ruler) WriteByte(c byte) error {
	if r.chars++; c == '\n' {
		r.lines++
	}
	return nil
}

// MarkRanges adds the ranges of the items to the manifest.
func (c *Context) MarkRanges() {
	r := &ruler{}
	_, _ = r.WriteString(FirstLine + "\n\n")
	ranges := map[string][]Range{}
	for i := range c.Sections {
		if i > 0 {
			_ = r.WriteByte('\n')
		}
		s := &c.Sections[i]
		list := make([]Range, 0, len(s.Items))
		begun := false
		s.write(r, func() {
			if begun = !begun; begun {
				list = append(list, Range{Start: r.chars, FirstLine: r.lines + 1})
				return
			}
			last := &list[len(list)-1]
			last.End, last.LastLine = r.chars, r.lines
		})
		ranges[s.Name] = list
	}
	for i := range c.Manifest.Sections {
		c.Manifest.Sections[i].Ranges = ranges[c.Manifest.Sections[i].Name]
	}
}
