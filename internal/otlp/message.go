package otlp

import (
	"cmp"
	"encoding/json"
	"strings"
)

// message is one message of a model call, in one form for all sources.
type message struct {
	role    string // user, assistant or system
	name    string
	texts   []string
	thought []string
	calls   []toolCall
	results []toolResult
}

type toolCall struct {
	id, name  string
	arguments json.RawMessage
}

type toolResult struct {
	call, name string // the name is only used to find a call without an id
	result     json.RawMessage
	failed     bool
}

func (m *message) empty() bool {
	return len(m.texts) == 0 && len(m.calls) == 0 && len(m.results) == 0
}

// speaks reports whether the message is more than results of tools.
func (m *message) speaks() bool { return len(m.texts) > 0 || len(m.results) == 0 }

// written is a message as the conventions and libraries write it in JSON: with parts, with content that is a text or a list
// of parts, and with calls of tools inside or beside the content. Each uses some of the members.
type written struct {
	Role       string          `json:"role"`
	Name       string          `json:"name"`
	Parts      []part          `json:"parts"`
	Content    contents        `json:"content"`
	Reasoning  string          `json:"reasoning"`
	ToolCalls  []writtenCall   `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	ID         string          `json:"id"`
	Message    json.RawMessage `json:"message"` // of a choice

	Type      string          `json:"type"` // of an item of the Responses API, as are the next four
	CallID    string          `json:"call_id"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"` // of a custom tool, instead of arguments
	Output    json.RawMessage `json:"output"`
}

type writtenCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Function  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// part is a part of a message. The names differ: the conventions', Anthropic's, OpenAI's and those of the AI SDK.
type part struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	Content    json.RawMessage `json:"content"`
	Thinking   string          `json:"thinking"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	Input      json.RawMessage `json:"input"`
	Args       json.RawMessage `json:"args"`
	Response   json.RawMessage `json:"response"`
	Result     json.RawMessage `json:"result"`
	Output     json.RawMessage `json:"output"`
	ToolUseID  string          `json:"tool_use_id"`
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	IsError    bool            `json:"is_error"`
}

// contents is a list of parts, or a text.
type contents []part

func (c *contents) UnmarshalJSON(raw []byte) error {
	*c = nil
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, one := range list {
			var p part
			if one[0] == '"' {
				p.Type = "text"
				if err := json.Unmarshal(one, &p.Text); err != nil {
					return err
				}
			} else if json.Unmarshal(one, &p) != nil {
				p = part{Type: "unknown"}
			}
			*c = append(*c, p)
		}
	case '"':
		p := part{Type: "text"}
		if err := json.Unmarshal(raw, &p.Text); err != nil {
			return err
		}
		*c = contents{p}
	case 'n':
	default:
		*c = contents{{Type: "text", Text: string(raw)}}
	}
	return nil
}

// message returns the message in the form of this package.
func (w *written) message() message {
	if len(w.Message) > 0 && w.Message[0] == '{' {
		var inner written
		if json.Unmarshal(w.Message, &inner) == nil {
			inner.Role, inner.Message = cmp.Or(inner.Role, w.Role, "assistant"), nil
			return inner.message()
		}
	}
	switch w.Type {
	case "function_call", "custom_tool_call":
		return message{role: "assistant", calls: []toolCall{{w.CallID, w.Name, argumentsOf(or(w.Arguments, w.Input))}}}
	case "function_call_output", "custom_tool_call_output":
		return message{role: "user", results: []toolResult{{call: w.CallID, result: unwrapped(w.Output)}}}
	case "reasoning":
		return message{role: "assistant"}
	}
	m := message{name: w.Name}
	switch w.Role {
	case "assistant", "model", "ai":
		m.role = "assistant"
	case "system", "developer":
		m.role = "system"
	default:
		m.role = "user"
	}
	if w.Reasoning != "" {
		m.thought = append(m.thought, w.Reasoning)
	}
	if id := w.ToolCallID; w.Role == "tool" && (id != "" || len(w.Parts) == 0 && !w.Content.isResult()) {
		m.results = append(m.results, toolResult{call: cmp.Or(id, w.ID), name: w.Name, result: encode(w.Content.text())})
		return m
	}
	for i := range w.Parts {
		m.add(&w.Parts[i])
	}
	for i := range w.Content {
		m.add(&w.Content[i])
	}
	for _, c := range w.ToolCalls {
		if c.ID == "" && c.Name == "" && c.Function.Name == "" {
			continue // a gap in numbered attributes: the Agents SDK's instrumentation leaves out numbers
		}
		m.calls = append(m.calls, toolCall{c.ID, cmp.Or(c.Name, c.Function.Name), argumentsOf(or(c.Arguments, c.Function.Arguments))})
	}
	return m
}

// isResult reports whether the content holds results of tools as parts.
func (c contents) isResult() bool {
	for i := range c {
		if c[i].kind() == "tool_result" {
			return true
		}
	}
	return false
}

func (c contents) text() string {
	var texts []string
	for i := range c {
		texts = append(texts, cmp.Or(c[i].Text, plainText(c[i].Content)))
	}
	return strings.Join(texts, "\n")
}

// kind returns the type of a part under one of its names.
func (p *part) kind() string {
	switch p.Type {
	case "text", "input_text", "output_text":
		return "text"
	case "reasoning", "thinking":
		return "reasoning"
	case "tool_call", "tool-call", "tool_use", "function_call", "server_tool_call":
		return "tool_call"
	case "tool_call_response", "tool-result", "tool_result", "function_call_output", "server_tool_call_response":
		return "tool_result"
	case "":
		if p.Text != "" || len(p.Content) > 0 {
			return "text"
		}
	}
	return p.Type
}

// add adds a part. A part that is not text, such as a picture, is replaced with its type in
// brackets.
func (m *message) add(p *part) {
	switch kind := p.kind(); kind {
	case "text":
		if s := cmp.Or(p.Text, plainText(p.Content)); s != "" {
			m.texts = append(m.texts, s)
		}
	case "reasoning":
		if s := cmp.Or(p.Text, p.Thinking, plainText(p.Content)); s != "" {
			m.thought = append(m.thought, s)
		}
	case "tool_call":
		m.calls = append(m.calls, toolCall{cmp.Or(p.ToolCallID, p.ID), cmp.Or(p.ToolName, p.Name), argumentsOf(or(p.Arguments, p.Input, p.Args))})
	case "tool_result":
		m.results = append(m.results, toolResult{
			call: cmp.Or(p.ToolCallID, p.ToolUseID, p.ID), name: cmp.Or(p.ToolName, p.Name),
			result: unwrapped(or(p.Response, p.Result, p.Output, p.Content)), failed: p.IsError,
		})
	case "redacted_thinking":
	case "":
		m.texts = append(m.texts, "[unknown]")
	default:
		m.texts = append(m.texts, "["+kind+"]")
	}
}

// or returns the first value that exists and is not null.
func or(list ...json.RawMessage) json.RawMessage {
	for _, raw := range list {
		if len(raw) > 0 && string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// plainText returns a JSON string as text, and any other JSON as it is.
func plainText(raw json.RawMessage) string {
	if raw = or(raw); raw == nil {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// argumentsOf returns arguments as a JSON value, also if they came as a text.
func argumentsOf(raw json.RawMessage) json.RawMessage {
	if raw = or(raw); raw == nil {
		return json.RawMessage("{}")
	}
	if raw[0] == '"' {
		return rawOf(plainText(raw))
	}
	return raw
}

// unwrapped takes a result out of what the AI SDK ({"type": "text", "value": …}) and Anthropic (a list of texts) put it into.
func unwrapped(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`""`)
	}
	var typed struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	if raw[0] == '{' && json.Unmarshal(raw, &typed) == nil && typed.Type != "" && typed.Value != nil {
		return typed.Value
	}
	var list []part
	if raw[0] == '[' && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		var texts []string
		for i := range list {
			if list[i].Type != "text" {
				return raw
			}
			texts = append(texts, list[i].Text)
		}
		return encode(strings.Join(texts, "\n"))
	}
	return raw
}

// messagesIn decodes a list of messages from an attribute, or a single message or text.
func (a attributes) messagesIn(key, role string) ([]message, error) {
	var whole json.RawMessage
	text, isText := a[key].(string)
	if isText && !strings.HasPrefix(strings.TrimSpace(text), "[") && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		if text == "" {
			return nil, nil
		}
		return []message{{role: role, texts: []string{text}}}, nil
	}
	there, err := a.json(key, &whole)
	if !there || err != nil {
		return nil, err
	}
	if whole[0] != '[' {
		whole = json.RawMessage("[" + string(whole) + "]")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(whole, &list); err != nil {
		return nil, &fieldError{key, err}
	}
	var out []message
	for _, raw := range list {
		w := written{Role: role}
		if raw[0] == '"' {
			out = append(out, message{role: role, texts: []string{plainText(raw)}})
			continue
		}
		if err := json.Unmarshal(raw, &w); err != nil {
			return nil, &fieldError{key, err}
		}
		m := w.message()
		if last := len(out) - 1; w.CallID != "" && len(m.calls) > 0 && last >= 0 && out[last].role == "assistant" {
			out[last].calls = append(out[last].calls, m.calls...) // a call is an item beside the text of the answer
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// merged joins the messages of one answer: libraries write each part, or each choice, as a message. If there are
// several choices, the first text counts.
func merged(answers []message) []message {
	if len(answers) < 2 {
		return answers
	}
	one := message{role: "assistant"}
	for _, a := range answers {
		if a.role != "assistant" {
			return answers
		}
		one.name = cmp.Or(one.name, a.name)
		if len(one.texts) == 0 {
			one.texts = a.texts
		}
		one.thought = append(one.thought, a.thought...)
		one.calls = append(one.calls, a.calls...)
	}
	return []message{one}
}

// systemOf removes the system's messages from a list, and those without content.
func systemOf(list []message) (rest []message, system []string) {
	for _, m := range list {
		switch {
		case m.role == "system":
			system = append(system, m.texts...)
		case !m.empty():
			rest = append(rest, m)
		}
	}
	return rest, system
}
