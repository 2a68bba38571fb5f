package summary

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTitle is the maximum length of a title in characters.
const MaxTitle = 60

// markup matches the tagged blocks that runtimes add to a user's message, and all other
// tags.
var markup = regexp.MustCompile(`(?s)<(system-reminder|command-name|command-message|command-args|local-command-stdout|environment_context|user_instructions)[^>]*>.*?</(system-reminder|command-name|command-message|command-args|local-command-stdout|environment_context|user_instructions)>|</?[a-zA-Z][a-zA-Z_-]*[^>]*>`)

// Title makes a title from a user's first message: its first sentence, or the text that it
// introduces with a colon, cut between words. It returns "" if the message has no words.
func Title(message string) string {
	text := markup.ReplaceAllString(message, " ")
	introduced := ""
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSpace(line), "#>*-– \t`")
		line = strings.Join(strings.Fields(line), " ")
		if strings.IndexFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 {
			continue
		}
		if introduced == "" && strings.HasSuffix(line, ":") {
			introduced = line
			continue
		}
		return CutTitle(sentence(line))
	}
	return CutTitle(sentence(introduced))
}

// sentence returns the first sentence of a line that is long enough to say something.
func sentence(line string) string {
	const least = 12 // characters
	for i, r := range line {
		if (r == '.' || r == '!' || r == '?') && i >= least && (i+1 == len(line) || line[i+1] == ' ') {
			if r == '?' {
				i++
			}
			return line[:i]
		}
	}
	return strings.TrimRight(line, ":;, ")
}

// CutTitle cuts a title to [MaxTitle], between words or, if one word is too long, inside
// it.
func CutTitle(text string) string {
	if utf8.RuneCountInString(text) <= MaxTitle {
		return text
	}
	runes := []rune(text)[:MaxTitle-1]
	end := len(runes)
	for i := len(runes) - 1; i > MaxTitle/2; i-- {
		if runes[i] == ' ' {
			end = i
			break
		}
	}
	return strings.TrimRight(string(runes[:end]), " ,;:-") + "…"
}
