package chat

import (
	"strings"

	"mneme.dev/mneme/pkg/window"
)

// OpenAIChat is a context for the Chat Completions API of OpenAI and of the many compatible
// servers: [marks.Notice] as the system message, a user message with the memory between marks, then
// what was said and done last.
type OpenAIChat struct {
	Messages []OpenAIMessage  `json:"messages"`
	Memory   string           `json:"memory,omitempty"` // with memory=separate, for the caller to place; between its marks
	Manifest *window.Manifest `json:"manifest,omitempty"`
}

// OpenAIMessage is one message. Every tool result is a message.
type OpenAIMessage struct {
	Role       string           `json:"role" enum:"system,user,assistant,tool"`
	Content    string           `json:"content,omitempty"` // absent in a message that only has calls
	ToolCalls  []OpenAIToolCall `json:"tool_calls,omitempty"`
	ToolCallID string           `json:"tool_call_id,omitempty"` // of a tool result
}

// OpenAIToolCall is a tool call.
type OpenAIToolCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type" enum:"function"`
	Function OpenAIFunction `json:"function"`
}

// OpenAIFunction says what was called.
type OpenAIFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, an object
}

// OpenAI returns a context for OpenAI's API. It is made from the context's Sections and Manifest
// alone, so a context read from JSON gives the same messages.
//
// After the system message user and assistant alternate. The results of all calls follow the
// message that has the calls, as templates of open models require too. A context without messages
// is empty.
func OpenAI(c *window.Context, memory Memory) OpenAIChat {
	made := of(c, memory)
	out := OpenAIChat{Messages: []OpenAIMessage{}, Memory: made.memory, Manifest: c.Manifest}
	if made.system != "" {
		out.Messages = append(out.Messages, OpenAIMessage{Role: "system", Content: made.system})
	}
	for _, m := range made.messages {
		one := OpenAIMessage{Role: m.role, Content: strings.Join(m.texts, "\n\n")}
		for _, c := range m.calls {
			one.ToolCalls = append(one.ToolCalls, OpenAIToolCall{ID: c.id, Type: "function", Function: OpenAIFunction{c.name, string(c.arguments)}})
		}
		out.Messages = append(out.Messages, one)
		for _, c := range m.calls {
			result := OpenAIMessage{Role: "tool", ToolCallID: c.id, Content: c.result}
			if c.failed {
				result.Content = failedMark + c.result
			}
			out.Messages = append(out.Messages, result)
		}
	}
	return out
}
