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

// chat is a context as model APIs take it: the recent turns, or the conversation of the
// strategy pruned, as messages in which user and assistant take turns, and the Markdown of
// the other sections, between marks, before them. It is made from Sections alone.
//
// It is never over the budget. Each item takes at most what it takes in the Markdown, and
// the marks that are counted with it: the labels and tabs that messages have no need of are
// more than what else is added here. What is counted are the texts, the names of tools,
// their arguments as JSON, and results.
type chat struct {
	system   string // ChatSystem, or nothing if there is nothing
	memory   string // unless it stands in the messages
	messages []chatMessage
}

// chatMessage is a message of the user or the assistant. Behind one with calls comes what
// they gave, before anything else: so two messages of the assistant follow each other only
// if the first one has calls.
type chatMessage struct {
	role  string
	texts []string // never blank: APIs refuse that
	calls []chatCall
}

// chatCall is a call with its result.
type chatCall struct {
	id        string
	name      string
	arguments json.RawMessage // an object
	failed    bool
	result    string // never blank; it says so if there is none yet
}

// What stands where an API wants something and nothing was said. None is longer than what
// the Markdown has in that place: a heading, or the label of a message.
const (
	chatBeginning = "[the beginning]" // the user's, before a message of the assistant: the first one must be the user's
	chatEnd       = "[no answer yet]" // the user's, after the assistant's last: newer models continue no message of theirs
	chatEmpty     = "(empty)"         // a message of the user, or a result
	chatNoResult  = "No result."      // of a call: APIs refuse calls without results
)

// ChatMemory says where messages for models have the memory: every section but the
// recent turns.
type ChatMemory string

// Places of the memory.
const (
	MemoryInline   ChatMemory = "inline"   // the first text of the first message, which is the user's
	MemorySeparate ChatMemory = "separate" // the member memory alone, for callers who place it
)

// asChat makes messages. What is neither the user's nor the assistant's is text between
// marks in a message of the user, written as in the Markdown: see marks.go. Messages of the
// system are among it, since they are recorded and so must not stand in the system prompt,
// and results that never had a call, which APIs refuse as results.
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
		var records []string // that follow each other
		inStep := false      // the item before is a call of the same step
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

// record adds texts that follow each other between marks. None are left then.
func (c *chat) record(mark string, texts []string) []string {
	if len(texts) > 0 {
		c.say("user", marked(mark, strings.Join(texts, "\n\n")))
	}
	return nil
}

// say adds a text to the newest message, or in a new one if that is another's or has calls.
func (c *chat) say(role, text string) {
	n := len(c.messages)
	if n == 0 || c.messages[n-1].role != role || len(c.messages[n-1].calls) > 0 {
		c.messages = append(c.messages, chatMessage{role: role})
		n++
	}
	c.messages[n-1].texts = append(c.messages[n-1].texts, text)
}

// call adds a call to the newest message if it can: if that is the assistant's and the call
// is of the same step, or the message has none.
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

// said is the text of a message after the names that the Markdown has in brackets. It is
// empty for a blank one that is not the user's.
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

// returned is the text of a result, with its error.
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

// failedMark stands before the result of a call that failed where an API has no field
// for that.
const failedMark = "(failed) "

// blank tells whether a text has nothing that can be read.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// What APIs take as the id of a call and as the name of a tool: OpenAI 40 and 64
// characters, Anthropic the same characters and more of them.
var (
	acceptedID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	refusedChars = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

const (
	maxIDChars   = 40
	maxToolChars = 64
)

// callIDs are the ids of the calls of one answer, which must not be the same.
type callIDs map[string]bool

// of is the id of a call as APIs take it: its own if they do, else a part of it and of its
// hash, the same in every answer. A second call of the same id, of another branch of the
// conversation, has its sequence hashed in.
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

// chatName is the name of a tool as APIs take it.
func chatName(name string) string {
	return prefix(refusedChars.ReplaceAllString(name, "_"), maxToolChars)
}

// chatArguments are the arguments of a call as an object, as Anthropic wants them, in at
// most room characters: what is another value is the member "arguments" of one; what was
// shortened, and so is no JSON any more, the member "cut".
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
	// A quote takes two characters now, so less may fit, and the mark counts anew.
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

// unescaped is a value as JSON on one line, in which <, > and & stand for themselves.
func unescaped(v any) []byte {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // only what has no text for itself can fail
	return bytes.TrimSuffix(w.Bytes(), []byte("\n"))
}
