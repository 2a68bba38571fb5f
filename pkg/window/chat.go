package window

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// chat is a context in the form that model APIs take: messages in which user and assistant
// alternate, made from the recent turns (or, with the strategy pruned, from the whole
// conversation). The other sections come first, as Markdown between marks. It is made from Sections
// alone.
//
// It never exceeds the budget. An item takes no more here than in the Markdown plus its marks:
// messages need no labels or tabs, and that saves more than anything added here costs. Texts, tool
// names, arguments as JSON, and results count.
type chat struct {
	system   string // ChatSystem, or empty without messages
	memory   string // unless it is in the messages
	messages []chatMessage
}

// chatMessage is a message of the user or the assistant. The results of its calls follow it before
// anything else, so two assistant messages are adjacent only if the first one has calls.
type chatMessage struct {
	role  string
	texts []string // never blank: APIs refuse blank texts
	calls []chatCall
}

// chatCall is a call with its result.
type chatCall struct {
	id        string
	name      string
	arguments json.RawMessage // an object
	failed    bool
	result    string // never blank; says so if there is none yet
}

// Placeholders for where an API requires a text and nothing was said. None is longer than what the
// Markdown has in its place, a heading or a message's label.
const (
	chatBeginning = "[the beginning]" // the user's, before an assistant message: the first message must be the user's
	chatEnd       = "[no answer yet]" // the user's, after the assistant's last: newer models do not continue their own message
	chatEmpty     = "(empty)"         // a message of the user, or a result
	chatNoResult  = "No result."      // of a call: APIs refuse calls without results
)

// ChatMemory says where the memory goes in messages for models. The memory is every section but the
// recent turns.
type ChatMemory string

// Places of the memory.
const (
	MemoryInline   ChatMemory = "inline"   // the first text of the first message, which is the user's
	MemorySeparate ChatMemory = "separate" // only the member memory; the caller places it
)

// asChat makes messages. What neither the user nor the assistant said becomes Markdown between
// marks in a user message, see marks.go. That includes system messages, because recorded text must
// not reach the system prompt, and results without a call, because APIs refuse them as results.
func (c *Context) asChat(place ChatMemory) chat {
	var out chat
	mark := c.mark
	if mark == "" && len(c.Sections) > 0 {
		mark = c.markOf()
	}
	var memory []Section
	for _, s := range c.Sections {
		if s.Name != SectionTurns && s.Name != SectionPruned {
			memory = append(memory, s)
		}
	}
	if len(memory) > 0 {
		out.memory = marked(mark, markdown("", memory))
		if place != MemorySeparate {
			out.say("user", out.memory)
			out.memory = ""
		}
	}
	ids := callIDs{}
	for _, s := range c.Sections {
		if s.Name != SectionTurns && s.Name != SectionPruned {
			continue
		}
		var records []string // adjacent
		inStep := false      // the previous item is a call of the same step
		for i := range s.Items {
			it := &s.Items[i]
			if it.recorded() || it.Kind == KindSummary {
				if it.Kind != KindMessage || !blank(it.Text) {
					var w strings.Builder
					it.write(&w)
					records = append(records, w.String())
				}
				inStep = false
				continue
			}
			records = out.record(mark, records)
			switch {
			case it.Kind == KindToolCall:
				out.call(it, ids, inStep)
			case it.Role == "assistant":
				if text := it.said(); text != "" {
					out.say("assistant", text)
				}
			default:
				out.say("user", it.said())
			}
			inStep = it.Kind == KindToolCall
		}
		out.record(mark, records)
	}
	if n := len(out.messages); n > 0 {
		if last := &out.messages[n-1]; last.role == "assistant" && len(last.calls) == 0 {
			out.say("user", chatEnd)
		}
		if out.messages[0].role == "assistant" {
			out.messages = slices.Insert(out.messages, 0, chatMessage{role: "user", texts: []string{chatBeginning}})
		}
	}
	if len(out.messages) > 0 || out.memory != "" {
		out.system = ChatSystem
	}
	return out
}

// record adds adjacent texts between marks and empties the list.
func (c *chat) record(mark string, texts []string) []string {
	if len(texts) > 0 {
		c.say("user", marked(mark, strings.Join(texts, "\n\n")))
	}
	return nil
}

// say adds a text to the newest message, or starts a message if that one has another role or has
// calls.
func (c *chat) say(role, text string) {
	n := len(c.messages)
	if n == 0 || c.messages[n-1].role != role || len(c.messages[n-1].calls) > 0 {
		c.messages = append(c.messages, chatMessage{role: role})
		n++
	}
	c.messages[n-1].texts = append(c.messages[n-1].texts, text)
}

// call adds a call to the newest message if that is the assistant's and either the call belongs to
// the same step or the message has no calls.
func (c *chat) call(it *Item, ids callIDs, inStep bool) {
	n := len(c.messages)
	if n == 0 || c.messages[n-1].role != "assistant" || len(c.messages[n-1].calls) > 0 && !inStep {
		c.messages = append(c.messages, chatMessage{role: "assistant"})
		n++
	}
	one := chatCall{id: ids.of(it), name: chatName(it.ToolName), result: chatNoResult}
	if it.Result != nil {
		one.failed = it.Success != nil && !*it.Success
		one.result = it.returned()
	}
	room := it.Chars - length(one.name) - length(one.result)
	if one.failed {
		room -= length(failedMark)
	}
	one.arguments = it.chatArguments(room)
	c.messages[n-1].calls = append(c.messages[n-1].calls, one)
}

// said returns the text of a message, after the names that the Markdown has in brackets. It is
// empty for a blank message that is not the user's.
func (it *Item) said() string {
	text := plain(it.Text)
	if blank(text) {
		if it.Role != "user" {
			return ""
		}
		text = chatEmpty
	}
	var names []string
	if it.Speaker != "" {
		names = append(names, clip(oneLine(it.Speaker), maxSpeakerChars))
	}
	if it.Origin != "" {
		names = append(names, "("+clip(oneLine(it.Origin), maxSpeakerChars)+")")
	}
	if len(names) == 0 {
		return text
	}
	return strings.Join(names, " ") + ": " + text
}

// returned returns the text of a result, with its error.
func (it *Item) returned() string {
	text := plain(*it.Result)
	if blank(text) {
		text = ""
	}
	if it.Error != "" {
		if text != "" {
			text += "\n"
		}
		text += "Error: " + plain(it.Error)
	}
	if text == "" {
		text = chatEmpty
	}
	return text
}

// failedMark precedes the result of a failed call where an API has no field for failure.
const failedMark = "(failed) "

// blank reports whether a text has nothing to read.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// The limits of APIs for call ids and tool names: OpenAI allows 40 and 64 characters, Anthropic the
// same characters and longer names.
var (
	acceptedID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	refusedChars = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

const (
	maxIDChars   = 40
	maxToolChars = 64
)

// callIDs makes the call ids of one answer unique.
type callIDs map[string]bool

// of returns the id of a call in a form that APIs take: its own if valid, else part of it plus part
// of its hash, the same in every answer. If a call of another branch has the same id, the second
// one's sequence is hashed in too.
func (ids callIDs) of(it *Item) string {
	id := it.ToolCallID
	if !acceptedID.MatchString(id) {
		id = shortID(id, id)
	}
	for hashed := it.ToolCallID; ids[id]; id = shortID(it.ToolCallID, hashed) {
		hashed += " " + strconv.FormatUint(it.Seq, 10)
	}
	ids[id] = true
	return id
}

func shortID(id, hashed string) string {
	sum := sha256.Sum256([]byte(hashed))
	const digits = 8
	return prefix(refusedChars.ReplaceAllString(id, "_"), maxIDChars-digits-1) + "-" + hex.EncodeToString(sum[:])[:digits]
}

// chatName returns a tool's name in a form that APIs take.
func chatName(name string) string {
	return prefix(refusedChars.ReplaceAllString(name, "_"), maxToolChars)
}

// chatArguments returns the arguments of a call as an object in at most room characters, because
// Anthropic requires one. Any other value becomes the member "arguments"; arguments that were
// shortened, and so are no longer JSON, become the member "cut".
func (it *Item) chatArguments(room int) json.RawMessage {
	text := plain(it.Arguments)
	if json.Valid([]byte(text)) {
		if strings.HasPrefix(strings.TrimSpace(text), "{") {
			return json.RawMessage(text)
		}
		return json.RawMessage(`{"arguments":` + text + `}`)
	}
	kept, mark := text, ""
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		kept, mark = text[:i], text[i+1:]
	}
	// A quote now takes two characters, so less may fit, and the mark needs a new count.
	for {
		if mark != "" && mark != shortMark {
			mark = longMark(it.WholeChars-length(kept), it.WholeChars, it.Seq)
		}
		out := unescaped(map[string]string{"cut": strings.TrimPrefix(kept+"\n"+mark, "\n")})
		over := length(string(out)) - room
		if over <= 0 || kept == "" {
			return out
		}
		kept = prefix(kept, length(kept)-max(over/6, 1)) // a character takes at most six
	}
}

// unescaped returns a value as JSON on one line, without escaping <, > and &.
func unescaped(v any) []byte {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // only a type without a text form can fail
	return bytes.TrimSuffix(w.Bytes(), []byte("\n"))
}
