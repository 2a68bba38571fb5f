package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"mneme.dev/mneme/events"
)

const (
	droidFormat = "droid"
	droidPrefix = "droid:"
	// droidUntitled is the title of a session until the program finds one.
	droidUntitled = "New Session"
)

// droidLine is a line of a session of Factory Droid. Each type of line uses some of the members.
type droidLine struct {
	Type      text          `json:"type"`
	ID        text          `json:"id"` // in a session_start the session's
	Timestamp text          `json:"timestamp"`
	Title     text          `json:"title"` // of a session_start, as are the next four
	Version   text          `json:"version"`
	Cwd       text          `json:"cwd"`
	Parent    text          `json:"parent"`            // the session from which this one was made, as a subagent or a fork
	ForkedAt  text          `json:"forkedAtMessageId"` // the last message that a fork repeats
	Message   *droidMessage `json:"message"`
	Summary   text          `json:"summaryText"` // of a compaction_state
}

type droidMessage struct {
	Role       text   `json:"role"`
	Content    blocks `json:"content"`
	Model      text   `json:"modelId"`
	Visibility text   `json:"visibility"`    // both if it is missing
	Hook       text   `json:"hookEventName"` // the message says what a hook printed, and has no content
}

// droidReminder begins and ends what the program tells the model in the user's name: about the tools, the machine and the
// project.
const (
	droidReminder    = "<system-reminder>"
	droidReminderEnd = "</system-reminder>"
)

// said returns the texts of a message without the program's reminders, and those that the model thought.
func (m *droidMessage) said() (said, thought string) {
	var texts, thoughts []string
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case "tool_use", "tool_result":
		case "thinking":
			if b.Thinking != "" {
				thoughts = append(thoughts, b.Thinking)
			}
		default:
			if s, ok := b.shown(); ok && !onlyReminds(s) {
				texts = append(texts, s)
			}
		}
	}
	return strings.Join(texts, "\n"), strings.Join(thoughts, "\n")
}

// onlyReminds reports whether a text has nothing but reminders.
func onlyReminds(s string) bool {
	s = strings.TrimSpace(s)
	found := false
	for strings.HasPrefix(s, droidReminder) {
		_, after, ok := strings.Cut(s, droidReminderEnd)
		if !ok {
			return false
		}
		s, found = strings.TrimSpace(after), true
	}
	return found && s == ""
}

// droidTask matches the prompt of a subagent, and captures the task in it.
var droidTask = regexp.MustCompile(`(?s)^# Task Tool Invocation\n.*?\n---BEGIN TASK FROM PARENT AGENT---\n(.*)\n---END TASK FROM PARENT AGENT---\s*$`)

// droid turns a session into items. Every message has an id, but the copies in a fork have those of the session from which it
// was made, so the ids of events begin with the id of the conversation. A subagent is a session of its own.
type droid struct {
	talk
	folder  string      // of the recording, "" if it is not known
	copies  []droidCopy // what the session begins with
	before  *droid      // the session whose messages are repeated now
	version string
	title   string
	message string               // the id of the last message
	called  map[string]time.Time // when calls without a result were made
}

// droidCopy is what a fork repeats: the messages of a session up to one.
type droidCopy struct{ session, last string }

// newDroid takes the name of the session from the first line, or else from the file's name.
func newDroid(name string) converter {
	d := newDroidSession("")
	if stem := stemOfDocument(name); sessionName.MatchString(stem) {
		d.id, d.folder = droidPrefix+stem, filepath.Dir(name)
	}
	return d
}

func newDroidSession(id string) *droid {
	return &droid{called: map[string]time.Time{}, talk: talk{id: id, source: "import/droid", scoped: true, start: events.ConversationStarted{Agent: "Factory Droid"}}}
}

func (d *droid) value(out *batch, raw []byte) error {
	var l droidLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	switch {
	case l.Type == "session_start" && l.ID == "":
		return errors.New("id: is missing")
	case l.Type == "session_start":
		if !d.started {
			d.id, d.version, d.title, d.start.Cwd = droidPrefix+string(l.ID), string(l.Version), string(l.Title), string(l.Cwd)
			d.copies = d.copiesOf(&l)
		}
		return nil
	case l.Type == "":
		return errors.New("type: is missing")
	case d.id == "":
		return errors.New("there is no session_start line before this line, and the file's name is not a session's id")
	}
	if len(d.copies) > 0 {
		return d.repeat(out, &l)
	}
	return d.line(out, &l)
}

// copiesOf returns what a session repeats, by its first line. A fork of a fork names only that one, whose own recording says
// where its beginning came from. What is its own is no copy, and neither is anything in a recording that lacks the message
// at which it was forked: nothing would say where its own begins.
func (d *droid) copiesOf(first *droidLine) (list []droidCopy) {
	for first != nil && len(list) < maxForks && first.ForkedAt != "" && sessionName.MatchString(string(first.Parent)) {
		if droidPrefix+string(first.Parent) == d.id {
			return nil
		}
		list = append([]droidCopy{{string(first.Parent), string(first.ForkedAt)}}, list...)
		first = firstOfDroid(d.folder, string(first.Parent))
	}
	if len(list) > 0 && !droidHas(d.folder, strings.TrimPrefix(d.id, droidPrefix), list[len(list)-1].last) {
		return nil
	}
	return list
}

// droidHas reports whether the recording of a session has a message, or cannot be looked into.
func droidHas(folder, session, message string) (has bool) {
	there := readSession(folder, session, func(raw []byte) bool {
		var l droidLine
		has = json.Unmarshal(raw, &l) == nil && l.Type == "message" && string(l.ID) == message
		return has
	})
	return has || !there
}

// firstOfDroid returns the first line of the recording of a session, nil if it is not there.
func firstOfDroid(folder, session string) (first *droidLine) {
	readSession(folder, session, func(raw []byte) bool {
		var l droidLine
		if json.Unmarshal(raw, &l) == nil && l.Type == "session_start" {
			first = &l
		}
		return true
	})
	return first
}

// repeat takes a copy of another session's line. What follows branches off there.
func (d *droid) repeat(out *batch, l *droidLine) error {
	at := d.copies[0]
	if id := droidPrefix + at.session; d.before == nil || d.before.id != id {
		d.before = newDroidSession(id)
		d.before.version, d.before.start.Cwd, d.before.start.BranchedFrom = d.version, d.start.Cwd, d.start.BranchedFrom
	}
	err := out.repeat(func() error { return d.before.line(out, l) })
	if d.before.last != "" {
		d.start.BranchedFrom = &events.BranchedAt{ConversationID: d.before.id, MessageID: d.before.last}
	}
	switch string(l.ID) {
	case d.copies[len(d.copies)-1].last: // it may be before the end of what an earlier fork repeats
		d.copies = nil
	case at.last:
		d.copies = d.copies[1:]
	}
	return err
}

// line takes a line of the session's own.
func (d *droid) line(out *batch, l *droidLine) error {
	switch l.Type {
	case "message":
		switch {
		case l.Message == nil:
			return errors.New("message: is missing")
		case l.ID == "":
			return errors.New("id: is missing")
		}
		d.said(out, l)
	case "compaction_state":
		if l.ID != "" && l.Summary != "" {
			d.add(out, l, &events.MessageCreated{Role: "system", Content: string(l.Summary), Origin: originCompaction})
		}
	case "todo_state", "agent_turn_outcome": // the list is also the argument of a call
	default:
		out.skip(droidFormat, d.version, string(l.Type))
	}
	return nil
}

// add adds a message. The title comes right after the start: the program writes it into the first line, again whenever it
// changes.
func (d *droid) add(out *batch, l *droidLine, m *events.MessageCreated) {
	d.begin(out, l)
	d.message = d.id + ":" + string(l.ID)
	d.say(out, d.message, string(l.Timestamp), m)
}

func (d *droid) begin(out *batch, l *droidLine) {
	if d.started {
		return
	}
	d.open(out, string(l.Timestamp))
	if d.title != droidUntitled {
		d.titled(out, d.title)
	}
}

func (d *droid) said(out *batch, l *droidLine) {
	m := l.Message
	if m.Hook != "" {
		return
	}
	content, thought := m.said()
	switch m.Role {
	case "assistant":
		d.add(out, l, &events.MessageCreated{Role: "assistant", Content: content, Reasoning: thought, Model: string(m.Model)})
		for i := range m.Content {
			if b := &m.Content[i]; b.Type == "tool_use" && b.ID != "" {
				d.called[b.ID], _ = parseTime(string(l.Timestamp))
				d.call(out, b.ID, string(l.Timestamp), d.message, cmp.Or(b.Name, "unknown"), b.Input)
			}
		}
	case "user", "tool", "system":
		for i := range m.Content {
			if b := &m.Content[i]; b.Type == "tool_result" && b.ToolUseID != "" {
				result, _ := b.Content.text("")
				d.returned(out, l, b.ToolUseID, result, b.IsError != "true")
			}
		}
		if content != "" {
			d.asked(out, l, content)
		}
	default:
		out.skip(droidFormat, d.version, messageOf(string(m.Role)))
	}
}

// asked adds what the user said. What only the model sees, such as the news that a subagent is done, is not the user's word,
// and neither is what the program tells the user alone.
func (d *droid) asked(out *batch, l *droidLine, content string) {
	said := &events.MessageCreated{Role: "user", Content: content}
	switch {
	case l.Message.Visibility == "user_only", l.Message.Role == "system":
		said.Role, said.Origin = "system", originMeta
	case l.Message.Visibility == "llm_only":
		said.Origin = originMeta
	case d.ran(out, l, content):
		return
	default:
		if m := droidTask.FindStringSubmatch(content); m != nil {
			said.Content = m[1]
		}
	}
	d.add(out, l, said)
}

// ran takes a command that the user ran with !, which the model sees with its output. It reports false for any other message.
func (d *droid) ran(out *batch, l *droidLine, content string) bool {
	if !strings.HasPrefix(content, `{"type":"bash_result"`) {
		return false
	}
	var run struct {
		Command text `json:"command"`
		Stdout  text `json:"stdout"`
		Stderr  text `json:"stderr"`
		Exit    exit `json:"exitCode"`
	}
	if json.Unmarshal([]byte(content), &run) != nil || run.Command == "" {
		return false
	}
	d.begin(out, l)
	id := d.id + ":" + string(l.ID) + ":bash"
	d.call(out, id, string(l.Timestamp), d.message, "bash", shellArguments(string(run.Command)))
	d.returned(out, l, id, strings.TrimSpace(string(run.Stdout)+"\n"+string(run.Stderr)), run.Exit == 0)
	return true
}

// returned adds the result of a call, with the time between the two lines.
func (d *droid) returned(out *batch, l *droidLine, call, result string, success bool) {
	d.begin(out, l)
	d.answerAfter(out, call, string(l.Timestamp), result, &success, elapsed(d.called[call], string(l.Timestamp)))
	delete(d.called, call)
}
