package insight

import (
	"regexp"
	"strings"

	"mneme.dev/mneme/pkg/plain"
)

// maxError is the longest normalised error in characters.
const maxError = 160

var (
	tagsIn    = regexp.MustCompile(`</?[a-z_]+>`) // around the errors of some agents
	pathsIn   = regexp.MustCompile(`(?:\b[A-Za-z]:)?[\w.@~+-]*(?:[/\\][\w.@~+-]+)+[/\\]?`)
	idsIn     = regexp.MustCompile(`\b(?:0x[0-9a-fA-F]+|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{13,22}|[0-9a-f]{7,64}|[A-Za-z]+_[0-9][0-9A-Za-z]{9,})\b`)
	numbersIn = regexp.MustCompile(`\d+(?:[.,:]\d+)*`)
)

// Normalise returns an error in the form in which errors are compared: <path> stands for paths, <id> for ids and
// hexadecimal numbers, <n> for other numbers. Tags are left out.
func Normalise(text string) string {
	text = plain.Prefix(plain.Flat(text), 4*maxError)
	text = strings.TrimSpace(tagsIn.ReplaceAllString(text, ""))
	text = pathsIn.ReplaceAllString(text, "<path>")
	text = idsIn.ReplaceAllStringFunc(text, func(id string) string {
		if strings.Trim(id, "0123456789") == "" || !strings.ContainsAny(id, "0123456789") { // a number; "defaced" is a word
			return id
		}
		return "<id>"
	})
	return plain.Clip(numbersIn.ReplaceAllString(text, "<n>"), maxError)
}
