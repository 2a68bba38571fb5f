package summary

import (
	"strings"
	"unicode/utf8"

	"mneme.dev/mneme/events"
)

// Limits for files and tools in a summary's text, in characters. The rest is for the
// writer's draft.
const (
	maxFiles = 240
	maxTools = 100
	MaxDraft = MaxText - maxFiles - maxTools - 100 // 100 for the names of the parts
)

// Part is a part of a summary's text.
type Part struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Parts returns what contexts show of a summary. Empty parts are left out, and of files and
// tools only the first are shown.
func Parts(conversation, actions string, findings, topics, files, tools []string) (parts []Part) {
	for _, p := range []Part{
		{"Conversation", conversation}, {"Actions", actions}, {"Key findings", strings.Join(findings, "; ")}, {"Topics", strings.Join(topics, ", ")},
		{"Files", named(files, maxFiles)}, {"Tools", named(tools, maxTools)},
	} {
		if p.Text != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// Text renders a summary as contexts show it: Markdown without a heading.
func Text(p *events.SummaryWritten) string {
	var lines []string
	for _, part := range Parts(p.Conversation, p.Actions, p.Findings, p.Topics, p.Files, p.Tools) {
		lines = append(lines, "**"+part.Name+"**: "+part.Text)
	}
	return strings.Join(lines, "\n")
}

// Chars returns the length of [Text] in characters.
func Chars(p *events.SummaryWritten) int { return utf8.RuneCountInString(Text(p)) }

// named joins the first names of a list that fit into the given number of characters.
func named(list []string, most int) string {
	const more = ", …"
	text := ""
	for i, name := range list {
		longer := name
		if i > 0 {
			longer = text + ", " + name
		}
		if utf8.RuneCountInString(longer) > most-utf8.RuneCountInString(more) {
			if text == "" {
				return "…"
			}
			return text + more
		}
		text = longer
	}
	return text
}
