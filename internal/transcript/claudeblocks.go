package transcript

import (
	"encoding/json"
	"strings"
)

// block is a piece of a message's content, as in Anthropic's Messages API.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"` // for a tool_use
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"` // for a tool_result, as are Content and IsError
	Content   blocks          `json:"content"`
	IsError   text            `json:"is_error"`
}

// blocks is the content of a message. A plain string becomes one text block.
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
	case '{': // an error object: a server-side tool failed
		*bs = blocks{{Type: "text", Text: string(raw)}}
	}
	return nil
}

// text joins the readable blocks, except those of type but, and reports whether there was
// any.
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

// speaks reports whether a block of an agent's message is something other than a call.
func (bs blocks) speaks() bool {
	for i := range bs {
		if bs[i].Type != "tool_use" {
			return true
		}
	}
	return false
}

// shown returns the text that stands for a block: its type in brackets for an image and the like, nothing for encrypted
// reasoning.
func (b *block) shown() (string, bool) {
	switch b.Type {
	case "text":
		return b.Text, true
	case "redacted_thinking", "":
		return "", false
	}
	return "[" + b.Type + "]", true
}
