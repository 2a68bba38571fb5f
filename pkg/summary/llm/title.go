package llm

import (
	"context"
	_ "embed" // the prompt
	"fmt"
	"strings"

	"mneme.dev/mneme/pkg/summary"
)

//go:embed prompts/title.txt
var titlePrompt string

// maxAsked is how many characters of a message are used to make a title.
const maxAsked = 4_000

// Title names a conversation after its first message: one line of up to [summary.MaxTitle]
// characters. It returns the same errors as [Writer.Write].
func (w *Writer) Title(ctx context.Context, message string) (string, summary.Usage, error) {
	var usage summary.Usage
	got, err := w.ask(ctx, request{system: newPrompt(titlePrompt, "").text, user: fmt.Sprintf("<record>\nuser: %s\n</record>\n\nName the conversation that begins so.", inside(firstRunes(message, maxAsked)))}, &usage)
	if err != nil {
		return "", usage, err
	}
	title, unusable := readTitle(got.text)
	if unusable != nil {
		w.meter.failed(unusable.Class)
		return "", usage, unusable
	}
	return title, usage, nil
}

// readTitle extracts the name from a model's answer.
func readTitle(text string) (string, *Error) {
	title := strings.Trim(oneLine(clean(text)), "\"'`*#“”«». ")
	if title == "" {
		return "", empty()
	}
	if runes(title) > 4*summary.MaxTitle {
		return "", invalid("the answer is not a title")
	}
	return summary.CutTitle(title), nil
}
