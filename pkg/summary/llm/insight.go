package llm

import (
	"context"
	_ "embed" // the prompts
	"encoding/json"
	"strings"

	"mneme.dev/mneme/pkg/summary"
)

//go:embed prompts/insight.txt
var insightPrompt string

// insightSchema is the form of an insight.
//
//go:embed prompts/insight.schema.json
var insightSchema string

//go:embed prompts/story.txt
var storyPrompt string

var (
	insightForm = form{name: "write_insight", use: "Writes down what a later session needs to know about the record.", schema: insightSchema}
	insight     = newPrompt(insightPrompt, insightSchema)
	story       = newPrompt(storyPrompt, schema)
)

// The most of an insight's parts. Lengths are in characters.
const (
	maxTopicLine   = 160
	maxKeyFindings = 6
	maxItems       = 6
	maxItem        = 160
)

// InsightPromptHash identifies the prompt and the schema of insights.
func (w *Writer) InsightPromptHash() string { return insight.hash }

// StoryPromptHash identifies the prompt and the schema of chapters.
func (w *Writer) StoryPromptHash() string { return story.hash }

// Analyse asks what a whole session was about, what it found and what it left to do. If the answer is unusable, it asks
// once more and says why. It returns the same errors as [Writer.Write].
func (w *Writer) Analyse(ctx context.Context, in summary.Input) (summary.Insight, summary.Usage, error) {
	var usage summary.Usage
	again := ""
	for {
		got, err := w.shorten(ctx, &usage, func(halved int) request {
			return request{system: insight.text, user: record(in, halved) + "Write down the insight of this record." + again, form: &insightForm}
		})
		if err != nil && (err.Class != ClassCutOff || again != "") {
			return summary.Insight{}, usage, err
		}
		var found summary.Insight
		if err == nil {
			if found, err = readInsight(got.text); err == nil {
				return found, usage, nil
			}
			w.meter.failed(err.Class)
		}
		if again != "" {
			return summary.Insight{}, usage, err
		}
		again = "\n\nYour last answer could not be used: " + err.Reason + ". Answer again, shorter, in the requested form."
	}
}

// Tell writes a chapter of a project's story. It returns the same errors as [Writer.Write].
func (w *Writer) Tell(ctx context.Context, in summary.Input) (summary.Draft, summary.Usage, error) {
	return w.write(ctx, story, in)
}

// readInsight reads the model's answer and shortens it to the limits.
func readInsight(text string) (summary.Insight, *Error) {
	if text = strings.TrimSpace(text); text == "" {
		return summary.Insight{}, empty()
	}
	var f struct {
		Topic    *string   `json:"main_topic"`
		Findings *[]string `json:"key_findings"`
		Items    *[]string `json:"action_items"`
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return summary.Insight{}, invalid("the answer is not JSON of the requested form")
	}
	switch {
	case f.Topic == nil:
		return summary.Insight{}, invalid("the answer has no main_topic")
	case f.Findings == nil:
		return summary.Insight{}, invalid("the answer has no key_findings")
	case f.Items == nil:
		return summary.Insight{}, invalid("the answer has no action_items")
	}
	found := summary.Insight{
		MainTopic:   cut(clean(*f.Topic), maxTopicLine),
		KeyFindings: cutAll(cleanAll(*f.Findings), maxKeyFindings, maxFinding),
		ActionItems: cutAll(cleanAll(*f.Items), maxItems, maxItem),
	}
	if found.MainTopic == "" {
		return summary.Insight{}, empty()
	}
	return found, nil
}
