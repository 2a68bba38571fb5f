package projects

import (
	"fmt"
	"strings"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

// maxTold is how many characters of a chapter are shown.
const maxTold = 900

// collectStory shows the newest chapters of the highest levels.
func collectStory(b *builder, room int) (items []window.Item) {
	for _, c := range b.chapters {
		texts := []string{c.Text}
		if c.Actions != "" {
			texts = append(texts, "Done: "+c.Actions)
		}
		if len(c.Findings) > 0 {
			texts = append(texts, "Found: "+strings.Join(c.Findings, "; "))
		}
		it := window.Item{Kind: window.KindNote, Session: c.ID, Seq: c.Seq, Label: chapterLabel(c.Chapter)}
		limit := maxTold
		if len(items) == 0 { // the first one is cut, so that there is always one
			limit = min(limit, room-it.Measured().Chars-spacing)
		}
		if limit < minTold {
			break
		}
		it.Text = clip(strings.Join(texts, " "), limit)
		items = append(items, it)
	}
	return items
}

const (
	minTold = 120 // characters of a chapter; fewer say nothing
	spacing = 8   // what a text adds to a label in addition to its own length
)

// chapterLabel says what a chapter covers.
func chapterLabel(c *project.Chapter) string {
	known := map[string]bool{}
	for _, t := range c.Told {
		known[t.ID] = true
	}
	label := fmt.Sprintf("%d sessions", len(known))
	if len(known) == 1 {
		label = "1 session"
	}
	if from, to := day(c.Began), day(c.Ended); from != "" && to != "" && from != to {
		label += ", " + from + " to " + to
	} else if from != "" {
		label += ", " + from
	}
	return label
}

func day(at string) string {
	if len(at) < 10 {
		return ""
	}
	return plain.Prefix(plain.Flat(at), 10)
}
