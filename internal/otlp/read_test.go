package otlp

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

// called returns a model call in short.
func called(t *testing.T, a attributes, happening ...entry) []string {
	t.Helper()
	e := entry{attributes: a, happening: happening}
	what, err := e.read(traces)
	require.NoError(t, err)
	require.NotNil(t, what.call, what.leftOut)
	var out []string
	if len(what.call.system) > 0 {
		out = append(out, "system: "+strings.Join(what.call.system, "|"))
	}
	for i, m := range append(what.call.input, what.call.output...) {
		if i == len(what.call.input) {
			out = append(out, "=>")
		}
		text := m.role + ":"
		for _, s := range m.texts {
			text += " " + s
		}
		for _, c := range m.calls {
			text += " call " + c.id + " " + c.name + string(c.arguments)
		}
		for _, r := range m.results {
			text += " result " + r.call + string(r.result)
		}
		out = append(out, text)
	}
	return out
}

// weather is the conversation that all of these libraries report.
var weather = []string{
	"system: Be brief.", "user: Weather in Paris?", `assistant: call call_1 get_weather{"location":"Paris"}`, `user: result call_1"rainy"`, "=>", "assistant: It rains.",
}

func TestEachLibraryTellsTheSameConversation(t *testing.T) {
	for name, a := range map[string]attributes{
		"the conventions, as JSON texts": {
			"gen_ai.operation.name": "chat", "gen_ai.system_instructions": `[{"type":"text","content":"Be brief."}]`,
			inputMessages:  `[{"role":"user","parts":[{"type":"text","content":"Weather in Paris?"}]},{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"get_weather","arguments":{"location":"Paris"}}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"call_1","response":"rainy"}]}]`,
			outputMessages: `[{"role":"assistant","parts":[{"type":"text","content":"It rains."}],"finish_reason":"stop"}]`,
		},
		"the conventions, as structures": {
			"gen_ai.operation.name": "chat", "gen_ai.system_instructions": []any{map[string]any{"type": "text", "content": "Be brief."}},
			inputMessages: []any{
				map[string]any{"role": "user", "parts": []any{map[string]any{"type": "text", "content": "Weather in Paris?"}}},
				map[string]any{"role": "assistant", "parts": []any{map[string]any{"type": "tool_call", "id": "call_1", "name": "get_weather", "arguments": map[string]any{"location": "Paris"}}}},
				map[string]any{"role": "tool", "parts": []any{map[string]any{"type": "tool_call_response", "id": "call_1", "response": "rainy"}}},
			},
			outputMessages: []any{map[string]any{"role": "assistant", "parts": []any{map[string]any{"type": "text", "content": "It rains."}}}},
		},
		"pydantic-ai's agent": {
			"gen_ai.operation.name": "invoke_agent",
			allMessages:             `[{"role":"system","parts":[{"type":"text","content":"Be brief."}]},{"role":"user","parts":[{"type":"text","content":"Weather in Paris?"}]},{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"get_weather","arguments":"{\"location\":\"Paris\"}"}]},{"role":"user","parts":[{"type":"tool_call_response","id":"call_1","name":"get_weather","result":"rainy"}]},{"role":"assistant","parts":[{"type":"text","content":"It rains."}]}]`,
		},
		"OpenInference": {
			"openinference.span.kind":           "LLM",
			"llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be brief.",
			"llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.contents.0.message_content.type": "text", "llm.input_messages.1.message.contents.0.message_content.text": "Weather in Paris?",
			"llm.input_messages.2.message.role": "assistant", "llm.input_messages.2.message.tool_calls.0.tool_call.id": "call_1", "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "get_weather", "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": `{"location":"Paris"}`,
			"llm.input_messages.3.message.role": "tool", "llm.input_messages.3.message.tool_call_id": "call_1", "llm.input_messages.3.message.content": "rainy",
			"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "It rains.",
		},
		"OpenInference, with a text twice and gaps in the numbers, as for the Agents SDK": {
			"openinference.span.kind":           "LLM",
			"llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be brief.",
			"llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": "Weather in Paris?",
			"llm.input_messages.2.message.role": "assistant", "llm.input_messages.2.message.tool_calls.1.tool_call.id": "call_1", "llm.input_messages.2.message.tool_calls.1.tool_call.function.name": "get_weather", "llm.input_messages.2.message.tool_calls.1.tool_call.function.arguments": `{"location":"Paris"}`,
			"llm.input_messages.3.message.role": "tool", "llm.input_messages.3.message.tool_call_id": "call_1", "llm.input_messages.3.message.content": "rainy", "llm.input_messages.3.message.contents.0.message_content.type": "text", "llm.input_messages.3.message.contents.0.message_content.text": "rainy",
			"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "It rains.", "llm.output_messages.0.message.contents.0.message_content.type": "text", "llm.output_messages.0.message.contents.0.message_content.text": "It rains.",
		},
		"OpenLLMetry": {
			"gen_ai.system": "openai", "llm.request.type": "chat",
			"gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief.",
			"gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": `[{"type":"text","text":"Weather in Paris?"}]`,
			"gen_ai.prompt.2.role": "assistant", "gen_ai.prompt.2.tool_calls.0.id": "call_1", "gen_ai.prompt.2.tool_calls.0.name": "get_weather", "gen_ai.prompt.2.tool_calls.0.arguments": `{"location":"Paris"}`,
			"gen_ai.prompt.3.role": "tool", "gen_ai.prompt.3.tool_call_id": "call_1", "gen_ai.prompt.3.content": "rainy",
			"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "It rains.",
		},
		"Langfuse": {
			langfuseType: "generation", "langfuse.observation.model.name": "model-a",
			"langfuse.observation.input":  `{"tools":[{"type":"function","function":{"name":"get_weather"}}],"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Weather in Paris?"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"location\":\"Paris\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"rainy"}]}`,
			"langfuse.observation.output": `{"role":"assistant","content":"It rains."}`,
		},
		"Langfuse, of the Responses API": {
			langfuseType:                  "generation",
			"langfuse.observation.input":  `[{"role":"system","content":"Be brief."},{"role":"user","content":"Weather in Paris?"},{"type":"reasoning","id":"r","summary":[]},{"type":"function_call","id":"fc","call_id":"call_1","name":"get_weather","arguments":"{\"location\":\"Paris\"}"},{"type":"function_call_output","call_id":"call_1","output":"rainy"}]`,
			"langfuse.observation.output": `{"id":"msg","type":"message","role":"assistant","content":[{"type":"output_text","text":"It rains.","annotations":[]}]}`,
		},
		"the AI SDK": {
			"ai.operationId":     "ai.streamText.doStream",
			"ai.prompt.messages": `[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Weather in Paris?"}]},{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call_1","toolName":"get_weather","input":{"location":"Paris"}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"call_1","toolName":"get_weather","output":{"type":"text","value":"rainy"}}]}]`,
			"ai.response.text":   "It rains.",
		},
	} {
		want := weather
		if name == "pydantic-ai's agent" { // all of them are its input
			want = append(append([]string{}, weather[:4]...), weather[5])
		}
		require.Equal(t, want, called(t, a), name)
	}
}

func TestAGenerationOfLangfuseMayHaveAnyInput(t *testing.T) {
	for in, want := range map[string]string{
		"a text": "user: a text", `{"question":"why"}`: `user: {"question":"why"}`, `[{"role":"user","content":"why"}]`: "user: why",
		"[INST] why [/INST]": "user: [INST] why [/INST]", "[1,2]": "user: [1,2]",
		`{"tools":[],"input":"why"}`: "user: why", `{"tools":[],"input":"[INST] why [/INST]"}`: "user: [INST] why [/INST]",
	} {
		require.Equal(t, []string{want, "=>", `assistant: {"because":1}`}, called(t, attributes{langfuseType: "generation", "langfuse.observation.input": in, "langfuse.observation.output": `{"because":1}`}))
	}
	require.Equal(t, []string{`assistant: call call_1 patch"*** Begin"`}, called(t, attributes{langfuseType: "generation", "langfuse.observation.output": `{"type":"custom_tool_call","call_id":"call_1","name":"patch","input":"*** Begin"}`})[1:])
	e := entry{attributes: attributes{langfuseType: "generation", "langfuse.observation.input": "x", "langfuse.observation.usage_details": `{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":1},"total_tokens":7}`}}
	what, err := e.read(traces)
	require.NoError(t, err)
	require.JSONEq(t, `{"input_tokens":3,"output_tokens":4}`, string(what.call.usage))

	e = entry{name: "get_weather", attributes: attributes{langfuseType: "tool", "langfuse.observation.input": `{"location":"Paris"}`, "langfuse.observation.output": "rainy"}}
	what, err = e.read(traces)
	require.NoError(t, err)
	require.Equal(t, "get_weather", what.tool.name)
	require.JSONEq(t, `"rainy"`, string(what.tool.result))

	e = entry{attributes: attributes{langfuseType: "span", "langfuse.observation.input": "x"}}
	what, err = e.read(traces)
	require.NoError(t, err)
	require.Equal(t, notContent, what.leftOut)
}

func TestSpanEventsForEachMessageAreRead(t *testing.T) {
	happening := []entry{
		{name: "gen_ai.system.message", attributes: attributes{"content": "Be brief."}},
		{name: "gen_ai.user.message", attributes: attributes{"content": "Weather in Paris?"}},
		{name: "gen_ai.assistant.message", attributes: attributes{"tool_calls": `[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"location\":\"Paris\"}"}}]`}},
		{name: "gen_ai.tool.message", attributes: attributes{"content": "rainy", "id": "call_1"}},
		{name: "gen_ai.choice", attributes: attributes{"message": `{"role":"assistant","content":"It rains."}`, "index": int64(0)}},
	}
	require.Equal(t, weather, called(t, attributes{"gen_ai.operation.name": "chat"}, happening...))
}

func TestRunsOfToolsAreRead(t *testing.T) {
	begin := time.Unix(100, 0)
	for name, a := range map[string]attributes{
		"the conventions": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather", "gen_ai.tool.call.id": "call_1", "gen_ai.tool.call.arguments": map[string]any{"location": "Paris"}, "gen_ai.tool.call.result": "rainy"},
		"OpenInference":   {"openinference.span.kind": "TOOL", "tool.name": "get_weather", "tool_call.id": "call_1", "input.value": `{"location":"Paris"}`, "output.value": "rainy"},
		"the AI SDK":      {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "get_weather", "ai.toolCall.id": "call_1", "ai.toolCall.args": `{"location":"Paris"}`, "ai.toolCall.result": `"rainy"`},
		"OpenLLMetry":     {"traceloop.span.kind": "tool", "traceloop.entity.name": "get_weather", "gen_ai.tool.call.id": "call_1", "traceloop.entity.input": `{"location":"Paris"}`, "traceloop.entity.output": "rainy"},
		"LlamaIndex by OpenInference": {
			"openinference.span.kind": "TOOL", "tool.name": "get_weather", "tool_call.id": "call_1", "input.value": `{"kwargs": {"location": "Paris"}}`,
			"tool.parameters": `{"properties":{"location":{"title":"Location","type":"string"}},"required":["location"],"type":"object"}`,
			"output.value":    `{"blocks":[{"text":"rainy"}],"tool_name":"get_weather","raw_input":{"args":[],"kwargs":{"location":"Paris"}},"raw_output":"rainy","is_error":false}`,
		},
		"LangChain by OpenInference": {
			"openinference.span.kind": "TOOL", "tool.name": "get_weather", "input.value": `{"location":"Paris"}`,
			"output.value": `{"type":"tool","data":{"content":"rainy","additional_kwargs":{},"type":"tool","name":"get_weather","tool_call_id":"call_1","status":"success"}}`,
		},
		"LangChain by OpenLLMetry": {
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather", "gen_ai.tool.call.arguments": `{"location":"Paris"}`,
			"gen_ai.tool.call.result": `{"output":{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{"content":[{"type":"text","text":"rainy"}],"type":"tool","name":"get_weather","tool_call_id":"call_1","status":"success"}},"kwargs":{"color":"green","name":"get_weather"}}`,
		},
	} {
		e := entry{attributes: a, begin: begin, end: begin.Add(1500 * time.Millisecond)}
		what, err := e.read(traces)
		require.NoError(t, err, name)
		require.NotNil(t, what.tool, name)
		require.Equal(t, "call_1 get_weather", what.tool.id+" "+what.tool.name, name)
		require.JSONEq(t, `{"location":"Paris"}`, string(what.tool.arguments), name)
		require.JSONEq(t, `"rainy"`, string(what.tool.result), name)
		require.True(t, *what.tool.success, name)
		require.InDelta(t, 1500, *what.tool.durationMS, 0.01, name)
	}
	refused := entry{attributes: attributes{"openinference.span.kind": "TOOL", "tool.name": "get_weather", "output.value": `{"type":"tool","data":{"content":"no such place","tool_call_id":"call_1","status":"error"}}`}}
	what, err := refused.read(traces)
	require.NoError(t, err)
	require.False(t, *what.tool.success)
	require.Equal(t, "no such place", what.tool.failure)
	raised := entry{attributes: attributes{"openinference.span.kind": "TOOL", "tool.name": "get_weather", "output.value": `{"blocks":[{"text":"Encountered error: no such place"}],"tool_name":"get_weather","raw_input":{},"raw_output":"no such place","is_error":true}`}}
	what, err = raised.read(traces)
	require.NoError(t, err)
	require.False(t, *what.tool.success)
	require.Equal(t, "Encountered error: no such place", what.tool.failure)
	failing := entry{attributes: attributes{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather", "error.type": "timeout"}, failed: true}
	what, err = failing.read(traces)
	require.NoError(t, err)
	require.False(t, *what.tool.success)
	require.Equal(t, "timeout", what.tool.failure)
}

func TestLogRecordsOfAgentsAreRead(t *testing.T) {
	read := func(name string, a attributes) recorded {
		e := entry{attributes: a, name: name}
		what, err := e.read(logs)
		require.NoError(t, err)
		return what
	}
	prompt := read("claude_code.user_prompt", attributes{"prompt": "Hello", "prompt.id": "p1"})
	require.Equal(t, said{id: "p1", role: "user", text: "Hello"}, *prompt.said)
	require.Equal(t, "claude_code", prompt.agent)
	require.Equal(t, withoutContent, read("claude_code.user_prompt", attributes{"prompt": "<REDACTED>", "prompt.id": "p1"}).leftOut)
	answer := read("claude_code.assistant_response", attributes{"response": "Hi", "request_id": "req_1", "model": "m"})
	require.Equal(t, said{id: "req_1", role: "assistant", text: "Hi", model: "m"}, *answer.said)
	ran := read("claude_code.tool_result", attributes{"tool_use_id": "toolu_1", "tool_name": "Bash", "success": "true", "duration_ms": "12", "tool_input": `{"command":"ls"}`})
	require.Equal(t, "toolu_1", ran.tool.id)
	require.True(t, *ran.tool.success)
	require.InDelta(t, 12, *ran.tool.durationMS, 0)
	require.Nil(t, ran.tool.result)
	require.Equal(t, notContent, read("claude_code.api_request", attributes{"model": "m"}).leftOut)

	require.Equal(t, "Hello", read("codex.user_prompt", attributes{"prompt": "Hello", "event.timestamp": "2026-01-05T09:00:00Z"}).said.text)
	failed := read("codex.tool_result", attributes{"call_id": "c1", "tool_name": "shell", "arguments": `{"command":["ls"]}`, "output": "no such file", "success": "false"})
	require.False(t, *failed.tool.success)
	require.Equal(t, "no such file", failed.tool.failure)

	details := read(inferenceEvent, attributes{"gen_ai.operation.name": "chat", inputMessages: []any{map[string]any{"role": "user", "parts": []any{map[string]any{"type": "text", "content": "Hello"}}}}})
	require.Equal(t, []string{"Hello"}, details.call.input[0].texts)
	require.Equal(t, notContent, read("gemini_cli.user_prompt", attributes{"prompt": "Hello"}).leftOut, "the inference event has it")
	require.Equal(t, notContent, read("qwen-code.user_prompt", attributes{"prompt": "Hello"}).leftOut, "its spans have it")
	require.Equal(t, unknownEntry, read("http.request", attributes{}).leftOut)
}

func TestWhatIsNoContentIsLeftOutWithAReason(t *testing.T) {
	for reason, list := range map[string][]attributes{
		unknownEntry:   {{"http.request.method": "GET"}, {}},
		notContent:     {{"gen_ai.operation.name": "search_memory", "gen_ai.memory.query.text": "units"}, {"gen_ai.operation.name": "embeddings"}, {"openinference.span.kind": "CHAIN"}, {"ai.operationId": "ai.generateText"}, {"traceloop.span.kind": "workflow"}},
		withoutContent: {{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}},
		sideCall:       {{"gen_ai.operation.name": "chat", "gen_ai.request.max_tokens": int64(1), inputMessages: `[{"role":"user","parts":[{"type":"text","content":"quota"}]}]`}},
	} {
		for _, a := range list {
			e := entry{attributes: a}
			what, err := e.read(traces)
			require.NoError(t, err)
			require.Equal(t, reason, what.leftOut, "%v", a)
		}
	}
}

func TestACutAttributeIsRefusedWithTheRemedy(t *testing.T) {
	e := entry{attributes: attributes{"gen_ai.operation.name": "chat", inputMessages: `[{"role":"user","parts":[{"type":"text","content":"Wea`}}
	_, err := e.read(traces)
	require.ErrorIs(t, err, errCut)
	require.ErrorContains(t, err, "gen_ai.input.messages is not complete JSON")
	require.ErrorContains(t, err, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")
}

func FuzzReadingMessages(f *testing.F) {
	for _, seed := range []string{
		`[{"role":"user","parts":[{"type":"text","content":"A"}]}]`, `[{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","output":{"type":"json","value":[1]}}]}]`,
		`{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}`, `[["user","A"]]`, `["A"]`, `[null]`, `A`, `[{"content":7}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := remembering(t)
		for _, a := range []attributes{{"gen_ai.operation.name": "chat", inputMessages: text}, {"ai.operationId": "x.doGenerate", "ai.prompt.messages": text, "ai.response.toolCalls": text}} {
			e := entry{attributes: a}
			what, err := e.read(traces)
			if err != nil || what.call == nil {
				continue
			}
			p := newPlan("default", m.memory)
			p.call(p.change(p.session("s", false)), &e, what.call)
			for _, item := range p.items {
				if item.Err == nil && !json.Valid(item.Event.Data) {
					t.Fatalf("%s is no JSON", item.Event.Data)
				}
			}
		}
	})
}

func TestNumberedMessagesCostOnlyTheAttributesThatAreThere(t *testing.T) {
	const messages = 5_000
	a := attributes{"openinference.span.kind": "LLM"}
	for i := range messages { // counting up to each number would make 100 million parts
		at := fmt.Sprintf("llm.input_messages.%d.message.", i)
		a[at+"role"], a[at+"contents.9999.message_content.text"], a[at+"tool_calls.9999.tool_call.function.name"] = "assistant", "A", "look"
	}
	e := entry{attributes: a}
	what, err := e.read(traces)
	require.NoError(t, err)
	require.Len(t, what.call.input, messages)
	require.Equal(t, []string{"A"}, what.call.input[messages-1].texts)
	require.Len(t, what.call.input[messages-1].calls, 1)
}

func TestANumberThatJSONLacksTakesNothingElseWithIt(t *testing.T) {
	m := remembering(t)
	for _, a := range []attributes{
		{"gen_ai.operation.name": "chat", inputMessages: "A", outputMessages: "B", "gen_ai.usage.input_tokens": math.Inf(1), "gen_ai.usage.output_tokens": int64(7)},
		{"gen_ai.operation.name": "chat", inputMessages: "C", outputMessages: "D", "gen_ai.usage.output_tokens": "NaN"},
	} {
		e := entry{attributes: a}
		what, err := e.read(traces)
		require.NoError(t, err)
		m.send("s", *what.call)
	}
	e := entry{name: "claude_code.tool_result", attributes: attributes{"tool_use_id": "t", "tool_name": "look", "duration_ms": "Inf", "tool_output": "seen"}}
	what, err := e.read(logs)
	require.NoError(t, err)
	p := newPlan("default", m.memory)
	p.run(p.change(p.session("s", false)), &e, what.tool)
	require.Len(t, m.kept(p), 2)
	var usages []string
	for _, e := range m.events {
		r, err := events.Record(e)
		require.NoError(t, err)
		if p, ok := r.Payload.(*events.MessageCreated); ok && p.Role == "assistant" {
			usages = append(usages, string(p.Usage))
		}
	}
	require.Equal(t, []string{`{"output_tokens":7}`, ""}, usages)
}
