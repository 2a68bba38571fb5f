package transcript

import (
	"encoding/json"

	"mneme.dev/mneme/events"
)

// codexHeld is the agent's last message and what follows it, until its token counts are known: Codex writes them behind
// the items of a response. Whatever comes only after a response releases it too, since older versions write no such line.
type codexHeld struct {
	message *events.MessageCreated // nil if nothing is held
	line    int
	at      string
	called  bool // calls follow it
	after   batch
}

// codexUsage are token counts in Codex's own form.
type codexUsage struct {
	Input  int64 `json:"input_tokens"`
	Cached int64 `json:"cached_input_tokens"` // of Input
	Output int64 `json:"output_tokens"`
}

// counted takes a token_usage_record. A response of calls alone has no message, so its counts go to the next one.
func (c *codex) counted(out *batch, payload json.RawMessage) {
	var record struct {
		Usage codexUsage `json:"usage"`
	}
	if json.Unmarshal(or(payload, "{}"), &record) == nil {
		c.usage.Input += record.Usage.Input
		c.usage.Cached += record.Usage.Cached
		c.usage.Output += record.Usage.Output
	}
	c.release(out)
}

// hold holds a message of the agent.
func (c *codex) hold(out *batch, l *codexLine, m *events.MessageCreated) {
	c.release(out)
	c.held.message, c.held.line, c.held.at, c.held.called = m, out.line, string(l.Timestamp), false
}

// behind returns the batch for items that come after the held message.
func (c *codex) behind(out *batch) *batch {
	if c.held.message == nil {
		return out
	}
	c.held.after.line = out.line
	return &c.held.after
}

// release emits the held message, with the counts so far, and what follows it.
func (c *codex) release(out *batch) {
	h := &c.held
	if h.message == nil {
		return
	}
	if c.usage != (codexUsage{}) {
		h.message.Usage, _ = json.Marshal(c.usage) // numbers: it cannot fail
		c.usage = codexUsage{}
	}
	line := out.line
	out.line = h.line
	out.event(c.conversation(), codexSource, h.message.MessageID, h.at, h.message)
	out.line = line
	out.take(&h.after)
	h.message = nil
}

// end emits what is held as open, and drops held reasoning: when the recording grows, it becomes part of the next message.
func (c *codex) end(out *batch) {
	first, answered := len(out.items), c.held.message != nil && c.held.message.Content != "" && !c.held.called
	c.release(out)
	out.open(first, answered)
}

// codexEnds are the types of an event_msg that come after a response.
var codexEnds = map[text]bool{"token_count": true, "task_complete": true, "turn_complete": true, "turn_aborted": true}
