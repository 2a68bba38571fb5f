package llm

import (
	"context"
	_ "embed" // the prompt
	"fmt"
	"strings"
	"unicode"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/summary"
)

//go:embed prompts/rewrite.txt
var rewritePrompt string

// Limits of a rewritten query, in characters.
const (
	MaxRewritten = 1_000 // of the query
	MaxAdded     = 400   // of what is added to it; the rest is cut
)

// Rewrite returns other words for a query of at most [MaxRewritten] characters, to search for in addition: one line
// without a search's marks. It returns the same errors as [Writer.Write].
func (w *Writer) Rewrite(ctx context.Context, query string) (string, summary.Usage, error) {
	var usage summary.Usage
	user := fmt.Sprintf("<record>\n%s\n</record>\n\nWrite other words for this query.", inside(firstRunes(query, MaxRewritten)))
	got, err := w.ask(ctx, request{system: newPrompt(rewritePrompt, "").text, user: user}, &usage)
	if err != nil {
		return "", usage, err
	}
	added, unusable := readAdded(got.text)
	if unusable != nil {
		w.meter.failed(unusable.Class)
		return "", usage, unusable
	}
	return added, usage, nil
}

// readAdded takes the words of an answer. It removes quotes, asterisks and dashes before a word, because they are marks
// in a search.
func readAdded(text string) (string, *Error) {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("\"*“”„«»`", r) {
			return ' '
		}
		return r
	}, clean(text))
	var words []string
	chars := 0
	for word := range strings.FieldsSeq(text) {
		word = strings.TrimLeft(word, "-")
		if !strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			continue
		}
		if chars += 1 + plain.Length(word); chars > MaxAdded {
			break
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "", empty()
	}
	return strings.Join(words, " "), nil
}
