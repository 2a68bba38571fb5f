package chat

import (
	"encoding/json"

	"mneme.dev/mneme/pkg/window"
)

// AnthropicChat is a context for Anthropic's Messages API. System is [marks.Notice], or empty if
// there are no messages.
type AnthropicChat struct {
	System   string             `json:"system,omitempty"`
	Messages []AnthropicMessage `json:"messages"`
	Memory   string             `json:"memory,omitempty"` // with memory=separate, for the caller to place; between its marks
	Manifest *window.Manifest   `json:"manifest,omitempty"`
}

// AnthropicMessage is one message. Tool results come first in the user's message that follows the
// calls.
type AnthropicMessage struct {
	Role    string           `json:"role" enum:"user,assistant"`
	Content []AnthropicBlock `json:"content"`
}

// AnthropicBlock is a text, a tool call, or a tool result (which has one text block).
type AnthropicBlock struct {
	Type      string           `json:"type" enum:"text,tool_use,tool_result"`
	Text      string           `json:"text,omitempty"`
	ID        string           `json:"id,omitempty"` // of a call
	Name      string           `json:"name,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	ToolUseID string           `json:"tool_use_id,omitempty"` // of a result
	Content   []AnthropicBlock `json:"content,omitempty"`
	IsError   bool             `json:"is_error,omitempty"`
}

// Anthropic returns a context for Anthropic's API, made and counted like [OpenAI]: user
// and assistant alternate, and the user begins and ends. Each text between marks is a block of its
// own.
func Anthropic(c *window.Context, memory Memory) AnthropicChat {
	made := of(c, memory)
	out := AnthropicChat{System: made.system, Memory: made.memory, Messages: []AnthropicMessage{}, Manifest: c.Manifest}
	add := func(role string, content []AnthropicBlock) {
		out.Messages = append(out.Messages, AnthropicMessage{Role: role, Content: content})
	}
	var results []AnthropicBlock // of the calls in the previous message
	for _, m := range made.messages {
		var content []AnthropicBlock
		if m.role == "user" {
			content, results = results, nil
		} else if len(results) > 0 {
			add("user", results)
			results = nil
		}
		for _, text := range m.texts {
			content = append(content, textBlock(text))
		}
		for _, c := range m.calls {
			content = append(content, AnthropicBlock{Type: "tool_use", ID: c.id, Name: c.name, Input: c.arguments})
			results = append(results, AnthropicBlock{Type: "tool_result", ToolUseID: c.id, Content: []AnthropicBlock{textBlock(c.result)}, IsError: c.failed})
		}
		add(m.role, content)
	}
	if len(results) > 0 {
		add("user", results)
	}
	return out
}

func textBlock(text string) AnthropicBlock { return AnthropicBlock{Type: "text", Text: text} }
