package transcript

import "mneme.dev/mneme/events"

// The copy of an answer in a fork of Claude Code says in which session the model was asked. One that /branch or the SDK made
// also says, as the copies of other lines do, of which line it is a copy. What comes before an answer belongs to the
// session of that answer.

// claudeHeld is a line that waits for the answer after it, or why it was refused.
type claudeHeld struct {
	no   int
	size int // in bytes
	line *claudeLine
	use  claudeUse
	err  error
}

// claudeUse converts a line of one type, nil if lines of that type are not part of the conversation.
type claudeUse func(c *claudeCode, out *batch, l *claudeLine) error

// copiedFrom returns of which line this one is a copy. ok is false if it does not say so, as the copies of prompts may not, or
// if it names its own session.
func (c *claudeCode) copiedFrom(l *claudeLine) (from origin, ok bool) {
	if from, ok = originOf(l.ForkedFrom); ok {
		from = c.origins.first(from)
	} else {
		from.UUID = l.UUID
	}
	if asked := string(l.AskedIn); asked != l.SessionID && sessionName.MatchString(asked) {
		from.Session, ok = asked, true
	}
	return from, ok && ClaudeCodePrefix+from.Session != c.conversation
}

// hold takes a line while it is not known whether it is a copy.
func (c *claudeCode) hold(out *batch, h claudeHeld) error {
	c.held = append(c.held, h)
	c.heldBytes += h.size
	answers := h.line != nil && h.line.Type == "assistant"
	if !answers && c.heldBytes <= MaxLineBytes {
		return nil
	}
	if answers {
		if from, copied := c.copiedFrom(h.line); copied {
			return c.release(out, from.Session)
		}
	}
	return c.releaseOwn(out)
}

// releaseOwn takes the lines that were held, and those that follow, as the session's own, unless they say that they are copies.
func (c *claudeCode) releaseOwn(out *batch) error {
	err := c.release(out, "")
	c.own = true
	return err
}

// release takes the lines that were held as copies of lines of a session; with "", only those that say so.
func (c *claudeCode) release(out *batch, session string) (err error) {
	last := out.line
	held := c.held
	c.held, c.heldBytes = nil, 0
	for _, h := range held {
		if err != nil {
			c.refuse(out, err)
		}
		out.line, err = h.no, h.err
		if h.line == nil {
			continue
		}
		from, copied := c.copiedFrom(h.line)
		if session != "" {
			from.Session = session
		}
		if h.line.UUID == "" || session == "" && !copied {
			err = c.line(out, h.line, h.use)
		} else {
			err = c.repeat(out, h.line, h.use, from)
		}
	}
	out.line = last
	return err
}

// repeat takes a copy of another session's line.
func (c *claudeCode) repeat(out *batch, l *claudeLine, use claudeUse, from origin) error {
	if id := ClaudeCodePrefix + from.Session; c.before == nil || c.before.conversation != id {
		c.leave(out)
		c.before = newClaudeConversation(id)
		c.before.branched = c.branched
	}
	l.UUID = from.UUID
	return out.repeat(func() error { return c.before.line(out, l, use) })
}

// leave ends what was repeated of a session. What follows branches off there.
func (c *claudeCode) leave(out *batch) {
	if c.before == nil {
		return
	}
	_ = out.repeat(func() error {
		c.before.group.close(c.before, out)
		return nil
	})
	if c.before.last != "" {
		c.branched = &events.BranchedAt{ConversationID: c.before.conversation, MessageID: c.before.last}
	}
	c.before = nil
}
