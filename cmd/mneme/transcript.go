package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
)

// excerptLines is how many lines of a tool result a transcript shows, and of a message when
// only the end of a conversation is shown.
const excerptLines = 8

// extent is how many lines of each text a transcript shows; 0 means all.
type extent struct{ content, result int }

// jsonText returns a JSON string without its quotes, other JSON unchanged.
func jsonText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// outcome returns in one word how a call ended.
func outcome(c *httpapi.ToolCall) string {
	switch {
	case c.Result == nil:
		return "pending"
	case c.Result.Success == nil:
		return "unknown"
	case *c.Result.Success:
		return "ok"
	}
	return cmp.Or(c.Result.NotRun, "failed")
}

func (t *terminal) paintOutcome(word string) string {
	switch word {
	case "ok":
		return t.paint(green, word)
	case "failed":
		return t.paint(red, word)
	}
	return t.paint(yellow, word)
}

// took returns how long a call took, "" if that is unknown.
func took(r *httpapi.ToolResult) string {
	if r == nil || r.DurationMS == nil {
		return ""
	}
	return (time.Duration(*r.DurationMS * float64(time.Millisecond))).Round(time.Millisecond).String()
}

// transcript prints messages with their tool calls, older ones first.
func (t *terminal) transcript(list []httpapi.Message, newestFirst bool, shown extent) error {
	if newestFirst {
		slices.Reverse(list)
	}
	var out strings.Builder
	turn := -1
	for _, m := range list {
		if m.Turn != turn {
			turn = m.Turn
			if out.Len() > 0 {
				out.WriteString("\n")
			}
			out.WriteString(t.rule(fmt.Sprintf("turn %d", turn)) + "\n")
		}
		t.message(&out, &m, shown)
	}
	return t.painted(out.String())
}

// rule returns a line across the terminal with a heading.
func (t *terminal) rule(heading string) string {
	width := cmp.Or(t.width(), 60)
	line := "── " + heading + " "
	return t.paint(dim, line+strings.Repeat("─", max(min(width, 100)-console.Width(line), 0)))
}

func (t *terminal) message(out *strings.Builder, m *httpapi.Message, shown extent) {
	color := cmp.Or(map[string]style{"user": cyan, "assistant": green}[m.Role], yellow)
	who := m.Role
	if m.Speaker != "" {
		who += " (" + m.Speaker + ")"
	}
	facts := []string{}
	if m.Time != "" {
		facts = append(facts, t.cell(when(m.Time)))
	}
	if m.Seq > 0 {
		facts = append(facts, fmt.Sprintf("seq %d", m.Seq), m.MessageID)
	}
	who = console.OneLine(who)
	rest := console.OneLine(strings.Join(facts, "  "))
	if w := t.width(); w > 0 {
		rest = console.Cut(rest, max(w-console.Width(who)-2, 0))
	}
	fmt.Fprintf(out, "\n%s  %s\n", t.paint(color, who), t.paint(dim, rest))
	if m.Reasoning != "" {
		out.WriteString(t.paint(dim, t.block("~ "+m.Reasoning, shown.content, 2)) + "\n")
	}
	if m.Content != "" {
		out.WriteString(t.block(m.Content, shown.content, 2) + "\n")
	}
	if m.Truncated {
		out.WriteString(t.paint(dim, fmt.Sprintf("  [the first part of %s characters]", number(m.Chars))) + "\n")
	}
	for i := range m.ToolCalls {
		t.call(out, &m.ToolCalls[i], shown)
	}
	if m.MoreToolCalls {
		out.WriteString(t.paint(dim, "  [more tool calls: mneme steps shows them]") + "\n")
	}
}

func (t *terminal) call(out *strings.Builder, c *httpapi.ToolCall, shown extent) {
	ended := outcome(c)
	name, rest := console.OneLine(c.ToolName), "  "+console.OneLine(c.ToolCallID)
	if took := took(c.Result); took != "" {
		rest = ", " + took + rest
	}
	if w := t.width(); w > 0 {
		name = console.Cut(name, max(w-6-len(ended), 10))
		rest = console.Cut(rest, max(w-5-console.Width(name)-len(ended), 0))
	}
	out.WriteString("  → " + t.paint(bold, name) + " " + t.paintOutcome(ended) + t.paint(dim, rest) + "\n")
	if arguments := jsonText(c.Arguments); arguments != "" {
		out.WriteString(t.block(arguments, shown.result, 4) + "\n")
	}
	if c.Result == nil {
		return
	}
	if c.Result.Result != "" {
		out.WriteString(t.paint(dim, t.block(c.Result.Result, shown.result, 4)) + "\n")
	}
	if c.Result.Error != "" {
		out.WriteString(t.paint(red, t.block(c.Result.Error, shown.result, 4)) + "\n")
	}
	if c.Result.Truncated {
		out.WriteString(t.paint(dim, fmt.Sprintf("    [the first part of %s characters]", number(c.Result.Chars))) + "\n")
	}
}

// block indents text and wraps it at the terminal's width. It shows at most this many lines
// and says how many are left; 0 shows all.
func (t *terminal) block(s string, lines, indent int) string {
	s = strings.TrimRight(strings.ReplaceAll(console.Clean(s), "\t", "    "), "\n ")
	if w := t.width(); w > 0 {
		s = console.Wrap(s, max(w-indent, 10))
	}
	all := strings.Split(s, "\n")
	if lines > 0 && len(all) > lines {
		all = append(all[:lines:lines], fmt.Sprintf("… %s more lines", number(len(all)-lines)))
	}
	margin := strings.Repeat(" ", indent)
	for i, line := range all {
		if line != "" {
			all[i] = margin + line
		}
	}
	return strings.Join(all, "\n")
}
