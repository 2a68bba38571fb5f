package otlp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Names of attributes that several readers use.
const (
	conversationID = "gen_ai.conversation.id"
	sessionID      = "session.id"
	langfuseType   = "langfuse.observation.type"
)

// sessions are the attributes that name the session, the best first.
var sessionKeys = []string{
	conversationID, sessionID, "conversation.id", "langfuse.session.id", "ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.session_id",
	"ai.telemetry.metadata.conversationId", "ai.telemetry.metadata.chatId", "ai.telemetry.metadata.threadId",
	"traceloop.association.properties.session_id", "traceloop.association.properties.conversation_id",
	"traceloop.association.properties.thread_id", "traceloop.association.properties.chat_id",
}

// recorded is what an entry contains of a conversation: exactly one member is set, or the entry is left out.
type recorded struct {
	agent   string // the agent whose transcripts may have the same content, "" for none
	call    *modelCall
	tool    *toolRun
	said    *said
	leftOut string // why it is left out
}

// modelCall is a request to a model, with the whole history, and its answer.
type modelCall struct {
	system    []string
	input     []message
	output    []message
	model     string
	usage     json.RawMessage
	compacted bool
}

// toolRun is the execution of a tool call.
type toolRun struct {
	id, name   string
	arguments  json.RawMessage
	result     json.RawMessage // nil if it was not captured
	success    *bool
	failure    string
	durationMS *float64
	silent     bool // nothing else reports the result, so it counts without content
}

// said is a message that comes by itself, with its own id.
type said struct {
	id, role, text, model string
}

// Reasons for which an entry is left out. They are the labels of a metric.
const (
	unknownEntry   = "unknown"
	notContent     = "no content of a conversation"
	withoutContent = "content not captured"
	sideCall       = "side call"
	fromTranscript = "recorded from its transcript"
)

// read returns what an entry contains. An error means that it has content of a conversation, but can't be read.
func (e *entry) read(s signal) (recorded, error) {
	name, _, _ := strings.Cut(e.name, ".")
	switch {
	case s == logs && name == "claude_code":
		return e.claudeCode()
	case s == logs && name == "codex":
		return e.codex()
	case s == logs && e.name != inferenceEvent:
		return recorded{leftOut: unknownIf(!slices.Contains([]string{"gemini_cli", "qwen-code", "gen_ai"}, name))}, nil
	case e.has("ai.operationId") && !e.has(inputMessages, outputMessages):
		return e.aiSDK()
	case e.has("openinference.span.kind"):
		return e.openInference()
	case e.has(langfuseType) && !e.has(inputMessages, outputMessages):
		return e.langfuse()
	case e.has("traceloop.span.kind") && !e.has("gen_ai.operation.name", "llm.request.type"):
		return e.traceloop()
	case e.has("gen_ai.operation.name", inputMessages, outputMessages, allMessages, "llm.request.type", "gen_ai.system"):
		r, err := e.genAI()
		r.agent = transcribed[e.service]
		return r, err
	}
	return recorded{leftOut: unknownEntry}, nil
}

// transcribed are the agents that follow the conventions and whose transcripts can be recorded, by their service.
var transcribed = map[string]string{"gemini-cli": "gemini_cli", "qwen-code": "qwen_code"}

func unknownIf(unknown bool) string {
	if unknown {
		return unknownEntry
	}
	return notContent
}

// The attributes of the conventions.
const (
	inputMessages  = "gen_ai.input.messages"
	outputMessages = "gen_ai.output.messages"
	allMessages    = "pydantic_ai.all_messages"
	inferenceEvent = "gen_ai.client.inference.operation.details"
)

// genAI reads the semantic conventions for generative AI, in their present form and, as OpenLLMetry and older libraries
// write them, with an attribute or a span event for each message.
func (e *entry) genAI() (recorded, error) {
	switch operation := e.text("gen_ai.operation.name"); operation {
	case "execute_tool":
		return e.executeTool(toolRun{
			id: e.text("gen_ai.tool.call.id", "gen_ai.tool.call_id"), name: e.text("gen_ai.tool.name"),
			arguments: e.raw("gen_ai.tool.call.arguments", "tool_arguments", "gen_ai.tool.arguments"),
			result:    e.raw("gen_ai.tool.call.result", "tool_response", "gen_ai.tool.result"),
		})
	case "", "chat", "generate_content", "text_completion", "completion":
	default: // agents, workflows, embeddings, memory: the calls inside them have the content
		if operation == "invoke_agent" && e.has(allMessages) {
			break
		}
		return recorded{leftOut: notContent}, nil
	}
	c := modelCall{model: e.text("gen_ai.response.model", "gen_ai.request.model"), usage: e.usage()}
	if compacted := e.truth("gen_ai.conversation.compacted"); compacted != nil {
		c.compacted = *compacted
	}
	var err error
	if c.input, err = e.messagesIn(inputMessages, "user"); err != nil {
		return recorded{}, err
	}
	if c.output, err = e.messagesIn(outputMessages, "assistant"); err != nil {
		return recorded{}, err
	}
	if len(c.input)+len(c.output) == 0 {
		if c.input, err = e.messagesIn(allMessages, "user"); err != nil {
			return recorded{}, err
		}
	}
	system, err := e.messagesIn("gen_ai.system_instructions", "system")
	if err != nil {
		return recorded{}, err
	}
	for _, m := range system {
		c.system = append(c.system, m.texts...)
	}
	if len(c.input)+len(c.output) == 0 {
		c.input, c.output = e.numbered("gen_ai.prompt", ""), e.numbered("gen_ai.completion", "assistant")
	}
	if len(c.input)+len(c.output) == 0 {
		c.input, c.output = e.perMessage()
	}
	return e.modelCall(c)
}

// usage returns the counts of tokens.
func (e *entry) usage() json.RawMessage {
	counts := map[string]any{}
	for name, keys := range map[string][]string{
		"input_tokens":                {"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.inputTokens", "ai.usage.promptTokens", "input_tokens"},
		"output_tokens":               {"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion", "ai.usage.outputTokens", "ai.usage.completionTokens", "output_tokens"},
		"cache_read_input_tokens":     {"gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"},
		"cache_creation_input_tokens": {"gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens", "llm.token_count.prompt_details.cache_write"},
	} {
		if n, ok := e.number(keys...); ok && n >= 0 {
			counts[name] = n
		}
	}
	if len(counts) == 0 {
		return nil
	}
	return encode(counts)
}

// maxSideTokens is the longest answer, in tokens, of a side call (a title, a probe): a lone message without tools.
const maxSideTokens = 32

// modelCall finishes reading a call.
func (e *entry) modelCall(c modelCall) (recorded, error) {
	var system, late []string
	c.input, system = systemOf(c.input)
	c.output, late = systemOf(merged(c.output))
	c.system = slices.Concat(c.system, system, late)
	if len(c.input)+len(c.output) == 0 {
		return recorded{leftOut: withoutContent}, nil
	}
	limit, limited := e.number("gen_ai.request.max_tokens")
	if limited && limit <= maxSideTokens && len(c.input) <= 1 && !e.has("gen_ai.tool.definitions") {
		return recorded{leftOut: sideCall}, nil
	}
	return recorded{call: &c}, nil
}

// executeTool finishes reading the run of a tool.
func (e *entry) executeTool(t toolRun) (recorded, error) {
	t.unpack()
	if t.name == "" && t.id == "" {
		return recorded{leftOut: withoutContent}, nil
	}
	failure := ""
	if kind := e.text("error.type", "exception.type"); e.failed || kind != "" {
		failure = cmp.Or(e.text("exception.message", "error.message"), e.message, kind, "failed")
	}
	for _, h := range e.happening {
		if h.name == "exception" {
			failure = cmp.Or(h.text("exception.message", "exception.type"), failure)
		}
	}
	if t.success == nil && (failure != "" || t.result != nil) {
		success := failure == ""
		t.success = &success
	}
	t.failure = cmp.Or(t.failure, failure)
	if took := e.end.Sub(e.begin); t.durationMS == nil && took > 0 && !e.begin.IsZero() {
		t.durationMS = new(float64(took.Microseconds()) / 1000)
	}
	if t.result == nil && t.arguments == nil && t.failure == "" && !t.silent {
		return recorded{leftOut: withoutContent}, nil
	}
	return recorded{tool: &t}, nil
}

// numbered reads messages with an attribute for each member, as OpenLLMetry wrote them: gen_ai.prompt.0.content.
func (e *entry) numbered(prefix, role string) []message {
	var list []message
	lists := e.lists(prefix)
	for _, i := range lists[prefix] {
		at := prefix + "." + strconv.Itoa(i) + "."
		w := written{Role: cmp.Or(e.text(at+"role"), role), ToolCallID: e.text(at + "tool_call_id")}
		w.Content = contentOf(e.text(at + "content"))
		w.Reasoning = e.text(at + "reasoning")
		for _, j := range lists[at+"tool_calls"] {
			one := at + "tool_calls." + strconv.Itoa(j) + "."
			w.ToolCalls = append(w.ToolCalls, writtenCall{ID: e.text(one + "id"), Name: e.text(one + "name"), Arguments: e.raw(one + "arguments")})
		}
		list = append(list, w.message())
	}
	return list
}

// contentOf reads content that may be a list of parts in JSON.
func contentOf(text string) contents {
	if text == "" {
		return nil
	}
	var c contents
	if strings.HasPrefix(text, `[{"`) && json.Unmarshal([]byte(text), &c) == nil && !slices.ContainsFunc(c, func(p part) bool { return p.Type == "" || p.Type == "unknown" }) {
		return c
	}
	return contents{{Type: "text", Text: text}}
}

// lists returns, in order, the indexes of each list that is spelled out in the names of attributes with a prefix: the name
// a.0.b.7.c gives index 0 of the list a, and index 7 of the list a.0.b. Lists are not nested deeper than that.
func (e *entry) lists(prefix string) map[string][]int {
	lists := map[string][]int{}
	for key := range e.attributes {
		if !strings.HasPrefix(key, prefix+".") {
			continue
		}
		inside := 0
		for from, more := len(prefix)+1, true; more && inside < 2; {
			var member string
			member, _, more = strings.Cut(key[from:], ".")
			if n, err := strconv.Atoi(member); err == nil && n >= 0 {
				lists[key[:from-1]] = append(lists[key[:from-1]], n)
				inside++
			}
			from += len(member) + 1
		}
	}
	for name, numbers := range lists {
		slices.Sort(numbers)
		lists[name] = slices.Compact(numbers)
	}
	return lists
}

// perMessage reads the span events of the conventions up to 1.36, one for each message.
func (e *entry) perMessage() (input, output []message) {
	for i := range e.happening {
		h := &e.happening[i]
		kind, ok := strings.CutPrefix(h.name, "gen_ai.")
		if !ok {
			continue
		}
		w := written{Role: h.text("role")}
		there := false
		for _, key := range []string{"gen_ai.event.content", "content", "message"} {
			if h.has(key) {
				w.Content, there = contentOf(h.text(key)), true
				if key != "content" {
					_, _ = h.json(key, &w) // else the text is the content
				}
				break
			}
		}
		if calls, err := h.json("tool_calls", &w.ToolCalls); err == nil && calls {
			there = true
		}
		w.ToolCallID = h.text("id", "tool_call_id")
		if !there {
			continue
		}
		switch kind {
		case "user.message", "assistant.message", "system.message", "tool.message":
			w.Role = cmp.Or(w.Role, strings.TrimSuffix(kind, ".message"))
			input = append(input, w.message())
		case "choice":
			w.Role = "assistant"
			output = append(output, w.message())
		}
	}
	return input, output
}
