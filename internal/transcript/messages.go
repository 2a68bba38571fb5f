package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	messagesFormat = "messages"
	messagesSource = "import/chat"
	// messagesPrefix and the file's name make the id of the conversation of a list of messages.
	messagesPrefix = "chat:"
)

// messageList is a conversation as a program sends it to a model: by OpenAI's Chat Completions or Responses, Anthropic's
// Messages or Gemini's generateContent.
type messageList struct {
	Model             text            `json:"model"`
	System            blocks          `json:"system"`            // Anthropic
	Instructions      text            `json:"instructions"`      // Responses
	SystemInstruction *chatMessage    `json:"systemInstruction"` // Gemini
	Messages          json.RawMessage `json:"messages"`
	Input             json.RawMessage `json:"input"` // Responses: a text or a list
	Output            json.RawMessage `json:"output"`
	Contents          json.RawMessage `json:"contents"` // Gemini
}

// chatMessage is a message of one of these APIs, or an item of Responses. Each API uses some of the members.
type chatMessage struct {
	Role       text            `json:"role"`
	Type       text            `json:"type"`
	Name       text            `json:"name"`
	Content    blocks          `json:"content"`
	Model      text            `json:"model"`
	Usage      json.RawMessage `json:"usage"`
	Reasoning  text            `json:"reasoning_content"`
	ToolCalls  []toolCall      `json:"tool_calls"`
	ToolCallID text            `json:"tool_call_id"` // of a result in Chat Completions
	CallID     text            `json:"call_id"`      // of a call or a result in Responses, as are the next four
	Arguments  json.RawMessage `json:"arguments"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	Summary    codexTexts      `json:"summary"`
	Parts      []messagePart   `json:"parts"` // Gemini
}

// toolCall is a call in the form of OpenAI's Chat Completions.
type toolCall struct {
	ID       text `json:"id"`
	Function struct {
		Name      text            `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// messagePart is a part of a message in the form of Gemini's API.
type messagePart struct {
	Text    *text `json:"text"`
	Thought bool  `json:"thought"`
	Call    *struct {
		ID   text            `json:"id"`
		Name text            `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       text            `json:"id"`
		Name     text            `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	Inline json.RawMessage `json:"inlineData"`
	File   json.RawMessage `json:"fileData"`
}

// turn is a message in a form that all APIs share.
type turn struct {
	role    string // user, assistant or system
	speaker string
	texts   []string
	thought []string
	calls   []turnCall
	results []turnResult
	model   string
	usage   json.RawMessage
}

type turnCall struct {
	id, name  string
	arguments json.RawMessage
}

type turnResult struct {
	call    string
	name    string // of a result without the id of its call
	text    string
	success *bool
}

// messages turns lists of messages into items. A program sends the whole conversation again with each request, and none
// of the APIs has ids of messages. So the id of a message is the end of a chain of hashes over it and all messages
// before it. A file that has grown has the same ids, and a message that does not follow the last known one begins a
// branch.
type messages struct {
	immediate
	stem string
	line *chain // of a file that has a message on each line
}

// chain is a conversation whose ids are a chain of hashes.
type chain struct {
	talk
	sum     [sha256.Size]byte
	named   bool    // id is complete
	held    []*turn // messages of the system before the first other one
	last    string  // the id of the agent's last message, "" after the user's
	thought []string
	open    map[string][]string // Gemini: calls without an id, by the tool's name
	calls   map[string]int      // how often each id of a call occurred: some servers reuse ids with each request
}

func newMessages(name string) converter { return &messages{stem: stemOfDocument(name)} }

func (m *messages) value(out *batch, raw []byte) error {
	var l messageList
	var err error
	if raw[0] == '[' {
		l.Messages = raw
	} else {
		err = json.Unmarshal(raw, &l)
	}
	if err != nil {
		return err
	}
	list := l.list()
	if len(list) == 0 {
		if raw[0] == '[' {
			return errors.New("the list of messages is empty")
		}
		if m.line == nil {
			m.line = m.begin("")
		}
		return m.line.add(out, raw)
	}
	at := ""
	if out.line > 1 {
		at = ":" + strconv.Itoa(out.line)
	}
	c := m.begin(at)
	c.start.Model = string(l.Model)
	if system := l.system(); system != "" {
		c.turn(out, &turn{role: "system", texts: []string{system}})
	}
	for i, raw := range list {
		first := len(out.items)
		if err := c.add(out, raw); err != nil {
			out.items = out.items[:first]
			refuseAt(out, "messages", i, err)
		}
	}
	return nil
}

// list returns the messages. A member that is not a list contributes none.
func (l *messageList) list() (list []json.RawMessage) {
	for _, raw := range []json.RawMessage{l.Messages, l.Contents, l.Input, l.Output} {
		var part []json.RawMessage
		switch {
		case isList(raw):
			_ = json.Unmarshal(raw, &part) // it is a list
		case len(raw) > 0 && raw[0] == '"' && l.Instructions+l.Model != "":
			part = []json.RawMessage{json.RawMessage(`{"role":"user","content":` + string(raw) + `}`)}
		}
		list = append(list, part...)
	}
	return list
}

func (l *messageList) system() string {
	if l.SystemInstruction != nil {
		if t := l.SystemInstruction.turn(); t != nil {
			return strings.Join(t.texts, "\n")
		}
	}
	system, _ := l.System.text("")
	return cmp.Or(system, string(l.Instructions))
}

// begin begins a conversation, which gets its id from the first message of the user.
func (m *messages) begin(at string) *chain {
	c := &chain{talk: talk{source: messagesSource, scoped: true}, open: map[string][]string{}, calls: map[string]int{}}
	c.id = messagesPrefix + cmp.Or(m.stem, "messages") + at
	c.sum = sha256.Sum256([]byte(c.id))
	return c
}

// add adds a message.
func (c *chain) add(out *batch, raw []byte) error {
	var m chatMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	if m.Type == "reasoning" {
		c.thought = append(c.thought, m.Summary...)
		return nil
	}
	t := m.turn()
	if t == nil {
		if kind := cmp.Or(string(m.Type), string(m.Role)); kind != "" {
			out.skip(messagesFormat, "", kind)
			return nil
		}
		return errors.New("role: is missing")
	}
	c.turn(out, t)
	return nil
}

// turn returns the message in the shared form, nil if its kind is unknown.
func (m *chatMessage) turn() *turn {
	t := &turn{speaker: string(m.Name), model: string(m.Model), usage: given(m.Usage)}
	kind := string(m.Type)
	switch {
	case strings.HasSuffix(kind, "_call") && m.Role == "":
		t.role, t.speaker = "assistant", ""
		t.calls = []turnCall{{string(m.CallID), cmp.Or(string(m.Name), strings.TrimSuffix(kind, "_call")), or(m.Arguments, string(m.Input))}}
		return t
	case strings.HasSuffix(kind, "_output") && m.Role == "":
		t.role, t.speaker = "user", ""
		t.results = []turnResult{{call: string(m.CallID), text: outputText(m.Output)}}
		return t
	case m.Role == "tool" || m.Role == "function":
		t.role, t.speaker = "user", ""
		content, _ := m.Content.text("")
		t.results = []turnResult{{call: string(m.ToolCallID), name: string(m.Name), text: content}}
		return t
	}
	switch m.Role {
	case "user":
		t.role = "user"
	case "assistant", "model":
		t.role = "assistant"
	case "system", "developer":
		t.role = "system"
	default:
		if m.Parts == nil {
			return nil
		}
		t.role = "user"
	}
	if m.Reasoning != "" {
		t.thought = append(t.thought, string(m.Reasoning))
	}
	for i := range m.Content {
		t.block(&m.Content[i])
	}
	for _, c := range m.ToolCalls {
		t.calls = append(t.calls, turnCall{string(c.ID), string(c.Function.Name), c.Function.Arguments})
	}
	for i := range m.Parts {
		t.part(&m.Parts[i])
	}
	return t
}

func (t *turn) block(b *block) {
	switch b.Type {
	case "tool_use":
		t.calls = append(t.calls, turnCall{b.ID, b.Name, b.Input})
	case "tool_result":
		result, _ := b.Content.text("")
		success := b.IsError != "true"
		t.results = append(t.results, turnResult{call: b.ToolUseID, text: result, success: &success})
	case "thinking":
		t.thought = append(t.thought, b.Thinking)
	case "input_text", "output_text":
		t.texts = append(t.texts, b.Text)
	default:
		if s, ok := b.shown(); ok {
			t.texts = append(t.texts, s)
		}
	}
}

func (t *turn) part(p *messagePart) {
	switch {
	case p.Thought && p.Text != nil:
		t.thought = append(t.thought, string(*p.Text))
	case p.Text != nil:
		t.texts = append(t.texts, string(*p.Text))
	case p.Call != nil:
		t.calls = append(t.calls, turnCall{string(p.Call.ID), string(p.Call.Name), p.Call.Args})
	case p.Response != nil:
		t.results = append(t.results, turnResult{call: string(p.Response.ID), name: string(p.Response.Name), text: geminiOutput(p.Response.Response)})
	case given(p.Inline) != nil || given(p.File) != nil:
		t.texts = append(t.texts, "[file]")
	}
}

// outputText returns the text of a tool's output: a text, a list of parts, or any JSON.
func outputText(raw json.RawMessage) string {
	var texts codexTexts
	if json.Unmarshal(or(raw, `""`), &texts) == nil && texts != nil {
		return texts.join()
	}
	return string(plain(or(raw, "")))
}

// link returns the next id of the chain. It leaves out what a client may drop or write differently when it sends a
// message again: the system's messages, reasoning, marks of caches, and the spelling of arguments.
func (c *chain) link(t *turn) string {
	h := sha256.New()
	h.Write(c.sum[:])
	part := func(s string) {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	part(t.role)
	part(strings.Join(t.texts, "\n"))
	for _, call := range t.calls {
		part("call")
		part(call.id)
		part(call.name)
		part(canonical(call.arguments))
	}
	for _, r := range t.results {
		part("result")
		part(cmp.Or(r.call, r.name))
		part(r.text)
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	if t.role != "system" {
		c.sum = sum
	}
	return "px:" + hex.EncodeToString(sum[:16])
}

// canonical returns JSON with sorted members and without white space.
func canonical(raw json.RawMessage) string {
	raw = argumentsOf(or(raw, "{}"))
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(sorted)
}

// turn adds the content of a message.
func (c *chain) turn(out *batch, t *turn) {
	if !c.named && t.role == "system" {
		c.held = append(c.held, t)
		return
	}
	held := c.held
	c.held = nil
	var ids []string
	for _, h := range held {
		ids = append(ids, c.link(h))
	}
	id := c.link(t)
	if !c.named { // to distinguish files of one name with different conversations
		c.named = true
		c.id += "-" + hex.EncodeToString(c.sum[:4])
	}
	for i, h := range held {
		c.say(out, ids[i], "", &events.MessageCreated{Role: "system", Content: strings.Join(h.texts, "\n"), Speaker: h.speaker})
	}
	for _, r := range t.results {
		if call := c.callOf(r); call != "" {
			c.answer(out, call, "", r.text, r.success)
		}
	}
	switch {
	case t.role == "assistant":
		c.assistant(out, id, t)
	case len(t.texts) > 0 || len(t.results) == 0:
		c.last = ""
		c.say(out, id, "", &events.MessageCreated{Role: t.role, Content: strings.Join(t.texts, "\n"), Speaker: t.speaker})
	}
}

// assistant adds a message of the model, or only its calls if they follow it as separate items.
func (c *chain) assistant(out *batch, id string, t *turn) {
	thoughts := append(c.thought, t.thought...)
	c.thought = nil
	if c.last == "" || len(t.texts) > 0 || len(t.calls) == 0 || len(thoughts) > 0 {
		c.last = id
		c.say(out, id, "", &events.MessageCreated{
			Role: "assistant", Content: strings.Join(t.texts, "\n"), Reasoning: strings.Join(thoughts, "\n"),
			Speaker: t.speaker, Model: t.model, Usage: t.usage,
		})
	}
	for i, call := range t.calls {
		if call.id == "" {
			call.id = id + ":c" + strconv.Itoa(i+1)
			c.open[call.name] = append(c.open[call.name], call.id)
		} else {
			c.calls[call.id]++
			call.id = c.latest(call.id)
		}
		c.call(out, call.id, "", c.last, call.name, call.arguments)
	}
}

// callOf returns the id of the call that a result answers. Without an id that is the tool's oldest open call.
func (c *chain) callOf(r turnResult) string {
	if r.call != "" {
		return c.latest(r.call)
	}
	open := c.open[r.name]
	if len(open) == 0 {
		return ""
	}
	c.open[r.name] = open[1:]
	return open[0]
}

// latest returns the event id of the last call with an id.
func (c *chain) latest(call string) string {
	if n := c.calls[call]; n > 1 {
		return call + ":" + strconv.Itoa(n)
	}
	return call
}

// detectMessages reports whether a value is a list of messages, or a single one.
func detectMessages(p *probe) bool {
	switch {
	case isList(p.Messages), isList(p.Contents):
		return !p.list
	case messageItems[p.Type] && p.CallID != "":
		return true
	case p.Input != nil && (p.Model != "" || p.Instructions != ""):
		return !p.list && (p.Input[0] == '[' || p.Input[0] == '"')
	}
	return messageRoles[p.Role] && (isList(p.Content) || len(p.Content) > 0 && p.Content[0] == '"' || isList(p.ToolCalls) || isList(p.Parts))
}

var (
	messageRoles = map[text]bool{"user": true, "assistant": true, "system": true, "developer": true, "tool": true, "model": true}
	messageItems = map[text]bool{"function_call": true, "function_call_output": true, "custom_tool_call": true}
)
