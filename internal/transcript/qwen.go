package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	qwenFormat = "qwen-code"
	qwenPrefix = "qwen_code:"
)

// qwenLine is a record of a session of Qwen Code.
type qwenLine struct {
	UUID      text            `json:"uuid"`
	SessionID text            `json:"sessionId"`
	AgentID   text            `json:"agentId"` // of a subagent, which has a file of its own
	Timestamp text            `json:"timestamp"`
	Type      text            `json:"type"`
	Subtype   text            `json:"subtype"`
	Cwd       text            `json:"cwd"`
	Version   text            `json:"version"`
	Model     text            `json:"model"`
	Usage     json.RawMessage `json:"usageMetadata"`
	Message   qwenContent     `json:"message"`
	Forked    json.RawMessage `json:"forkedFrom"` // of which record it is a copy, see origin
	Returned  struct {
		Status text `json:"status"`
	} `json:"toolCallResult"`
	Payload struct {
		CustomTitle text            `json:"customTitle"`
		Compressed  json.RawMessage `json:"compressedHistory"`
	} `json:"systemPayload"`
}

// qwenContent is what a side said, in the form of Gemini's API.
type qwenContent struct {
	Parts []messagePart `json:"parts"`
}

// qwenHook begins the part of a prompt that a hook has added.
const qwenHook = "<qwen:user-prompt-submit-context>"

// said returns the texts, and those that the model thought.
func (c *qwenContent) said() (said, thought string) {
	var texts, thoughts []string
	for _, p := range c.Parts {
		switch {
		case p.Text != nil && p.Thought:
			thoughts = append(thoughts, string(*p.Text))
		case p.Text != nil && !strings.HasPrefix(string(*p.Text), qwenHook):
			texts = append(texts, string(*p.Text))
		case given(p.Inline) != nil, given(p.File) != nil:
			texts = append(texts, "[file]")
		}
	}
	return strings.Join(texts, "\n"), strings.Join(thoughts, "\n")
}

// qwenTypes are the types of records.
var qwenTypes = map[text]bool{"user": true, "assistant": true, "tool_result": true, "system": true}

// isQwen tells a record from a line of Claude Code, which has the same ids: its message is in the form of Gemini's API.
func isQwen(p *probe) bool {
	if p.list || p.UUID == "" || p.SessionID == "" || !qwenTypes[p.Type] {
		return false
	}
	var message struct {
		Parts json.RawMessage `json:"parts"`
	}
	return isObject(p.SystemPayload) || json.Unmarshal(or(p.Message, "{}"), &message) == nil && isList(message.Parts)
}

// qwen turns a session into items. Every record has an id, but the copies in a fork have those of the session from which it
// was made, so the ids of events begin with the id of the conversation.
type qwen struct {
	talk
	version string
	before  *qwen // the session whose records are repeated now
	origins origins
}

func newQwen(name string) converter {
	q := newQwenSession()
	q.origins = originsBeside(name)
	return q
}

func newQwenSession() *qwen {
	return &qwen{talk: talk{source: "import/qwen_code", scoped: true, start: events.ConversationStarted{Agent: "Qwen Code"}}}
}

func (q *qwen) value(out *batch, raw []byte) error {
	var l qwenLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	switch {
	case l.SessionID == "":
		return errors.New("sessionId: is missing")
	case l.UUID == "":
		return errors.New("uuid: is missing")
	case q.id == "":
		q.id, q.start.Cwd = qwenPrefix+string(l.SessionID), string(l.Cwd)
		if l.AgentID != "" {
			q.id += ":" + string(l.AgentID)
		}
	}
	if l.Version != "" {
		q.version = string(l.Version)
	}
	if from, copied := originOf(l.Forked); copied && !q.started && l.AgentID == "" {
		if from = q.origins.first(from); qwenPrefix+from.Session != q.id {
			return q.repeat(out, &l, from)
		}
	}
	return q.record(out, &l)
}

// repeat takes a copy of another session's record. What follows branches off there.
func (q *qwen) repeat(out *batch, l *qwenLine, from origin) error {
	if id := qwenPrefix + from.Session; q.before == nil || q.before.id != id {
		q.before = newQwenSession()
		q.before.id, q.before.start.Cwd, q.before.start.BranchedFrom = id, string(l.Cwd), q.start.BranchedFrom
	}
	l.UUID = text(from.UUID)
	err := out.repeat(func() error { return q.before.record(out, l) })
	if q.before.last != "" {
		q.start.BranchedFrom = &events.BranchedAt{ConversationID: q.before.id, MessageID: q.before.last}
	}
	return err
}

// record takes a record of the session's own.
func (q *qwen) record(out *batch, l *qwenLine) error {
	id, at := q.id+":"+string(l.UUID), string(l.Timestamp)
	switch l.Type {
	case "user":
		q.say(out, id, at, l.prompt())
	case "assistant":
		q.answered(out, id, at, l)
	case "tool_result":
		q.returned(out, at, l)
	case "system":
		q.system(out, id, at, l)
	default:
		out.skip(qwenFormat, q.version, string(l.Type))
	}
	return nil
}

// prompt returns what the user said. A hook's words, and words of the program such as the end of a task, are not the user's.
func (l *qwenLine) prompt() *events.MessageCreated {
	m := &events.MessageCreated{Role: "user"}
	m.Content, _ = l.Message.said()
	if l.Subtype != "" && l.Subtype != "mid_turn_user_message" {
		m.Origin = originMeta
	}
	return m
}

func (q *qwen) answered(out *batch, id, at string, l *qwenLine) {
	m := &events.MessageCreated{Role: "assistant", Model: string(l.Model), Usage: given(l.Usage)}
	m.Content, m.Reasoning = l.Message.said()
	q.say(out, id, at, m)
	for _, p := range l.Message.Parts {
		if c := p.Call; c != nil && c.ID != "" {
			name, args := qwenCall(cmp.Or(c.Name, "unknown"), c.Args)
			q.call(out, string(c.ID), at, id, string(name), args)
		}
	}
}

// qwenCall returns the tool of a call and its arguments. The model calls most tools of MCP servers by the tool tool_call.
func qwenCall(name text, args json.RawMessage) (text, json.RawMessage) {
	var inner struct {
		Name      text            `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if name != "tool_call" || json.Unmarshal(or(args, "{}"), &inner) != nil || inner.Name == "" {
		return name, args
	}
	return inner.Name, inner.Arguments
}

func (q *qwen) returned(out *batch, at string, l *qwenLine) {
	var success *bool
	if l.Returned.Status != "" {
		success = new(l.Returned.Status == "success")
	}
	for _, p := range l.Message.Parts {
		if r := p.Response; r != nil && r.ID != "" {
			q.answer(out, string(r.ID), at, geminiOutput(r.Response), success)
		}
	}
}

// system takes what the program recorded: the title, and the summary that has replaced the context.
func (q *qwen) system(out *batch, id, at string, l *qwenLine) {
	switch l.Subtype {
	case "custom_title":
		if q.before != nil && !q.started { // a fork gets its title when it is made
			q.start.Title = string(l.Payload.CustomTitle)
		}
		q.titled(out, string(l.Payload.CustomTitle))
	case "chat_compression":
		var history []qwenContent
		if json.Unmarshal(or(l.Payload.Compressed, "[]"), &history) != nil || len(history) == 0 {
			return
		}
		if summary, _ := history[0].said(); summary != "" {
			q.say(out, id, at, &events.MessageCreated{Role: "system", Content: summary, Origin: originCompaction})
		}
	}
}
