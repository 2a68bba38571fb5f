package llm

import (
	"context"
	_ "embed" // the prompt
	"fmt"
	"regexp"
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

// declined matches the beginning of an answer of a model that refuses, which is no name.
var declined = regexp.MustCompile(`(?i)^(i['’]m sorry|i am sorry|i can['’]t|i cannot|i['’]m unable|as an ai)\b`)

// readTitle extracts the name from a model's answer.
func readTitle(text string) (string, *Error) {
	title := ""
	for line := range strings.Lines(clean(text)) {
		line = strings.Trim(oneLine(line), "\"'`*#“”«». ")
		switch {
		case line == "":
		case title != "" || line[0] == '{':
			return "", invalid("the answer is not a title")
		default:
			title = line
		}
	}
	switch {
	case title == "":
		return "", empty()
	case declined.MatchString(title):
		return "", refusal()
	case runes(title) > 4*summary.MaxTitle:
		return "", invalid("the answer is not a title")
	}
	return summary.CutTitle(title), nil
}
