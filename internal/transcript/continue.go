package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	continueFormat = "continue"
	continuePrefix = "continue:"
)

// continueSession is a session of Continue, of its extension in an editor or of its CLI.
type continueSession struct {
	SessionID text              `json:"sessionId"`
	Title     text              `json:"title"`
	Folder    text              `json:"workspaceDirectory"` // a path, or a URL of one
	History   []json.RawMessage `json:"history"`
}

// continueUntitled are the titles of sessions without one.
var continueUntitled = map[text]bool{"Untitled Session": true, "New Session": true}

type continueItem struct {
	Message struct {
		Role    text           `json:"role"`
		Content continueBlocks `json:"content"`
		Calls   []toolCall     `json:"toolCalls"`
		CallID  text           `json:"toolCallId"` // of a tool
		Usage   struct {
			Model text `json:"model"`
			continueUsage
		} `json:"usage"`
	} `json:"message"`
	Summary text            `json:"conversationSummary"` // of what precedes, and of the message itself
	States  []continueState `json:"toolCallStates"`
	Thought struct {
		Text text `json:"text"`
	} `json:"reasoning"`
}

// continueState is what became of a call.
type continueState struct {
	ID     text `json:"toolCallId"`
	Status text `json:"status"` // generating, generated, calling, done, errored or canceled
	Output []struct {
		Content text `json:"content"`
	} `json:"output"`
}

// continueUsage are the counts of tokens that a model's server has returned. The extension counts under other names.
type continueUsage struct {
	Prompt     *int64          `json:"prompt_tokens,omitempty"`
	Completion *int64          `json:"completion_tokens,omitempty"`
	Total      *int64          `json:"total_tokens,omitempty"`
	Details    json.RawMessage `json:"prompt_tokens_details,omitempty"`
}

// continueBlocks is a text, or a list of parts.
type continueBlocks struct{ blocks }

func (c *continueBlocks) UnmarshalJSON(raw []byte) error { return c.blocks.UnmarshalJSON(raw) }

// said returns the texts; an image stands as [image].
func (c *continueBlocks) said() string {
	var texts []string
	for i := range c.blocks {
		switch b := &c.blocks[i]; b.Type {
		case "imageUrl":
			texts = append(texts, "[image]")
		default:
			if s, ok := b.shown(); ok {
				texts = append(texts, s)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// continues turns a session into items.
//
// The file is rewritten as a whole. Messages have neither ids nor times, but the history only grows, until a compaction
// replaces it or the user edits an earlier message. So the id of a message is a hash of it and of all that precede it.
type continues struct {
	talk
	chain    [sha256.Size]byte
	thought  string         // of the model, before its message
	answered map[text]bool  // calls that have a result
	canceled []text         // calls that the user canceled, and that have no output
	outcome  map[text]*bool // whether a call succeeded, if its state says so
}

func newContinue(string) converter {
	return &continues{
		talk:     talk{source: "import/continue", scoped: true, start: events.ConversationStarted{Agent: "Continue"}},
		answered: map[text]bool{}, outcome: map[text]*bool{},
	}
}

func (c *continues) value(out *batch, raw []byte) error {
	var s continueSession
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if s.SessionID == "" {
		return errors.New("sessionId: is missing")
	}
	c.id, c.start.Cwd = continuePrefix+string(s.SessionID), continueFolder(string(s.Folder))
	eachPart(out, "history", s.History, func(i int, item *continueItem) error {
		first := len(out.items)
		c.item(out, item)
		if i == len(s.History)-1 {
			out.open(first, false) // it may still be written
		}
		return nil
	})
	if !continueUntitled[s.Title] {
		c.titled(out, string(s.Title))
	}
	return nil
}

// continueFolder returns the path of a folder that may be a URL.
func continueFolder(folder string) string {
	if path, ok := pathIn(folder); ok {
		return path
	}
	return folder
}

// pathIn returns the path in a URL of a file or a folder.
func pathIn(address string) (path string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	if len(u.Path) > 2 && u.Path[2] == ':' { // /c:/shop
		return filepath.ToSlash(u.Path[1:]), true
	}
	return u.Path, true
}

// next returns the id of the next message.
func (c *continues) next(item *continueItem) string {
	m := &item.Message
	sum := sha256.New()
	sum.Write(c.chain[:])
	parts := []string{string(m.Role), m.Content.said(), string(m.CallID)}
	for i := range m.Calls {
		parts = append(parts, string(m.Calls[i].ID))
	}
	for _, part := range parts {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	c.chain = [sha256.Size]byte(sum.Sum(nil))
	return c.id + ":" + hex.EncodeToString(c.chain[:12])
}

func (c *continues) item(out *batch, item *continueItem) {
	m := &item.Message
	id, content := c.next(item), m.Content.said()
	if m.Role == "user" || m.Role == "assistant" {
		c.cancel(out)
	}
	switch m.Role {
	case "user":
		c.say(out, id, "", &events.MessageCreated{Role: "user", Content: content})
	case "thinking":
		c.thought = content
	case "assistant":
		if item.Summary == "" || string(item.Summary) != content {
			c.assistant(out, id, content, item)
		}
	case "tool":
		if call := m.CallID; call != "" && !c.answered[call] {
			c.answered[call] = true
			c.answer(out, string(call), "", content, c.outcome[call])
		}
	case "system":
	default:
		out.skip(continueFormat, "", messageOf(string(m.Role)))
	}
	if item.Summary != "" {
		c.say(out, id+":summary", "", &events.MessageCreated{Role: "system", Content: string(item.Summary), Origin: originCompaction})
	}
}

func (c *continues) assistant(out *batch, id, content string, item *continueItem) {
	m := &item.Message
	said := &events.MessageCreated{Role: "assistant", Content: content, Reasoning: cmp.Or(string(item.Thought.Text), c.thought), Model: string(m.Usage.Model)}
	if m.Usage.Prompt != nil {
		said.Usage, _ = json.Marshal(m.Usage.continueUsage) // numbers, and what was JSON
	}
	c.thought = ""
	c.say(out, id, "", said)
	for i := range m.Calls {
		call := &m.Calls[i]
		if call.ID != "" {
			c.call(out, string(call.ID), "", id, cmp.Or(string(call.Function.Name), "unknown"), call.Function.Arguments)
		}
	}
	for i := range item.States {
		c.ended(out, &item.States[i])
	}
}

// ended adds the result of a call that has ended. Without an output it may follow as a message of the tool.
func (c *continues) ended(out *batch, s *continueState) {
	success := s.Status == "done"
	if s.ID == "" || !success && s.Status != "errored" && s.Status != "canceled" {
		return
	}
	c.outcome[s.ID] = &success
	if s.Status == "canceled" && len(s.Output) == 0 {
		c.canceled = append(c.canceled, s.ID)
	}
	if len(s.Output) == 0 || c.answered[s.ID] {
		return
	}
	texts := make([]string, len(s.Output))
	for i := range s.Output {
		texts[i] = string(s.Output[i].Content)
	}
	c.answered[s.ID] = true
	c.answer(out, string(s.ID), "", strings.Join(texts, "\n"), &success)
}

// cancel adds the results of canceled calls, before what comes after them. No message of the tool has followed.
func (c *continues) cancel(out *batch) {
	for _, call := range c.canceled {
		if !c.answered[call] {
			c.answered[call] = true
			c.answer(out, string(call), "", "canceled", c.outcome[call])
		}
	}
	c.canceled = nil
}
