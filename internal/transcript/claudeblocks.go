package transcript

import (
	"encoding/json"
	"strings"
)

// block is a piece of a message's content, as in the Messages API of Anthropic.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"` // of a tool_use
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"` // of a tool_result, with Content and IsError
	Content   blocks          `json:"content"`
	IsError   text            `json:"is_error"`
}

// blocks is a content. Where the log has a string it is one block of text.
type blocks []block

func (bs *blocks) UnmarshalJSON(raw []byte) error {
	*bs = nil
	switch raw[0] {
	case '"':
		one := block{Type: "text"}
		if err := json.Unmarshal(raw, &one.Text); err != nil {
			return err
		}
		*bs = blocks{one}
		return nil
	case '[':
		return json.Unmarshal(raw, (*[]block)(bs))
	case '{': // an error object, where a tool of a server failed
		*bs = blocks{{Type: "text", Text: string(raw)}}
	}
	return nil
}

// text joins the blocks that can be read, except those of the type but, and tells
// whether there was any.
func (bs blocks) text(but string) (joined string, any bool) {
	var parts []string
	for i := range bs {
		if bs[i].Type == but {
			continue
		}
		if s, ok := bs[i].shown(); ok {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n"), len(parts) > 0
}

// speaks tells whether a block of an agent's message is more than a call.
func (bs blocks) speaks() bool {
	for i := range bs {
		if bs[i].Type != "tool_use" {
			return true
		}
	}
	return false
}

// shown is what stands for a block in a text: of an image and the like its type
// in brackets, of encrypted reasoning nothing.
func (b *block) shown() (string, bool) {
	switch b.Type {
	case "text":
		return b.Text, true
	case "redacted_thinking", "":
		return "", false
	}
	return "[" + b.Type + "]", true
}
