package summary

import (
	"strings"
	"unicode/utf8"

	"mneme/events"
)

// maxNamed is how many files and tools the text of a summary names.
const maxNamed = 8

// Text renders a summary as contexts show it, in Markdown: without a heading, and what is
// empty left out.
func Text(p *events.SummaryWritten) string {
	var b strings.Builder
	part := func(name, text string) {
		if text == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("**" + name + "**: " + text)
	}
	part("Conversation", p.Conversation)
	part("Actions", p.Actions)
	part("Key findings", strings.Join(p.Findings, "; "))
	part("Topics", strings.Join(p.Topics, ", "))
	part("Files", named(p.Files))
	part("Tools", named(p.Tools))
	return b.String()
}

// Chars is the length of [Text] in characters.
func Chars(p *events.SummaryWritten) int { return utf8.RuneCountInString(Text(p)) }

// named joins the first few of a list.
func named(list []string) string {
	if len(list) > maxNamed {
		return strings.Join(list[:maxNamed], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}
