package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/plain"
)

// MessagesCmd reads a conversation.
type MessagesCmd struct {
	conversationArg
	Message   string `arg:"" optional:"" help:"Show only this message, with its full text."`
	Role      string `help:"Only messages of this role: user, assistant or system." enum:",user,assistant,system" default:"" placeholder:"ROLE"`
	ToolCalls bool   `help:"Include the tool calls of each assistant message." default:"true" negatable:""`
	Reasoning bool   `help:"Include the reasoning of the assistant."`
	Whole     bool   `help:"Show tool results in full, not only their first lines."`
	Seen      bool   `help:"Instead of messages, list the contexts that mneme had shown to the agent, and where: in the whole conversation, or in the turn of MESSAGE up to it."`
	listFlags
	pastFlags
	waitFlags
}

func (*MessagesCmd) Help() string {
	return `The transcript runs from older to newer, whichever end --order selects. JSON has the requested order. Calls that name no message, and results without a call, are not in it: mneme steps shows them.

Examples:

    mneme messages ID                              the last 50 messages
    mneme messages ID --order oldest --limit 10    how it began
    mneme messages ID --role user --limit 0        all that the user said
    mneme messages ID MESSAGE                      one of them, whole
    mneme messages ID MESSAGE --seen               what the agent had seen of mneme when it said this`
}

func (c *MessagesCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if c.Seen {
		return c.seen(ctx, g, t, api)
	}
	reads := c.pastFlags.query().with(c.waitFlags.query())
	if c.Message != "" {
		return showOne(ctx, g, t, api, conversation(c.ID, "/messages/", segment(c.Message)), reads, func(whole *httpapi.Message) error {
			m := *whole
			m.Content, m.Reasoning = plain.NameData(m.Content), plain.NameData(m.Reasoning)
			return t.transcript([]httpapi.Message{m}, false, extent{})
		})
	}
	query := parameters{"role": c.Role, "include_tool_calls": c.ToolCalls, "include_reasoning": c.Reasoning}
	return showList(ctx, g, t, api, conversation(c.ID, "/messages"), "messages", c.Limit, query.with(reads, c.listFlags.query()), func(list []httpapi.Message) error {
		return c.listFlags.transcript(t, api, list, cutting(c.Whole))
	})
}

// longLines is how many lines of a message are shown without --whole.
const longLines = 200

func cutting(whole bool) extent {
	if whole {
		return extent{}
	}
	return extent{content: longLines, result: excerptLines}
}

// StepsCmd reads steps.
type StepsCmd struct {
	conversationArg
	Turn      *int `help:"Only those of this turn; turn 0 is everything before the first user message." placeholder:"N"`
	Reasoning bool `help:"Include the reasoning of the assistant."`
	Whole     bool `help:"Show tool results in full, not only their first lines."`
	listFlags
	pastFlags
	waitFlags
}

func (*StepsCmd) Help() string {
	return `A step is an assistant message with its tool calls and their results.

Example:

    mneme steps ID --turn 3 --reasoning --limit 0`
}

func (c *StepsCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	query := parameters{"include_reasoning": c.Reasoning}
	if c.Turn != nil {
		query["turn"] = *c.Turn
	}
	query = query.with(c.listFlags.query(), c.pastFlags.query(), c.waitFlags.query())
	return showList(ctx, g, t, api, conversation(c.ID, "/steps"), "steps", c.Limit, query, func(list []httpapi.Step) error {
		messages := make([]httpapi.Message, len(list))
		for i := range list {
			messages[i] = asMessage(&list[i])
		}
		return c.listFlags.transcript(t, api, messages, cutting(c.Whole))
	})
}

// asMessage returns a step as a message with calls. The step's message may be missing, and
// so may the call of a result.
func asMessage(s *httpapi.Step) httpapi.Message {
	m := httpapi.Message{Row: httpapi.Row{Turn: s.Turn}, Role: "(no message)"}
	if s.Message != nil {
		m = *s.Message
	}
	m.ToolCalls = s.ToolCalls
	for i := range s.Results {
		m.ToolCalls = append(m.ToolCalls, httpapi.ToolCall{ToolName: "(unknown call)", ToolCallID: s.Results[i].ToolCallID, Result: &s.Results[i]})
	}
	return m
}

// TurnsCmd lists turns.
type TurnsCmd struct {
	conversationArg
	listFlags
	pastFlags
	waitFlags
}

func (*TurnsCmd) Help() string {
	return `Examples:

    mneme turns ID
    mneme steps ID --turn 3                        what happened in one of them`
}

func (c *TurnsCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	query := c.listFlags.query().with(c.pastFlags.query(), c.waitFlags.query())
	return showList(ctx, g, t, api, conversation(c.ID, "/turns"), "turns", c.Limit, query, func(list []httpapi.Turn) error {
		cells := make([][]any, len(list))
		for i, v := range list {
			said := ""
			if v.UserMessage != nil {
				said = firstLine(harness.Said(v.UserMessage.Content))
			}
			cells[i] = []any{v.Number, when(v.Time), v.StepCount, v.ToolCallCount, v.TotalChars, fmt.Sprintf("%d-%d", v.FirstSeq, v.LastSeq), said}
		}
		return c.listFlags.table(t, api, []column{
			{Name: "TURN", Right: true}, {Name: "TIME", Drop: 2}, {Name: "STEPS", Right: true, Drop: 3}, {Name: "TOOL CALLS", Right: true, Drop: 4},
			{Name: "CHARS", Right: true, Drop: 1}, {Name: "SEQS", Drop: 5}, {Name: "USER MESSAGE", Min: 20},
		}, cells)
	})
}

// firstLine returns the first nonblank line of a text.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// ToolCallsCmd lists tool calls.
type ToolCallsCmd struct {
	conversationArg
	Call    string `arg:"" optional:"" help:"Show only this call, with its full arguments and result."`
	Tool    string `help:"Only calls of this tool." placeholder:"NAME"`
	Success string `help:"Only calls with this outcome: true, false, unknown or pending (no result yet)." enum:",true,false,unknown,pending" default:"" placeholder:"HOW"`
	Turn    *int   `help:"Only those of this turn; turn 0 is everything before the first user message." placeholder:"N"`
	listFlags
	pastFlags
	waitFlags
}

func (*ToolCallsCmd) Help() string {
	return `Examples:

    mneme tool-calls ID --success false            what failed
    mneme tool-calls ID --tool Read --limit 0 --json | jq length
    mneme tool-calls ID CALL                       one of them, whole`
}

func (c *ToolCallsCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	reads := c.pastFlags.query().with(c.waitFlags.query())
	if c.Call != "" {
		return showOne(ctx, g, t, api, conversation(c.ID, "/tool-calls/", segment(c.Call)), reads, t.showCall)
	}
	query := parameters{"tool": c.Tool, "success": c.Success}
	if c.Turn != nil {
		query["turn"] = *c.Turn
	}
	return showList(ctx, g, t, api, conversation(c.ID, "/tool-calls"), "tool_calls", c.Limit, query.with(reads, c.listFlags.query()), func(list []httpapi.ToolCall) error {
		cells := make([][]any, len(list))
		for i, v := range list {
			cells[i] = []any{v.Seq, v.Turn, v.ToolName, outcome(&v), took(v.Result), v.ToolCallID, jsonText(v.Arguments)}
		}
		return c.listFlags.table(t, api, []column{
			{Name: "SEQ", Right: true, Drop: 4}, {Name: "TURN", Right: true, Drop: 5}, {Name: "TOOL", Min: 8}, {Name: "ENDED"}, {Name: "TOOK", Right: true, Drop: 2},
			{Name: "CALL", Min: 10, Whole: 40, Drop: 3}, {Name: "ARGUMENTS", Min: 20, Drop: 1},
		}, cells)
	})
}

func (t *terminal) showCall(c *httpapi.ToolCall) error {
	if err := t.card("call", c.ToolCallID, "tool", c.ToolName, "turn", c.Turn, "seq", c.Seq, "time", when(c.Time), "ended", outcome(c), "took", took(c.Result)); err != nil {
		return err
	}
	var out strings.Builder
	out.WriteString("\n" + t.rule("arguments") + "\n" + plain.NameData(indented(c.Arguments)) + "\n")
	if c.Result != nil {
		out.WriteString("\n" + t.rule("result") + "\n" + console.Clean(plain.NameData(c.Result.Result)) + "\n")
		if c.Result.Error != "" {
			out.WriteString("\n" + t.rule("error") + "\n" + console.Clean(plain.NameData(c.Result.Error)) + "\n")
		}
	}
	return t.painted(out.String())
}

// indented indents JSON; a string, or text that is not JSON, is shown as it is.
func indented(raw json.RawMessage) string {
	text := jsonText(raw)
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		if pretty, err := json.MarshalIndent(value, "", "  "); err == nil {
			text = string(pretty)
		}
	}
	return console.Clean(text)
}
