// Package chat gives a finished context as the messages that model APIs take: [OpenAI] and
// [Anthropic]. Both show the same as the Markdown and never exceed the context's budget; ids and the
// names of roles and members do not count.
package chat

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/marks"
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
	system   string // marks.Notice, or empty without messages
	memory   string // unless it is in the messages
	messages []message
}

// message is a message of the user or the assistant. The results of its calls follow it before
// anything else, so two assistant messages are adjacent only if the first one has calls.
type message struct {
	role  string
	texts []string // never blank: APIs refuse blank texts
	calls []call
}

// call is a call with its result.
type call struct {
	id        string
	name      string
	arguments json.RawMessage // an object
	failed    bool
	result    string // never blank; says so if there is none yet
}

// Placeholders for where an API requires a text and nothing was said. None is longer than what the
// Markdown has in its place, a heading or a message's label.
const (
	beginning = "[the beginning]" // the user's, before an assistant message: the first message must be the user's
	noAnswer  = "[no answer yet]" // the user's, after the assistant's last: newer models do not continue their own message
	empty     = "(empty)"         // a message of the user, or a result
	noResult  = "No result."      // for a call, because APIs refuse calls without results
)

// Memory says where the memory goes in messages for models. The memory is every section but the
// recent turns.
type Memory string

// Places of the memory.
const (
	Inline   Memory = "inline"   // the first text of the first message, which is the user's
	Separate Memory = "separate" // only the member memory; the caller places it
)

// of makes messages of a context. What neither the user nor the assistant said becomes Markdown
// between marks in a user message, see package marks. That includes system messages, because recorded
// text must not reach the system prompt, and results without a call, because APIs refuse them as
// results.
func of(c *window.Context, place Memory) chat {
	var out chat
	mark := c.Mark()
	var memory []window.Section
	for _, s := range c.Sections {
		if s.Name != window.SectionTurns && s.Name != window.SectionPruned {
			memory = append(memory, s)
		}
	}
	if len(memory) > 0 {
		out.memory = marks.Around(mark, window.SectionsMarkdown(memory))
		if place != Separate {
			out.say("user", out.memory)
			out.memory = ""
		}
	}
	ids := callIDs{}
	for _, s := range c.Sections {
		if s.Name != window.SectionTurns && s.Name != window.SectionPruned {
			continue
		}
		var records []string // adjacent
		inStep := false      // the previous item is a call of the same step
		for i := range s.Items {
			it := &s.Items[i]
			if it.Recorded() || it.Kind == window.KindSummary {
				if it.Kind != window.KindMessage || !blank(it.Text) {
					records = append(records, it.Markdown())
				}
				inStep = false
				continue
			}
			records = out.record(mark, records)
			switch {
			case it.Kind == window.KindToolCall:
				out.call(it, ids, inStep)
			case it.Role == "assistant":
				if text := said(it); text != "" {
					out.say("assistant", text)
				}
			default:
				out.say("user", said(it))
			}
			inStep = it.Kind == window.KindToolCall
		}
		out.record(mark, records)
	}
	if n := len(out.messages); n > 0 {
		if last := &out.messages[n-1]; last.role == "assistant" && len(last.calls) == 0 {
			out.say("user", noAnswer)
		}
		if out.messages[0].role == "assistant" {
			out.messages = slices.Insert(out.messages, 0, message{role: "user", texts: []string{beginning}})
		}
	}
	if len(out.messages) > 0 || out.memory != "" {
		out.system = marks.Notice
	}
	return out
}

// record adds adjacent texts between marks and empties the list.
func (c *chat) record(mark string, texts []string) []string {
	if len(texts) > 0 {
		c.say("user", marks.Around(mark, strings.Join(texts, "\n\n")))
	}
	return nil
}

// say adds a text to the newest message, or starts a message if that one has another role or has
// calls.
func (c *chat) say(role, text string) {
	n := len(c.messages)
	if n == 0 || c.messages[n-1].role != role || len(c.messages[n-1].calls) > 0 {
		c.messages = append(c.messages, message{role: role})
		n++
	}
	c.messages[n-1].texts = append(c.messages[n-1].texts, text)
}

// call adds a call to the newest message if that is the assistant's and either the call belongs to
// the same step or the message has no calls.
func (c *chat) call(it *window.Item, ids callIDs, inStep bool) {
	n := len(c.messages)
	if n == 0 || c.messages[n-1].role != "assistant" || len(c.messages[n-1].calls) > 0 && !inStep {
		c.messages = append(c.messages, message{role: "assistant"})
		n++
	}
	one := call{id: ids.of(it), name: toolName(it.ToolName), result: noResult}
	if it.Result != nil {
		one.failed = it.Success != nil && !*it.Success
		one.result = returned(it)
	}
	room := it.Chars - plain.Length(one.name) - plain.Length(one.result)
	if one.failed {
		room -= plain.Length(failedMark)
	}
	one.arguments = arguments(it, room)
	c.messages[n-1].calls = append(c.messages[n-1].calls, one)
}

// said returns the text of a message, after the names that the Markdown has in brackets. It is
// empty for a blank message that is not the user's.
func said(it *window.Item) string {
	text := plain.Text(it.Text)
	if blank(text) {
		if it.Role != "user" {
			return ""
		}
		text = empty
	}
	var names []string
	if it.Speaker != "" {
		names = append(names, plain.Speaker(it.Speaker))
	}
	if it.Origin != "" {
		names = append(names, "("+plain.Speaker(it.Origin)+")")
	}
	if len(names) == 0 {
		return text
	}
	return strings.Join(names, " ") + ": " + text
}

// returned returns the text of a result, with its error.
func returned(it *window.Item) string {
	text := plain.Text(*it.Result)
	if blank(text) {
		text = ""
	}
	if it.Error != "" {
		if text != "" {
			text += "\n"
		}
		text += "Error: " + plain.Text(it.Error)
	}
	text = cmp.Or(text, empty)
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
func (ids callIDs) of(it *window.Item) string {
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
	return plain.Prefix(refusedChars.ReplaceAllString(id, "_"), maxIDChars-digits-1) + "-" + hex.EncodeToString(sum[:])[:digits]
}

// toolName returns a tool's name in a form that APIs take.
func toolName(name string) string {
	return plain.Prefix(refusedChars.ReplaceAllString(name, "_"), maxToolChars)
}

// arguments returns the arguments of a call as an object in at most room characters, because
// Anthropic requires one. A text that holds an object is this object: OpenAI's API passes
// arguments so, and a model must find its own calls as it made them. Any other value becomes the
// member "arguments"; arguments that were shortened, and so are no longer JSON, become the member
// "cut".
func arguments(it *window.Item, room int) json.RawMessage {
	text := plain.Text(it.Arguments)
	if json.Valid([]byte(text)) {
		if strings.HasPrefix(strings.TrimSpace(text), "{") {
			return json.RawMessage(text)
		}
		if object, ok := objectIn(text); ok {
			return object
		}
		return json.RawMessage(`{"arguments":` + text + `}`)
	}
	kept, mark := text, ""
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		kept, mark = text[:i], text[i+1:]
	}
	// A quote now takes two characters, so less may fit, and the mark needs a new count.
	for {
		if mark != "" && mark != plain.ShortCutMark {
			mark = plain.CutMark(it.WholeChars-plain.Length(kept), it.WholeChars, it.Seq)
		}
		out := unescaped(map[string]string{"cut": strings.TrimPrefix(kept+"\n"+mark, "\n")})
		over := plain.Length(string(out)) - room
		if over <= 0 || kept == "" {
			return out
		}
		kept = plain.Prefix(kept, plain.Length(kept)-max(over/6, 1)) // a character takes at most six
	}
}

// objectIn returns the object that a JSON string holds, on one line. A blank text is an object
// without members: that is how some models call a tool without parameters.
func objectIn(text string) (json.RawMessage, bool) {
	var held string
	if json.Unmarshal([]byte(text), &held) != nil {
		return nil, false
	}
	if held = strings.TrimSpace(held); held == "" && text != "null" {
		return json.RawMessage("{}"), true
	}
	var w bytes.Buffer
	if !strings.HasPrefix(held, "{") || json.Compact(&w, []byte(held)) != nil {
		return nil, false
	}
	return w.Bytes(), true
}

// unescaped returns a value as JSON on one line, without escaping <, > and &.
func unescaped(v any) []byte {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // only a type without a text form can fail
	return bytes.TrimSuffix(w.Bytes(), []byte("\n"))
}
