package otlp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// aiSDK reads spans of the AI SDK by Vercel. Its outer spans repeat the content of the spans of calls to providers.
func (e *entry) aiSDK() (recorded, error) {
	operation := e.text("ai.operationId")
	switch {
	case operation == "ai.toolCall":
		return e.executeTool(toolRun{id: e.text("ai.toolCall.id"), name: e.text("ai.toolCall.name"), arguments: e.raw("ai.toolCall.args", "ai.toolCall.input"), result: e.raw("ai.toolCall.result", "ai.toolCall.output")})
	case !strings.HasSuffix(operation, ".doGenerate") && !strings.HasSuffix(operation, ".doStream"):
		return recorded{leftOut: notContent}, nil
	}
	c := modelCall{model: e.text("ai.response.model", "gen_ai.response.model", "ai.model.id"), usage: e.usage()}
	var err error
	if c.input, err = e.messagesIn("ai.prompt.messages", "user"); err != nil {
		return recorded{}, err
	}
	answer := message{role: "assistant"}
	if text := e.text("ai.response.text", "ai.response.object", "ai.result.text"); text != "" {
		answer.texts = []string{text}
	}
	if thought := e.text("ai.response.reasoning"); thought != "" {
		answer.thought = []string{thought}
	}
	var calls []part
	if _, err := e.json("ai.response.toolCalls", &calls); err != nil {
		return recorded{}, err
	}
	for i := range calls {
		calls[i].Type = "tool_call"
		answer.add(&calls[i])
	}
	if !answer.empty() {
		c.output = []message{answer}
	}
	return e.modelCall(c)
}

// openInference reads spans of OpenInference, by Arize.
func (e *entry) openInference() (recorded, error) {
	switch e.text("openinference.span.kind") {
	case "LLM":
	case "TOOL":
		return e.executeTool(toolRun{
			id: e.text("tool_call.id", "tool.id", "tool_call_id"), name: cmp.Or(e.text("tool.name", "tool_call.function.name"), e.name),
			arguments: e.raw("tool.parameters", "tool_call.function.arguments", "input.value"), result: e.raw("output.value"),
		})
	default:
		return recorded{leftOut: notContent}, nil
	}
	c := modelCall{model: e.text("llm.model_name"), usage: e.usage(), input: e.openInferenceMessages("llm.input_messages"), output: e.openInferenceMessages("llm.output_messages")}
	return e.modelCall(c)
}

func (e *entry) openInferenceMessages(prefix string) []message {
	var list []message
	for i := range e.count(prefix) {
		at := prefix + "." + strconv.Itoa(i) + ".message."
		w := written{Role: e.text(at + "role"), ToolCallID: e.text(at + "tool_call_id"), Name: e.text(at + "name")}
		for j := range e.count(at + "contents") {
			one := at + "contents." + strconv.Itoa(j) + ".message_content."
			w.Content = append(w.Content, part{Type: cmp.Or(e.text(one+"type"), "text"), Text: e.text(one + "text"), ID: e.text(one + "id")})
		}
		if !slices.ContainsFunc(w.Content, func(p part) bool { return p.kind() == "text" && p.Text != "" }) { // else they repeat it
			w.Content = append(contentOf(e.text(at+"content")), w.Content...)
		}
		for j := range e.count(at + "tool_calls") {
			one := at + "tool_calls." + strconv.Itoa(j) + ".tool_call."
			w.ToolCalls = append(w.ToolCalls, writtenCall{ID: e.text(one + "id"), Name: e.text(one + "function.name"), Arguments: e.raw(one + "function.arguments")})
		}
		list = append(list, w.message())
	}
	return list
}

// traceloop reads spans that OpenLLMetry makes for functions that an application decorates. Only tools have content of their own.
func (e *entry) traceloop() (recorded, error) {
	if e.text("traceloop.span.kind") != "tool" {
		return recorded{leftOut: notContent}, nil
	}
	return e.executeTool(toolRun{
		name:      cmp.Or(e.text("gen_ai.tool.name", "traceloop.entity.name"), strings.TrimSuffix(e.name, ".tool")),
		id:        e.text("gen_ai.tool.call.id"),
		arguments: e.raw("traceloop.entity.input"), result: e.raw("traceloop.entity.output"),
	})
}

// langChainResult is a ToolMessage of LangChain in one of its forms, which has the members that count in Data or Kwargs.
type langChainResult struct {
	Type   string          `json:"type"`
	Data   *toolMessage    `json:"data"`
	Kwargs *toolMessage    `json:"kwargs"`
	Output json.RawMessage `json:"output"` // OpenLLMetry puts the message in here, beside other members
}

type toolMessage struct {
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"tool_call_id"`
	Status  string          `json:"status"`
}

// ofLangChain takes the result and the id of its call out of the message that LangChain makes of them.
func ofLangChain(t toolRun) toolRun {
	var r langChainResult
	if len(t.result) == 0 || t.result[0] != '{' || json.Unmarshal(t.result, &r) != nil {
		return t
	}
	if len(r.Output) > 0 && r.Output[0] == '{' {
		inner := langChainResult{}
		if json.Unmarshal(r.Output, &inner) != nil {
			return t
		}
		r = inner
	}
	var m *toolMessage
	switch r.Type {
	case "tool":
		m = r.Data
	case "constructor":
		m = r.Kwargs
	}
	if m == nil || m.CallID == "" || len(m.Content) == 0 {
		return t
	}
	t.id, t.result = cmp.Or(t.id, m.CallID), unwrapped(m.Content)
	if m.Status == "error" {
		failed := false
		t.success, t.failure = &failed, cmp.Or(t.failure, plainText(t.result))
	}
	return t
}

// hidden is what Claude Code and Codex write in place of a text that they do not capture.
func hidden(text string) bool {
	return text == "" || strings.EqualFold(text, "<redacted>") || strings.EqualFold(text, "[redacted]")
}

// claudeCode reads a log record of Claude Code. It has no ids of messages, but numbers its events in a session.
func (e *entry) claudeCode() (recorded, error) {
	r := recorded{agent: "claude_code"}
	place := e.text("event.sequence")
	switch strings.TrimPrefix(e.name, "claude_code.") {
	case "user_prompt":
		r.said = &said{id: cmp.Or(e.text("prompt.id", "event.sequence"), e.moment()), role: "user", text: e.text("prompt")}
	case "assistant_response":
		r.said = &said{id: cmp.Or(e.text("request_id"), place, e.moment()), role: "assistant", text: e.text("response"), model: e.text("model")}
	case "tool_result":
		arguments := or(e.raw("tool_input"), e.raw("tool_parameters"))
		t := toolRun{id: e.text("tool_use_id"), name: e.text("tool_name"), arguments: arguments, result: e.raw("tool_output", "output"), success: e.truth("success"), failure: e.text("error"), silent: true}
		if t.id == "" && t.name != "" {
			t.id = "tool:" + cmp.Or(place, e.moment())
		}
		if ms, ok := e.number("duration_ms"); ok && ms >= 0 {
			t.durationMS = &ms
		}
		made, err := e.executeTool(t)
		made.agent = r.agent
		return made, err
	default:
		return recorded{leftOut: notContent}, nil
	}
	if hidden(r.said.text) {
		return recorded{leftOut: withoutContent}, nil
	}
	return r, nil
}

// codex reads a log record of Codex, which never has the assistant's text.
func (e *entry) codex() (recorded, error) {
	r := recorded{agent: "codex"}
	switch strings.TrimPrefix(e.name, "codex.") {
	case "user_prompt":
		if text := e.text("prompt"); !hidden(text) {
			r.said = &said{id: e.moment(), role: "user", text: text}
			return r, nil
		}
		return recorded{leftOut: withoutContent}, nil
	case "tool_result":
		t := toolRun{id: e.text("call_id"), name: e.text("tool_name"), arguments: e.raw("arguments"), result: e.raw("output"), success: e.truth("success")}
		if ms, ok := e.number("duration_ms"); ok && ms >= 0 {
			t.durationMS = &ms
		}
		if t.success != nil && !*t.success {
			t.failure = cmp.Or(plainText(t.result), "failed")
		}
		made, err := e.executeTool(t)
		made.agent = r.agent
		return made, err
	}
	return recorded{leftOut: notContent}, nil
}

// moment makes an id for a log record that has none, from its time in nanoseconds.
func (e *entry) moment() string {
	if at := e.text("event.timestamp"); at != "" {
		return at
	}
	return strconv.FormatInt(e.begin.UnixNano(), 10)
}
