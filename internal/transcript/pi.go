package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
)

const (
	piFormat = "pi"
	// piOwn is the type of the messages with which mneme's extension shows a context.
	piOwn = "mneme"
)

// piNames names the events of an agent whose sessions have pi's lines.
type piNames struct {
	format, agent, source string
	prefix                string // it and the id of a session make the id of its conversation
}

var piItself = piNames{format: piFormat, agent: "pi", source: "import/pi", prefix: "pi:"}

// piLine is a line of a session, as pi (github.com/badlogic/pi-mono) and OpenClaw write it. Each type
// of line uses some of the members.
type piLine struct {
	Type      text `json:"type"`
	ID        text `json:"id"` // the session's in its header; an entry's from version 2 on
	Timestamp text `json:"timestamp"`

	Cwd     text `json:"cwd"` // of the header, as are the next two
	ModelID text `json:"modelId"`
	Version text `json:"version"`

	Message    *piMessage `json:"message"`
	Summary    text       `json:"summary"` // of a compaction or a branch_summary
	Content    piTexts    `json:"content"` // of a custom_message, as is the next one
	CustomType text       `json:"customType"`
	Name       *text      `json:"name"` // of a session_info
}

// piMessage is what a message line holds.
type piMessage struct {
	Role       text            `json:"role"`
	Content    piTexts         `json:"content"`
	Model      text            `json:"model"`
	Usage      json.RawMessage `json:"usage"`
	ToolCallID text            `json:"toolCallId"` // of a toolResult, as are the next three
	ToolName   text            `json:"toolName"`
	IsError    bool            `json:"isError"`
	Details    piDetails       `json:"details"`
	Command    text            `json:"command"` // of a bashExecution, as are the next three
	Output     text            `json:"output"`
	ExitCode   *int            `json:"exitCode"`
	Cancelled  bool            `json:"cancelled"`

	Excluded   bool `json:"excludeFromContext"` // of a custom one: the model does not see it
	Provenance struct {
		Kind text `json:"kind"`
	} `json:"provenance"` // of a user's message in OpenClaw
}

// piDetails is what OpenClaw knows of a command. It does not call one that failed an error.
type piDetails struct {
	exit   exitOf
	status text
}

func (d *piDetails) UnmarshalJSON(raw []byte) error {
	var about struct {
		Status text `json:"status"`
	}
	_ = json.Unmarshal(raw, &about) // it may be no object
	d.status = about.Status
	return d.exit.UnmarshalJSON(raw)
}

// succeeded reports whether a call succeeded, nil if that is not known: a command may go on in the background.
func (m *piMessage) succeeded() *bool {
	if m.ToolName == "exec" && m.Details.status == "running" {
		return nil
	}
	return new(!m.IsError && m.Details.exit == 0)
}

// piUsageOf returns the counts of tokens. It leaves out their cost, which follows from the counts and the day's prices.
func piUsageOf(raw json.RawMessage) json.RawMessage {
	var counts struct {
		Input      int64 `json:"input"`
		Output     int64 `json:"output"`
		CacheRead  int64 `json:"cacheRead"`
		CacheWrite int64 `json:"cacheWrite"`
	}
	if given(raw) == nil || json.Unmarshal(raw, &counts) != nil {
		return nil
	}
	usage, _ := json.Marshal(counts) // numbers alone
	return usage
}

// piTexts is a text or a list of blocks.
type piTexts struct {
	texts, thoughts []string
	calls           []piCall
}

type piCall struct {
	ID        text            `json:"id"`
	Name      text            `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *piTexts) UnmarshalJSON(raw []byte) error {
	*p = piTexts{}
	switch raw[0] {
	case '"':
		p.texts = make([]string, 1)
		return json.Unmarshal(raw, &p.texts[0])
	case '[':
		var blocks []struct {
			piCall
			Type     text `json:"type"`
			Text     text `json:"text"`
			Thinking text `json:"thinking"`
		}
		if err := json.Unmarshal(raw, &blocks); err != nil {
			return err
		}
		for _, b := range blocks {
			switch b.Type {
			case "text":
				p.texts = append(p.texts, string(b.Text))
			case "thinking":
				if b.Thinking != "" { // else it is encrypted
					p.thoughts = append(p.thoughts, string(b.Thinking))
				}
			case "toolCall":
				p.calls = append(p.calls, b.piCall)
			case "":
			default: // an image
				p.texts = append(p.texts, "["+string(b.Type)+"]")
			}
		}
	}
	return nil
}

func (p *piTexts) join() string { return strings.Join(p.texts, "\n") }

// pi turns a session into items. An entry's id, or before version 2 its line number, identifies its place. A session is
// a tree whose branches the user can leave; the items are all entries, in the order in which they were written.
type pi struct {
	talk    // its id is that of the header, else of the file's name
	names   piNames
	version string
	message string               // the id of the last message
	called  map[string]time.Time // when calls without a result were made
	places  places
}

// piName matches the file name of a session and captures its id.
var piName = regexp.MustCompile(`_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl`)

func newPi(name string) converter {
	if m := piName.FindStringSubmatch(path.Base(strings.ReplaceAll(name, `\`, "/"))); m != nil {
		return newPiOf(piItself, m[1])
	}
	return newPiOf(piItself, "")
}

// newPiOf returns the converter of a session, "" if only its header names it.
func newPiOf(names piNames, session string) *pi {
	p := &pi{names: names, called: map[string]time.Time{}, talk: talk{source: names.source, start: events.ConversationStarted{Agent: names.agent}}}
	if session != "" {
		p.id = names.prefix + session
	}
	return p
}

// piIgnored are the known types of lines that are not part of the conversation.
var piIgnored = map[string]bool{
	"model_change": true, "thinking_level_change": true, "label": true,
	"custom":       true, // an extension's own state
	"usage":        true, // of a call of a model that answers no prompt
	"context_edit": true, // the model no longer sees a message
	"reset":        true, // nor does it see what came before
	"leaf":         true, // to which entry the user has gone back
}

func (p *pi) value(out *batch, raw []byte) error {
	var l piLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	if l.Type == "session" {
		return p.header(out, &l)
	}
	if p.id == "" {
		return errors.New("there is no session line before this line, and the file's name has no session id")
	}
	at := p.id + ":" + p.places.at(out.line, string(l.ID))
	switch l.Type {
	case "message":
		if l.Message == nil {
			return errors.New("message: is missing")
		}
		return p.said(out, at, &l)
	case "compaction":
		p.add(out, &l, at+":compaction", &events.MessageCreated{Role: "system", Content: string(l.Summary), Origin: originCompaction})
	case "branch_summary": // of a branch that was left; the model sees it
		p.add(out, &l, at, &events.MessageCreated{Role: "system", Content: string(l.Summary), Origin: originMeta})
	case "custom_message": // an extension's, which the model sees as the user's
		said := &events.MessageCreated{Role: "user", Content: l.Content.join(), Origin: originMeta}
		if l.CustomType == piOwn {
			said.Role = "system" // it begins no turn
		}
		p.add(out, &l, at, said)
	case "session_info":
		if l.Name != nil {
			title := string(*l.Name)
			p.event(out, at+":title", string(l.Timestamp), &events.ConversationUpdated{Title: &title})
		}
	case "":
		return errors.New("type: is missing")
	default:
		if !piIgnored[string(l.Type)] {
			out.skip(p.names.format, p.version, string(l.Type))
		}
	}
	return nil
}

// header takes the first line. A file has one; the entries that a fork copies from another file have none.
func (p *pi) header(out *batch, l *piLine) error {
	if l.ID == "" {
		return errors.New("id: is missing")
	}
	if p.started {
		return nil
	}
	p.id, p.version = p.names.prefix+string(l.ID), cmp.Or(string(l.Version), "1")
	p.start.Cwd, p.start.Model = string(l.Cwd), string(l.ModelID)
	p.open(out, string(l.Timestamp))
	return nil
}

func (p *pi) add(out *batch, l *piLine, id string, m *events.MessageCreated) {
	p.message = id
	p.say(out, id, string(l.Timestamp), m)
}

func (p *pi) said(out *batch, at string, l *piLine) error {
	m := l.Message
	switch m.Role {
	case "user":
		said := &events.MessageCreated{Role: "user", Content: m.Content.join()}
		switch m.Provenance.Kind {
		case "internal_system", "inter_session": // such as the end of a command, or another agent
			said.Origin = originMeta
		}
		if task := openClawTask.FindStringSubmatch(said.Content); task != nil {
			said.Content = task[1]
		}
		p.add(out, l, at, said)
	case "assistant":
		said := &events.MessageCreated{
			Role: "assistant", Content: m.Content.join(), Reasoning: strings.Join(m.Content.thoughts, "\n"), Model: string(m.Model),
			Usage: piUsageOf(m.Usage),
		}
		p.add(out, l, at, said)
		for n, c := range m.Content.calls {
			id := cmp.Or(string(c.ID), at+":c"+strconv.Itoa(n+1))
			p.called[id], _ = parseTime(string(l.Timestamp))
			p.event(out, id, string(l.Timestamp), &events.ToolCalled{ToolCallID: id, MessageID: at, ToolName: string(c.Name), Arguments: plain(or(c.Arguments, "{}"))})
		}
	case "toolResult":
		return p.result(out, l, string(m.ToolCallID), m.Content.join(), m.succeeded())
	case "bashExecution": // the user's own command
		id := at + ":bash"
		p.call(out, id, string(l.Timestamp), p.message, "bash", shellArguments(string(m.Command)))
		return p.result(out, l, id, string(m.Output), new(!m.Cancelled && (m.ExitCode == nil || *m.ExitCode == 0)))
	case "custom": // as a custom_message; or of a call that a tool made, whose result has what matters
		if text := m.Content.join(); !m.Excluded && text != "" {
			p.add(out, l, at, &events.MessageCreated{Role: "user", Content: text, Origin: originMeta})
		}
	case "system": // the prompt of the system, and which tools there are
	case "":
		return errors.New("message.role: is missing")
	default:
		out.skip(p.names.format, p.version, messageOf(string(m.Role)))
	}
	return nil
}

// result adds the result of a call, with the time between the two lines.
func (p *pi) result(out *batch, l *piLine, call, text string, success *bool) error {
	if call == "" {
		return errors.New("message.toolCallId: is missing")
	}
	p.answerAfter(out, call, string(l.Timestamp), text, success, elapsed(p.called[call], string(l.Timestamp)))
	delete(p.called, call)
	return nil
}
