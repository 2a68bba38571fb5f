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
			arguments: or(e.raw("tool_call.function.arguments"), e.given()), result: e.raw("output.value"),
		})
	default:
		return recorded{leftOut: notContent}, nil
	}
	c := modelCall{model: e.text("llm.model_name"), usage: e.usage(), input: e.openInferenceMessages("llm.input_messages"), output: e.openInferenceMessages("llm.output_messages")}
	return e.modelCall(c)
}

func (e *entry) openInferenceMessages(prefix string) []message {
	var list []message
	lists := e.lists(prefix)
	for _, i := range lists[prefix] {
		at := prefix + "." + strconv.Itoa(i) + ".message."
		w := written{Role: e.text(at + "role"), ToolCallID: e.text(at + "tool_call_id"), Name: e.text(at + "name")}
		for _, j := range lists[at+"contents"] {
			one := at + "contents." + strconv.Itoa(j) + ".message_content."
			w.Content = append(w.Content, part{Type: cmp.Or(e.text(one+"type"), "text"), Text: e.text(one + "text"), ID: e.text(one + "id")})
		}
		if !slices.ContainsFunc(w.Content, func(p part) bool { return p.kind() == "text" && p.Text != "" }) { // else they repeat it
			w.Content = append(contentOf(e.text(at+"content")), w.Content...)
		}
		for _, j := range lists[at+"tool_calls"] {
			one := at + "tool_calls." + strconv.Itoa(j) + ".tool_call."
			w.ToolCalls = append(w.ToolCalls, writtenCall{ID: e.text(one + "id"), Name: e.text(one + "function.name"), Arguments: e.raw(one + "function.arguments")})
		}
		list = append(list, w.message())
	}
	return list
}

// langfuse reads spans of the SDKs of Langfuse. A generation is a call of a model; its input may be the whole request.
func (e *entry) langfuse() (recorded, error) {
	const input, output = "langfuse.observation.input", "langfuse.observation.output"
	switch e.text(langfuseType) {
	case "generation":
	case "tool":
		return e.executeTool(toolRun{name: e.name, arguments: e.raw(input), result: e.raw(output)})
	default:
		return recorded{leftOut: notContent}, nil
	}
	given := e.attributes
	var request struct { // with tools the input is the request, else its messages
		Messages json.RawMessage `json:"messages"`
		Input    json.RawMessage `json:"input"` // of the Responses API
	}
	if asObject(e.raw(input), &request) {
		if list := or(request.Messages, request.Input); list != nil {
			given = attributes{input: plainText(list)}
		}
	}
	c := modelCall{model: e.text("langfuse.observation.model.name"), usage: e.langfuseUsage()}
	c.input, c.output = given.anythingIn(input, "user"), e.anythingIn(output, "assistant")
	return e.modelCall(c)
}

// anythingIn is as messagesIn, but what is no message, such as a prompt that begins with [INST], is a text.
func (a attributes) anythingIn(key, role string) []message {
	list, err := a.messagesIn(key, role)
	if err != nil {
		list = []message{{role: role}}
	}
	if len(list) == 1 && list[0].empty() && len(list[0].thought) == 0 {
		list[0].texts = []string{a.text(key)}
	}
	return list
}

// langfuseUsage returns the counts of tokens, which are a JSON text.
func (e *entry) langfuseUsage() json.RawMessage {
	var counts map[string]json.RawMessage // some are lists of details
	if !asObject(e.raw("langfuse.observation.usage_details"), &counts) {
		return nil
	}
	usage := attributes{}
	for as, names := range map[string][]string{"gen_ai.usage.input_tokens": {"input", "input_tokens", "prompt_tokens"}, "gen_ai.usage.output_tokens": {"output", "output_tokens", "completion_tokens"}} {
		for _, name := range names {
			if counts[name] != nil {
				usage[as] = string(counts[name])
			}
		}
	}
	return (&entry{attributes: usage}).usage()
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

// packed is what frameworks make of a tool's result: LangChain a ToolMessage, in one of three forms, LlamaIndex a ToolOutput.
type packed struct {
	Type   string          `json:"type"`
	Data   *toolMessage    `json:"data"`   // of type tool
	Kwargs *toolMessage    `json:"kwargs"` // of type constructor
	Output json.RawMessage `json:"output"` // in OpenLLMetry's spans, one of these

	ToolName string          `json:"tool_name"`
	Blocks   json.RawMessage `json:"blocks"`
	Failed   *bool           `json:"is_error"`
}

type toolMessage struct {
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"tool_call_id"`
	Status  string          `json:"status"`
}

// unpack takes the result out of what a framework made of it, and the id of the call if it is there.
func (t *toolRun) unpack() {
	var p packed
	if !asObject(t.result, &p) {
		return
	}
	if inner := (packed{}); asObject(p.Output, &inner) {
		p = inner
	}
	var failed bool
	switch m := map[string]*toolMessage{"tool": p.Data, "constructor": p.Kwargs}[p.Type]; {
	case m != nil && m.CallID != "" && len(m.Content) > 0:
		t.id, t.result, failed = cmp.Or(t.id, m.CallID), unwrapped(m.Content), m.Status == "error"
	case p.ToolName != "" && len(p.Blocks) > 0 && p.Failed != nil:
		var blocks []part
		if json.Unmarshal(p.Blocks, &blocks) != nil || len(blocks) == 0 || slices.ContainsFunc(blocks, func(b part) bool { return b.Text == "" }) {
			return
		}
		t.result, failed = encode(contents(blocks).text()), *p.Failed
	default:
		return
	}
	if failed {
		success := false
		t.success, t.failure = &success, cmp.Or(t.failure, plainText(t.result))
	}
}

// given returns the arguments of a tool's run. What is called its parameters may be the schema of the arguments instead,
// and LlamaIndex puts the arguments into a member.
func (e *entry) given() json.RawMessage {
	var schema struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	parameters, input := e.raw("tool.parameters"), e.raw("input.value")
	if parameters != nil && (!asObject(parameters, &schema) || schema.Type != "object" || schema.Properties == nil) {
		return parameters
	}
	var wrapped map[string]json.RawMessage
	if asObject(input, &wrapped) && len(wrapped) == 1 && len(wrapped["kwargs"]) > 0 && wrapped["kwargs"][0] == '{' {
		return wrapped["kwargs"]
	}
	return input
}

// asObject decodes a JSON object into v, and returns false for anything else.
func asObject(raw json.RawMessage, v any) bool {
	return len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, v) == nil
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
