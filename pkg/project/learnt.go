package project

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/plain"
)

// The user's messages in which corrections and instructions are looked for: longer ones are pasted plans
// and logs.
const (
	maxInstructing = 4_000 // characters of the message
	maxLesson      = 240   // characters of the lesson
	minLesson      = 12
	minDense       = 6 // of a lesson in Chinese or Japanese
	maxLessons     = 3 // of one message
)

// sentences also end before the next one without a space, where languages are written so.
var sentences = regexp.MustCompile(`[^.!?。！？។။\n]+(?:[.!?]+(?:[^\s.!?。！？។။][^.!?。！？។။\n]*)?)*[。！？។။]*`)

// occasion is when a user said something.
type occasion int

const (
	opening  occasion = iota // nothing was done yet that could be corrected
	later                    // the first sentences may correct what the agent did
	refusing                 // a command was refused, so the first sentences say what was wrong with it
)

// lessons of what a user said: what it corrects, and what it asks for in general.
func lessons(text string, when occasion) (list []string) {
	if utf8.RuneCountInString(text) > maxInstructing || strings.Contains(text, "```") {
		return nil
	}
	text = plain.Text(text)
	for i, s := range sentences.FindAllString(text, 64) {
		s = strings.TrimLeft(strings.TrimSpace(s), "-*•>#1234567890.) ")
		least := minLesson
		if isDense(s) {
			least = minDense
		}
		if n := utf8.RuneCountInString(s); n < least || n > maxLesson || asks(s) || !spoken(s) {
			continue
		}
		if instructs(s) || i < 2 && (when == refusing || when == later && corrects(s)) {
			if list = append(list, s); len(list) == maxLessons {
				break
			}
		}
	}
	return list
}

// asks reports whether a sentence is a question.
func asks(s string) bool {
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") || asking.MatchString(s)
}

// spoken reports whether a sentence is natural language: mostly words, not a log or code.
func spoken(s string) bool {
	if strings.ContainsAny(s, "{}|\t<>") || strings.Contains(s, ":=") || strings.Contains(s, " //") || strings.Count(s, `"`)%2 == 1 {
		return false // half of a quotation is a piece of a pasted text
	}
	letters, spaces := 0, 0
	for _, r := range s {
		switch {
		case r == ' ':
			spaces++
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f:
			letters++
		}
	}
	return (spaces >= 2 || isUnspaced(s)) && letters*10 >= len([]rune(s))*6
}

var (
	troubled = regexp.MustCompile(`(?i)(error|fail(ed|ure)?\b|panic|undefined|cannot|can't|not found|no such|denied|refused|fatal|exception|unexpected|invalid|exit (code|status) [1-9])`)
	code     = regexp.MustCompile(`\(.*[({;,)]$`) // a line of source code that a tool quotes
	boring   = regexp.MustCompile(`(?i)^(\s*$|exit code \d+\s*$|<error>|\+ |==+|--+|error:\s*$)`)
)

// inTrouble are texts, in lower case: a line that [troubled] matches has at least one of them. Looking for them costs a
// tenth of the expression.
var inTrouble = []string{"error", "fail", "panic", "undefined", "cannot", "can't", "not found", "no such", "denied", "refused", "fatal", "exception", "unexpected", "invalid", "exit "}

// mayTrouble reports whether [troubled] may match a text, or a line of it. It may be true without a match.
func mayTrouble(text string) bool {
	lower := strings.ToLower(text)
	for _, s := range inTrouble {
		if strings.Contains(lower, s) {
			return true
		}
	}
	return strings.Contains(lower, "\u017f") // the long s, which a case-insensitive expression takes for an s
}

// maxTrouble is the most that is kept of an error, in characters.
const maxTrouble = 200

// TroubleOf returns the line of a failed call that says best what went wrong, at most 200 characters, "" if none does.
func TroubleOf(p *events.ToolReturned) string {
	if line := trouble(p.Error); line != "" && troubled.MatchString(line) {
		return line
	}
	return trouble(p.Text())
}

// trouble returns the line of a failed result that says best what went wrong.
func trouble(result string) string {
	last := ""
	n := 0
	result = plain.Text(plain.NameData(result))
	may := mayTrouble(result)
	for line := range strings.SplitSeq(result, "\n") {
		line = strings.TrimSpace(line)
		if n++; n > 2_000 {
			break
		}
		if boring.MatchString(line) {
			continue
		}
		if may && mayTrouble(line) && troubled.MatchString(line) && !code.MatchString(line) {
			return plain.Clip(line, maxTrouble)
		}
		last = line
	}
	return plain.Clip(last, maxTrouble)
}
