package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"mneme.dev/mneme/events"
)

// group is the agent's open message. Claude Code writes each block of a message on its own
// line, all with the same message.id and each with the usage so far, and results of the
// first calls can come in between. So the message and whatever follows it are held back
// until a line of another message comes, or a prompt: in no recorded session does a message
// continue after one. Where one does, the rest becomes a message of its own, so that what was
// emitted stays as it is. That stop_reason is set says nothing: some lines have it and are
// followed by others of their message. At most [MaxLineBytes] are held; beyond that the message
// is emitted as it is.
type group struct {
	id        string // message.id
	event     string // the id of its event
	open      bool
	line      int
	time      string
	model     string
	usage     json.RawMessage
	text      []string
	reasoning []string
	bytes     int
	answer    bool // its last block is a text, and it has no calls
	called    bool
	pieces    map[string]bool // uuids seen, because a line can be written twice
	after     batch
}

// behind returns the batch for items that come after the open message.
func (g *group) behind(out *batch) *batch {
	if !g.open {
		return out
	}
	g.after.line = out.line
	return &g.after
}

// close emits the open message and the items held after it.
func (g *group) close(c *claudeCode, out *batch) {
	if !g.open {
		return
	}
	g.open = false
	line := out.line
	out.line = g.line
	out.event(c.conversation, claudeCodeSource, g.event, g.time, &events.MessageCreated{
		MessageID: g.event, Role: "assistant", Content: strings.Join(g.text, "\n"), Reasoning: strings.Join(g.reasoning, "\n"),
		Model: g.model, Usage: g.usage,
	})
	out.line = line
	out.take(&g.after)
	g.text, g.reasoning, g.usage, g.bytes = nil, nil, nil, 0
}

// assistant takes one line of an agent's message.
func (c *claudeCode) assistant(out *batch, l *claudeLine) error {
	switch {
	case l.Message == nil:
		return errors.New("message: is missing")
	case l.UUID == "":
		return errors.New("uuid: is missing")
	}
	g, m := &c.group, l.Message
	c.start(out)
	id := cmp.Or(m.ID, l.UUID)
	if g.id == id && g.pieces[l.UUID] {
		return nil
	}
	// An emitted message can still get calls, but no more text.
	if g.id != id || !g.open && m.Content.speaks() {
		g.close(c, out)
		c.messages++
		*g = group{
			id: id, event: "msg:" + l.UUID, open: true, line: out.line, time: string(l.Timestamp),
			pieces: make(map[string]bool), after: g.after,
		}
		c.last = g.event
	}
	g.pieces[l.UUID] = true
	g.model = cmp.Or(string(m.Model), g.model)
	g.usage = or(usageOf(m.Usage), string(g.usage))
	for i := range m.Content {
		b := &m.Content[i]
		g.called = g.called || b.Type == "tool_use"
		g.answer = b.Type == "text" && !g.called
		switch b.Type {
		case "tool_use":
			c.call(out, l, b)
		case "thinking":
			g.reasoning = append(g.reasoning, b.Thinking)
			g.bytes += len(b.Thinking)
		default:
			if s, ok := b.shown(); ok {
				g.text = append(g.text, s)
				g.bytes += len(s)
			}
		}
	}
	return nil
}

func (c *claudeCode) call(out *batch, l *claudeLine, b *block) {
	c.event(out, b.ID, l, &events.ToolCalled{
		ToolCallID: b.ID, MessageID: c.group.event, ToolName: b.Name, Arguments: plain(or(b.Input, "{}")),
	})
	if at, err := parseTime(string(l.Timestamp)); err == nil && !at.IsZero() {
		if len(c.calls) >= maxOpenCalls {
			clear(c.calls)
		}
		c.calls[b.ID] = at
	}
}

// usageOf keeps the token counts and drops the rest: tiers, regions, and the same counts in
// another shape.
func usageOf(raw json.RawMessage) json.RawMessage {
	var u struct {
		Input         *json.Number `json:"input_tokens,omitempty"`
		Output        *json.Number `json:"output_tokens,omitempty"`
		CacheRead     *json.Number `json:"cache_read_input_tokens,omitempty"`
		CacheCreation *json.Number `json:"cache_creation_input_tokens,omitempty"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &u) != nil {
		return nil
	}
	kept, err := json.Marshal(u)
	if err != nil || string(kept) == "{}" {
		return nil
	}
	return kept
}
