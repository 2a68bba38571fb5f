package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"mneme.dev/mneme/pkg/summary"
)

// The most characters of a draft's parts.
const (
	maxFindings = 5
	maxTopics   = 4
	maxFinding  = 240
	maxTopic    = 40
	maxActions  = 350
	minConverse = 400 // of the conversation; only then are findings dropped

	// Of all texts together.
	maxDraft = summary.MaxDraft
)

// draftForm is a summary as the model writes it. A missing field is nil.
type draftForm struct {
	Conversation *string   `json:"conversation"`
	Actions      *string   `json:"actions"`
	Findings     *[]string `json:"findings"`
	Topics       *[]string `json:"topics"`
}

// readDraft reads the model's answer for an input of this size, and shortens it to the limits.
func readDraft(text string, inputSize int) (summary.Draft, *Error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return summary.Draft{}, empty()
	}
	var f draftForm
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return summary.Draft{}, invalid("the answer is not JSON of the requested form")
	}
	for _, field := range []struct {
		name    string
		missing bool
	}{{"conversation", f.Conversation == nil}, {"actions", f.Actions == nil}, {"findings", f.Findings == nil}, {"topics", f.Topics == nil}} {
		if field.missing {
			return summary.Draft{}, invalid("the answer has no " + field.name)
		}
	}
	d := summary.Draft{
		Conversation: clean(*f.Conversation),
		Actions:      clean(*f.Actions),
		Findings:     cleanAll(*f.Findings),
		Topics:       cleanAll(*f.Topics),
	}
	if d.Conversation == "" {
		return summary.Draft{}, empty()
	}
	if n := draftSize(d); n > inputSize {
		return summary.Draft{}, longer(n, inputSize)
	}
	return fit(d), nil
}

// readCondensed reads the model's condensed text of a result of this length.
func readCondensed(text string, length int) (string, *Error) {
	text = clean(text)
	if text == "" {
		return "", empty()
	}
	if n := runes(text); n >= length {
		return "", longer(n, length)
	}
	return cut(text, summary.CondensedChars), nil
}

func empty() *Error { return &Error{Class: ClassEmpty, Reason: "the answer is empty"} }

func longer(answer, input int) *Error {
	return &Error{Class: ClassLonger, Reason: fmt.Sprintf("the answer of %d characters is not shorter than its input of %d", answer, input)}
}

// fit shortens a draft to maxDraft: first each part that is over its own limit, then the
// conversation, then the findings from the last one on.
func fit(d summary.Draft) summary.Draft {
	d.Actions = cut(d.Actions, maxActions)
	d.Findings = cutAll(d.Findings, maxFindings, maxFinding)
	d.Topics = cutAll(d.Topics, maxTopics, maxTopic)
	for {
		room := maxDraft - (draftSize(d) - runes(d.Conversation))
		if runes(d.Conversation) <= room {
			return d
		}
		if room >= minConverse {
			d.Conversation = cut(d.Conversation, room)
			return d
		}
		// Without findings the rest fits: actions and topics are far shorter.
		d.Findings = d.Findings[:len(d.Findings)-1]
	}
}

func cutAll(texts []string, most, length int) []string {
	texts = texts[:min(len(texts), most)]
	for i := range texts {
		texts[i] = cut(texts[i], length)
	}
	return texts
}

// cut shortens a text to a length, at the end of a sentence or a line if there is one in its second
// half, otherwise between words.
func cut(text string, length int) string {
	all := []rune(text)
	if len(all) <= length {
		return text
	}
	for i := length - 1; i >= length/2; i-- {
		if strings.ContainsRune("。！？\n", all[i]) || (strings.ContainsRune(".!?…", all[i]) && unicode.IsSpace(all[i+1])) {
			return strings.TrimSpace(string(all[:i+1]))
		}
	}
	for i := length - 1; i >= length/2; i-- {
		if unicode.IsSpace(all[i]) {
			return strings.TrimSpace(string(all[:i])) + "…"
		}
	}
	return string(all[:length-1]) + "…"
}

// clean removes control characters and surrounding space.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text))
}

func cleanAll(texts []string) []string {
	kept := []string{}
	for _, text := range texts {
		if text = oneLine(clean(text)); text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}
