package window

import (
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window/marks"
)

// StrategyProject is the strategy of the context of a project, which is made by package projects.
const StrategyProject = "project"

// FrameCost is what the frame of the sections takes of the budget of a context, whatever its format.
const FrameCost = frameCost

// Part is a section that another package has filled.
type Part struct {
	Section
	Share   int // percent of the budget
	Room    int // the characters that it had, heading included
	Dropped []Dropped
}

// Measured sets the Chars of an item.
func (it Item) Measured() Item { return it.measured() }

// Room returns what is left for the items of a section: its room without its heading and what surrounds it.
func Room(heading string, room int) int { return room - headingCost(heading) - 1 }

// Compose makes a context of sections in page order. c names what they are about; the sections must fit in c.MaxChars.
func Compose(c Context, parts []Part) *Context {
	c.Sections = []Section{}
	m := &Manifest{Strategy: c.Strategy, AsOf: c.AsOf, Budget: c.MaxChars}
	for _, p := range parts {
		sm := SectionManifest{Name: p.Name, Share: p.Share, Budget: p.Room, Used: sectionCost(p.Heading, p.Items), Items: len(p.Items), Dropped: p.Dropped, EventIDs: []string{}}
		if sm.Dropped == nil {
			sm.Dropped = []Dropped{}
		}
		if len(p.Items) > 0 {
			c.Sections = append(c.Sections, p.Section)
		}
		m.Sections = append(m.Sections, sm)
	}
	c.finish(m)
	return &c
}

// finish adds what the manifest says about the whole Markdown.
func (c *Context) finish(m *Manifest) {
	text := c.Markdown()
	m.Hash = hashOf(text)
	if text != "" {
		m.Frame = firstLineCost
		m.Mark = marks.ID(text, m.Hash)
	}
	c.mark = m.Mark
	m.Used = plain.Length(text)
	c.Chars, c.Manifest = m.Used, m
}
