package graph

import "mneme.dev/mneme/pkg/plain"

// Shown returns the text as people and models see it, and as searches find it: with a name, such as
// "[image/png, 60 kB]", in place of each image or other file in it, see [plain.FindData]. Rows keep the text as it was
// recorded.
func (b Body) Shown() Body {
	shown, _, _ := b.ShownAt(0, 0)
	return shown
}

// ShownAt is [Body.Shown] that also says where the bytes of the text from start to end are in what is shown.
func (b Body) ShownAt(start, end int) (shown Body, from, to int) {
	shown, from, to = b, start, end
	toEnd := false
	var text []byte
	at := 0
	for d := range plain.FindData(b.Text, b.Bytes-len(b.Text)) {
		text = append(append(text, b.Text[at:d.Start]...), d.Name...)
		at = d.End
		less := d.End - d.Start - len(d.Name) // both are ASCII
		shown.Bytes -= less
		shown.Chars -= less
		from, to = moved(start, from, d), moved(end, to, d)
		toEnd = d.End == len(b.Text)
	}
	if at == 0 {
		return b, start, end
	}
	shown.Text = string(append(text, b.Text[at:]...))
	if toEnd { // the name stands for the rest, too
		shown.Bytes, shown.Chars = len(shown.Text), plain.Length(shown.Text)
	}
	return shown, from, to
}

// moved returns where a place in a text is after data has got a name, given where it was before that.
func moved(place, now int, d plain.Data) int {
	switch {
	case place >= d.End:
		return now - (d.End - d.Start - len(d.Name))
	case place > d.Start:
		return now - (place - d.Start)
	}
	return now
}

// Shown returns the message with its texts as [Body.Shown] returns them.
func (m Message) Shown() Message {
	m.Content, m.Reasoning = m.Content.Shown(), m.Reasoning.Shown()
	return m
}

// Shown returns the call with its arguments as [Body.Shown] returns them.
func (c ToolCall) Shown() ToolCall {
	c.Arguments = c.Arguments.Shown()
	return c
}

// Shown returns the result with its text as [Body.Shown] returns it, and its error likewise. If both are the same, they stay so.
func (r ToolResult) Shown() ToolResult {
	same := r.Error == r.Result.Text
	if r.Result = r.Result.Shown(); same {
		r.Error = r.Result.Text
	} else {
		r.Error = plain.NameData(r.Error, 0)
	}
	return r
}

// Shown returns the call and its result as their Shown return them.
func (u ToolUse) Shown() ToolUse {
	u.Call = u.Call.Shown()
	if u.Result != nil {
		r := u.Result.Shown()
		u.Result = &r
	}
	return u
}

// Shown returns the entry with its row as the row's Shown returns it. The entry's own row stays as it is.
func (e Entry) Shown() Entry {
	switch {
	case e.Message != nil:
		if content, reasoning := e.Message.Content.Shown(), e.Message.Reasoning.Shown(); content != e.Message.Content || reasoning != e.Message.Reasoning {
			m := *e.Message
			m.Content, m.Reasoning = content, reasoning
			e.Message = &m
		}
	case e.Call != nil:
		if arguments := e.Call.Arguments.Shown(); arguments != e.Call.Arguments {
			c := *e.Call
			c.Arguments = arguments
			e.Call = &c
		}
	case e.Result != nil:
		if shown := e.Result.Shown(); shown.Result != e.Result.Result || shown.Error != e.Result.Error {
			r := shown
			e.Result = &r
		}
	}
	return e
}
