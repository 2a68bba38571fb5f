package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"mneme.dev/mneme/events"
)

const (
	geminiFormat = "gemini-cli"
	geminiAgent  = "Gemini CLI"
	geminiSource = "import/gemini_cli"
	// geminiPrefix and the id of a session of Gemini CLI make the id of its conversation.
	geminiPrefix = "gemini_cli:"
)

// geminiLine is a line of a session: its head, a message, a $set or a $rewindTo. Up to version 0.39 a file is one head
// that also holds the messages.
type geminiLine struct {
	geminiHead
	geminiMessage
	Set      *geminiHead `json:"$set"`
	RewindTo *text       `json:"$rewindTo"`
}

type geminiHead struct {
	SessionID   text              `json:"sessionId"`
	StartTime   text              `json:"startTime"`
	Summary     text              `json:"summary"`
	Directories texts             `json:"directories"`
	Messages    []json.RawMessage `json:"messages"`
}

type geminiMessage struct {
	ID        text            `json:"id"`
	Type      text            `json:"type"`
	Timestamp text            `json:"timestamp"`
	Content   geminiParts     `json:"content"`
	Model     text            `json:"model"`
	Tokens    json.RawMessage `json:"tokens"`
	Thoughts  []struct {
		Subject     text `json:"subject"`
		Description text `json:"description"`
	} `json:"thoughts"`
	ToolCalls []geminiCall `json:"toolCalls"`

	line    int // line of its first version
	bytes   int
	summary bool // it stands for what a compression has left out
}

type geminiCall struct {
	ID        text            `json:"id"`
	Name      text            `json:"name"`
	Args      json.RawMessage `json:"args"`
	Result    geminiParts     `json:"result"`
	Status    text            `json:"status"`
	Timestamp text            `json:"timestamp"`
}

// final reports whether a call has ended.
func (c *geminiCall) final() bool {
	return c.Status == "success" || c.Status == "error" || c.Status == "cancelled"
}

func (m *geminiMessage) final() bool {
	return !slices.ContainsFunc(m.ToolCalls, func(c geminiCall) bool { return !c.final() })
}

// geminiParts are the texts of the parts of what was said: a text, a part, or a list of both.
type geminiParts struct {
	said     []string
	returned []string // of tools
}

func (g *geminiParts) UnmarshalJSON(raw []byte) error {
	*g = geminiParts{}
	var list []json.RawMessage // decoding into one that holds raw would write over raw
	if raw[0] != '[' {
		list = []json.RawMessage{raw}
	} else if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, raw := range list {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			g.said = append(g.said, s)
			continue
		}
		var part struct {
			Text     *text `json:"text"`
			Thought  bool  `json:"thought"`
			Response *struct {
				Response json.RawMessage `json:"response"`
			} `json:"functionResponse"`
			Inline json.RawMessage `json:"inlineData"`
			File   json.RawMessage `json:"fileData"`
		}
		if err := json.Unmarshal(raw, &part); err != nil {
			return err
		}
		switch {
		case part.Thought:
		case part.Text != nil:
			g.said = append(g.said, string(*part.Text))
		case part.Response != nil:
			g.returned = append(g.returned, geminiOutput(part.Response.Response))
		case given(part.Inline) != nil, given(part.File) != nil:
			g.said = append(g.said, geminiFile)
		}
	}
	return nil
}

// geminiFile stands for a part that is a file.
const geminiFile = "[file]"

// geminiOutput returns the text of a tool's response.
func geminiOutput(raw json.RawMessage) string {
	var known struct {
		Output *string `json:"output"`
		Error  *string `json:"error"`
	}
	if json.Unmarshal(raw, &known) == nil {
		switch {
		case known.Output != nil:
			return *known.Output
		case known.Error != nil:
			return *known.Error
		}
	}
	return string(plain(or(raw, "")))
}

func (g geminiParts) join() string { return strings.Join(g.said, "\n") }

// prompt returns what the user said. What the program has loaded for a subagent stands before its task, in a part of its own.
func (g geminiParts) prompt() string {
	if len(g.said) > 1 && strings.HasPrefix(strings.TrimSpace(g.said[0]), "<loaded_context>") {
		return strings.Join(g.said[1:], "\n")
	}
	return g.join()
}

// result returns the text of a tool's result.
func (g geminiParts) result() string { return strings.Join(append(g.returned, g.said...), "\n") }

// gemini turns a session into items. A message is written again under its id when its calls have ended: the last
// version counts, in the place of the first. So messages are held until another one follows and their calls have ended.
//
// The user can rewind a session. The dropped messages were said nevertheless, so they are imported too. A compression
// writes the whole history again: a summary, and the last messages under new ids, see copied.
type gemini struct {
	talk
	held    []*geminiMessage
	bytes   int                 // size of held
	emitted map[string]bool     // ids of messages, and of their calls and results
	said    map[uint64]struct{} // hashes of what either side said
	title   string
}

// geminiFailed matches the result of a command that failed. To Gemini CLI it is a success, and only its last lines tell:
// those before them are what the command printed.
var geminiFailed = regexp.MustCompile(`(?:^|\n)Exit Code: -?[1-9]\d*(?:\n(?:Signal|Background PIDs|Process Group PGID): [^\n]*)*\s*(?:</untrusted_context>\s*)?$`)

// geminiThanks is what the program lets the model say after a summary.
const geminiThanks = "Got it. Thanks for the additional context!"

// key returns a hash of what a message says.
func (m *geminiMessage) key() uint64 {
	return xxhash.Sum64String(string(m.Type) + "\x00" + m.Content.join())
}

// dropFiles drops the files that came with results: the calls hold them as well.
func (m *geminiMessage) dropFiles() {
	if m.Type == "user" && len(m.Content.returned) > 0 {
		m.Content.said = slices.DeleteFunc(m.Content.said, func(s string) bool { return s == geminiFile })
	}
}

// geminiGrace is what the program tells a subagent that stopped, or reached a limit, without a result.
const geminiGrace = "You have one final chance to complete the task with a short grace period."

// geminiPreamble reports whether a message was inserted by the program before the first prompt.
func geminiPreamble(said string) bool {
	return strings.HasPrefix(said, "<session_context>") || strings.HasPrefix(said, "This is the Gemini CLI.")
}

// geminiFolder matches the first folder that a preamble names.
var geminiFolder = regexp.MustCompile(`(?m)Workspace Directories:\*\*\n\s+- (/[^\n]+)$`)

// idOf returns the id of a message. Ids of preambles are hashes of their text, so they recur in other sessions.
func (g *gemini) idOf(m *geminiMessage) string {
	if isUUID.MatchString(string(m.ID)) {
		return string(m.ID)
	}
	return g.id + ":" + string(m.ID)
}

var isUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// maxHeld is how many messages are held at most while a call of the first one is running.
const maxHeld = 1000

func newGemini(string) converter {
	return &gemini{talk: talk{source: geminiSource, start: events.ConversationStarted{Agent: geminiAgent}}, emitted: map[string]bool{}, said: map[uint64]struct{}{}}
}

func (g *gemini) refuse(out *batch, err error) {
	g.release(out, true)
	out.refuse(err)
}

func (g *gemini) end(out *batch) {
	first, answered := len(out.items), false
	if n := len(g.held); n > 0 {
		last := g.held[n-1]
		answered = last.Type == "gemini" && len(last.ToolCalls) == 0 && last.Content.join() != ""
	}
	g.release(out, true)
	out.open(first, answered)
}

func (g *gemini) value(out *batch, raw []byte) error {
	var l geminiLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	switch {
	case l.RewindTo != nil:
		g.release(out, true)
		return nil
	case l.Set != nil:
		return g.head(out, l.Set)
	case l.SessionID != "":
		return g.head(out, &l.geminiHead)
	case l.ID == "":
		return errors.New("is neither the head of a session nor a message")
	}
	return g.message(out, &l.geminiMessage, len(raw))
}

// head takes what a line says about the session.
func (g *gemini) head(out *batch, h *geminiHead) error {
	if g.id == "" && h.SessionID != "" {
		g.id, g.began = geminiPrefix+string(h.SessionID), string(h.StartTime)
		if len(h.Directories) > 0 {
			g.start.Cwd = string(h.Directories[0])
		}
	}
	again := len(g.said) > 0 // the list replaces a history
	messages := make([]geminiMessage, len(h.Messages))
	for i, raw := range h.Messages {
		m := &messages[i]
		err := json.Unmarshal(raw, m)
		if err == nil && again && g.copied(messages[:i+1], h.Messages[i+1:]) {
			continue
		}
		if err == nil {
			err = g.message(out, m, len(raw))
		}
		if err != nil {
			g.release(out, true)
			refuseAt(out, "messages", i, err)
		}
	}
	if title := string(h.Summary); title != "" && title != g.title && g.id != "" {
		g.title = title
		g.release(out, true)
		g.titled(out, title)
	}
	return nil
}

// copied reports whether the last of the messages that replace a history was said before, under the same or another id,
// or is the model's answer to a summary. It marks a summary: the message that such an answer follows.
func (g *gemini) copied(messages []geminiMessage, rest []json.RawMessage) bool {
	m := &messages[len(messages)-1]
	m.dropFiles() // as from the message that it may be a copy of
	if len(messages) > 1 && messages[len(messages)-2].summary {
		return true
	}
	if _, known := g.said[m.key()]; known || g.emitted[string(m.ID)] {
		return true
	}
	var next geminiMessage
	m.summary = m.Type == "user" && len(rest) > 0 && json.Unmarshal(rest[0], &next) == nil && next.Content.join() == geminiThanks
	return false
}

// geminiIgnored are the types of messages from the program to the user.
var geminiIgnored = map[text]bool{"info": true, "warning": true, "error": true}

func (g *gemini) message(out *batch, m *geminiMessage, size int) error {
	switch {
	case geminiIgnored[m.Type]:
		return nil
	case m.Type != "user" && m.Type != "gemini":
		out.skip(geminiFormat, "", "message of type "+string(m.Type))
		return nil
	case g.id == "":
		return errors.New("there is no line with a sessionId before this message")
	case m.ID == "":
		return errors.New("id: is missing")
	}
	m.dropFiles()
	if m.Type == "user" && len(m.Content.said) == 0 && len(m.Content.returned) > 0 { // the calls hold it as well
		return nil
	}
	if m.Type == "user" && geminiPreamble(m.Content.join()) && g.start.Cwd == "" {
		g.start.Cwd = folderIn(m.Content.join(), geminiFolder)
	}
	if !geminiPreamble(m.Content.join()) {
		g.said[m.key()] = struct{}{}
	}
	m.line, m.bytes = out.line, size
	for i, held := range g.held {
		if held.ID == m.ID {
			m.line = held.line
			g.held[i] = m
			g.bytes += size - held.bytes
			return nil
		}
	}
	if g.emitted[string(m.ID)] { // it changed after others had followed
		g.add(out, m)
		return nil
	}
	g.release(out, m.Type == "user" || g.bytes > MaxLineBytes || len(g.held) > maxHeld)
	g.held = append(g.held, m)
	g.bytes += size
	return nil
}

// release emits the held messages, up to the first one with a call that has not ended, unless all is true.
func (g *gemini) release(out *batch, all bool) {
	line := out.line
	for len(g.held) > 0 && (all || g.held[0].final()) {
		m := g.held[0]
		g.held = g.held[1:]
		g.bytes -= m.bytes
		out.line = m.line
		g.add(out, m)
	}
	out.line = line
}

// add emits the new parts of a message.
func (g *gemini) add(out *batch, m *geminiMessage) {
	fresh := func(id string) bool {
		was := g.emitted[id]
		g.emitted[id] = true
		return !was
	}
	at, message := string(m.Timestamp), g.idOf(m)
	if fresh(string(m.ID)) {
		said := &events.MessageCreated{Role: "user", Content: m.Content.prompt()}
		if m.Type == "gemini" {
			said.Content = m.Content.join()
			said.Role, said.Model, said.Usage = "assistant", string(m.Model), given(m.Tokens)
			var thoughts []string
			for _, t := range m.Thoughts {
				thoughts = append(thoughts, strings.TrimPrefix(fmt.Sprintf("%s: %s", t.Subject, t.Description), ": "))
			}
			said.Reasoning = strings.Join(thoughts, "\n")
		} else if m.summary {
			said.Role, said.Origin = "system", originCompaction
		} else if geminiPreamble(said.Content) || strings.HasPrefix(said.Content, "You have ") && strings.Contains(said.Content, geminiGrace) {
			said.Role, said.Origin = "system", originMeta
		}
		g.say(out, message, at, said)
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		id := cmp.Or(string(c.ID), fmt.Sprintf("%s:c%d", message, i+1))
		when := at
		if c.Timestamp != "" {
			when = string(c.Timestamp)
		}
		if fresh("call " + id) {
			g.call(out, id, when, message, string(c.Name), c.Args)
		}
		if c.final() && fresh("result "+id) {
			result := c.Result.result()
			g.answer(out, id, when, result, new(c.Status == "success" && !(c.Name == "run_shell_command" && geminiFailed.MatchString(result))))
		}
	}
}
