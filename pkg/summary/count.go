package summary

import (
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/plain"
)

// Count returns how many characters of an event a summary of level 1 reads: 0 for events
// that it skips.
func Count(p events.Payload) int {
	switch p := p.(type) {
	case *events.MessageCreated:
		return count(p.Content, MaxMessage)
	case *events.ToolCalled:
		return count(p.Text(), MaxResult)
	case *events.ToolReturned:
		return count(p.Text(), MaxResult)
	default:
		return 0
	}
}

// count returns how many characters of a text are read, with names in place of images and other files.
func count(text string, most int) int {
	return min(utf8.RuneCountInString(plain.NameData(text)), most)
}

// Cut returns the beginning of a text, cut to at most the given number of characters.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}
