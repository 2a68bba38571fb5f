package llm

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mneme.dev/mneme/pkg/summary"
)

// maxCondense is how much of a result the model sees for condensing, in characters.
const maxCondense = 20_000

// maxNames is how many files, and how many tools, a record names.
const maxNames = 30

func runes(text string) int { return utf8.RuneCountInString(text) }

// size returns the length of a summary's material, in characters.
func size(in summary.Input) (total int) {
	for _, e := range in.Entries {
		total += runes(e.Text)
	}
	for _, d := range in.Children {
		total += draftSize(d)
	}
	return total
}

// draftSize returns the length of a draft's texts, in characters.
func draftSize(d summary.Draft) int {
	total := runes(d.Conversation) + runes(d.Actions)
	for _, text := range slices.Concat(d.Findings, d.Topics) {
		total += runes(text)
	}
	return total
}

// item is a part of a record that can be left out.
type item struct {
	head, text string
	result     bool
}

// record returns the text that shows an input to a model. halved is how many times to halve the length of its texts:
// the oldest results are left out first, then the oldest of everything else.
func record(in summary.Input, halved int) string {
	items := make([]item, 0, len(in.Entries)+len(in.Children))
	for _, e := range in.Entries {
		items = append(items, item{entryHead(e), e.Text, e.Kind == summary.KindResult})
	}
	for i, d := range in.Children {
		items = append(items, item{head: fmt.Sprintf("summary %d", i+1), text: childText(d)})
	}
	total := 0
	for _, it := range items {
		total += runes(it.text)
	}
	excess := total - total>>halved
	for i := range items {
		if it := &items[i]; it.result && excess > 0 {
			excess -= runes(it.text)
			it.text = "(left out)"
		}
	}
	leftOut := 0
	for _, it := range items[:max(len(items)-1, 0)] { // the last one stays
		if excess <= 0 {
			break
		}
		if !it.result {
			excess -= runes(it.text)
		}
		leftOut++
	}

	var b strings.Builder
	b.WriteString("<record>\n")
	writeNames(&b, "Files touched", in.Files)
	writeNames(&b, "Tools called", in.Tools)
	if leftOut > 0 {
		fmt.Fprintf(&b, "(%d older entries are left out)\n", leftOut)
	}
	for _, it := range items[leftOut:] {
		fmt.Fprintf(&b, "%s: %s\n", it.head, inside(it.text))
	}
	b.WriteString("</record>\n\n")
	return b.String()
}

func entryHead(e summary.Entry) string {
	head := fmt.Sprintf("[turn %d] %s", e.Turn, e.Kind)
	if e.Name != "" {
		head += " " + oneLine(inside(e.Name))
	}
	if e.Failed {
		head += " (failed)"
	}
	return head
}

func childText(d summary.Draft) string {
	text := d.Conversation
	if d.Actions != "" {
		text += "\nactions: " + d.Actions
	}
	if len(d.Findings) > 0 {
		text += "\nfindings: " + strings.Join(d.Findings, " | ")
	}
	if len(d.Topics) > 0 {
		text += "\ntopics: " + strings.Join(d.Topics, ", ")
	}
	return text
}

func writeNames(b *strings.Builder, what string, names []string) {
	if len(names) == 0 {
		return
	}
	shown := names[:min(len(names), maxNames)]
	fmt.Fprintf(b, "%s: %s\n", what, oneLine(inside(strings.Join(shown, ", "))))
}

// resultRecord returns the text that shows a tool result to a model. If the result is too long, or
// halved, two thirds of the text shown are its beginning and one third is its end.
func resultRecord(r ToolResult, halved int) string {
	call := "result"
	if r.Failed {
		call = "result (failed)"
	}
	text := []rune(r.Result)
	shown, limit := r.Result, min(len(text), maxCondense)>>halved
	if len(text) > limit {
		head := limit * 2 / 3
		shown = string(text[:head]) + fmt.Sprintf("\n(%d characters are left out)\n", len(text)-limit) + string(text[len(text)-(limit-head):])
	}
	return fmt.Sprintf("<record>\ntool: %s\narguments: %s\n%s: %s\n</record>\n\nWrite the result of this record shorter.",
		oneLine(inside(r.Tool)), inside(firstRunes(r.Arguments, summary.MaxResult)), call, inside(shown))
}

// inside returns a text that can neither end the record nor begin a line that looks like another
// entry.
func inside(text string) string {
	text = strings.ReplaceAll(text, "</record", "<\\/record")
	return strings.ReplaceAll(text, "\n", "\n  ")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func firstRunes(text string, most int) string {
	if runes(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
