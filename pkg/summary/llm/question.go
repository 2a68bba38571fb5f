package llm

import (
	"cmp"
	"context"
	_ "embed" // the prompts
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/summary"
)

//go:embed prompts/question.txt
var questionPrompt string

//go:embed prompts/answers.txt
var answersPrompt string

// MaxTask is the longest task of a [Question], in characters.
const MaxTask = 500

// Question is a task that a model does with the record of a conversation, and the form of its answer.
type Question struct {
	Task    string
	prompt  prompt
	form    form
	answer  *jsonschema.Resolved
	members []string
}

// NewQuestion makes a question. The schema is a JSON Schema of an object, or only its properties
// ({"main_topic": {"type": "string"}}), all of which an answer then must have.
func NewQuestion(task, schema string) (*Question, error) {
	task = strings.TrimSpace(clean(task))
	if n := runes(task); n == 0 || n > MaxTask {
		return nil, fmt.Errorf("the task has %d characters, not 1 to %d", n, MaxTask)
	}
	return newQuestion(task, fmt.Sprintf(questionPrompt, task), "answer_task", schema)
}

// SessionQuestion asks what a conversation was about, what it found and what it left to do: what
// [Writer.Analyse] asks. A project's context shows its answers.
func SessionQuestion() *Question {
	q, err := newQuestion(summary.TaskSession, insightPrompt, insightForm.name, insightSchema)
	if err != nil { // the schema is this package's
		panic(err)
	}
	return q
}

// Over makes the question that combines the answers to q into one.
func (q *Question) Over() *Question {
	task := q.Task
	if task == summary.TaskSession {
		task = "Say what the conversations were about (main_topic), what was found (key_findings) and what was left to do (action_items)."
	}
	over := *q
	over.prompt = newPrompt(fmt.Sprintf(answersPrompt, task), q.form.schema)
	return &over
}

func newQuestion(task, prompt, name, schema string) (*Question, error) {
	normal, parsed, err := objectSchema(schema)
	if err != nil {
		return nil, err
	}
	resolved, err := parsed.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	f := form{name: name, use: "Writes down the answer.", schema: normal, loose: !strict(parsed)}
	members := slices.Collect(maps.Keys(parsed.Properties))
	slices.SortFunc(members, func(a, b string) int { // in the order in which they were written
		return cmp.Or(cmp.Compare(strings.Index(schema, strconv.Quote(a)), strings.Index(schema, strconv.Quote(b))), cmp.Compare(a, b))
	})
	return &Question{Task: task, prompt: newPrompt(prompt, normal), form: f, answer: resolved, members: members}, nil
}

// Members are the names of an answer's members, in the order of the schema.
func (q *Question) Members() []string { return q.members }

// objectSchema parses a schema, which may be only the properties of one.
func objectSchema(text string) (normal string, parsed *jsonschema.Schema, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return "", nil, fmt.Errorf("the schema is not a JSON object: %w", err)
	}
	if properties(members) {
		names := slices.Sorted(maps.Keys(members))
		whole, err := json.Marshal(map[string]any{"type": "object", "properties": members, "required": names, "additionalProperties": false})
		if err != nil {
			return "", nil, err
		}
		text = string(whole)
	}
	parsed = &jsonschema.Schema{}
	if err := json.Unmarshal([]byte(text), parsed); err != nil {
		return "", nil, fmt.Errorf("the schema: %w", err)
	}
	if parsed.Type != "object" || len(parsed.Properties) == 0 {
		return "", nil, errors.New(`the schema is not that of an object with properties: give {"type": "object", "properties": {…}}, or only the properties`)
	}
	if unknown := unknownType(parsed); unknown != "" {
		return "", nil, fmt.Errorf("the schema has the type %q, which JSON does not have", unknown)
	}
	return text, parsed, nil
}

// unknownType returns a type in a schema that JSON does not have, "" if there is none.
func unknownType(s *jsonschema.Schema) string {
	switch s.Type {
	case "", "object", "array", "string", "number", "integer", "boolean", "null":
	default:
		return s.Type
	}
	below := slices.Collect(maps.Values(s.Properties))
	if s.Items != nil {
		below = append(below, s.Items)
	}
	for _, b := range below {
		if unknown := unknownType(b); unknown != "" {
			return unknown
		}
	}
	return ""
}

// properties reports whether the members of an object are the properties of a schema, and not the keywords of one.
func properties(members map[string]json.RawMessage) bool {
	for _, raw := range members {
		var s struct{ Type json.RawMessage }
		if json.Unmarshal(raw, &s) != nil || s.Type == nil {
			return false
		}
	}
	return len(members) > 0
}

// strict reports whether servers accept a schema as one that they can enforce: all objects require all of their
// properties and allow no others, and lists declare their elements.
func strict(s *jsonschema.Schema) bool {
	switch {
	case s.Type == "object" || len(s.Properties) > 0:
		if s.AdditionalProperties == nil || s.AdditionalProperties.Not == nil || len(s.Required) != len(s.Properties) {
			return false
		}
		for _, p := range s.Properties {
			if !strict(p) {
				return false
			}
		}
		return true
	case s.Type == "array":
		return s.Items != nil && strict(s.Items)
	}
	return s.Type != "" || len(s.Types) > 0 || len(s.Enum) > 0 || s.Const != nil
}

// Hash identifies the prompt, with the task, and the schema.
func (q *Question) Hash() string { return q.prompt.hash }

// Ask has the model do a task with a record. If an answer does not fit the schema, it asks once more, with the reason.
// If a record is too long for the model, it sends the end. It returns the same errors as [Writer.Write].
func (w *Writer) Ask(ctx context.Context, q *Question, record string) (map[string]json.RawMessage, summary.Usage, error) {
	var usage summary.Usage
	again := ""
	for {
		got, err := w.shorten(ctx, &usage, func(halved int) request {
			all := []rune(record)
			shown := string(all[len(all)-len(all)>>halved:])
			return request{system: q.prompt.text, user: "<record>\n" + inside(shown) + "\n</record>\n\nDo the task with this record." + again, form: &q.form}
		})
		if err != nil && (err.Class != ClassCutOff || again != "") {
			return nil, usage, err
		}
		if err == nil {
			var found map[string]json.RawMessage
			if found, err = q.read(got.text); err == nil {
				return found, usage, nil
			}
			w.meter.failed(err.Class)
		}
		if again != "" {
			return nil, usage, err
		}
		again = "\n\nYour last answer could not be used: " + err.Reason + ". Answer again in the requested form."
	}
}

// maxReason is how many characters about what is wrong with an answer are sent to the model.
const maxReason = 160

// read checks the model's answer.
func (q *Question) read(text string) (map[string]json.RawMessage, *Error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, empty()
	}
	var value any
	var found map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &value) != nil || json.Unmarshal([]byte(text), &found) != nil || found == nil {
		return nil, invalid("the answer is not a JSON object")
	}
	if err := q.answer.Validate(value); err != nil {
		return nil, invalid("the answer does not fit the schema: " + plain.Clip(plain.Flat(err.Error()), maxReason))
	}
	return found, nil
}
