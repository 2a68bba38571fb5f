package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
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
	Title     text          `json:"title"` // of a session_start, as are the next two
	Version   text          `json:"version"`
	Cwd       text          `json:"cwd"`
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

// droid turns a session into items. Every message has an id, but a session that branches off has those of its parent, so the
// ids of events begin with the id of the conversation. A subagent is a session of its own.
type droid struct {
	talk
	version string
	title   string
	message string               // the id of the last message
	called  map[string]time.Time // when calls without a result were made
}

// newDroid takes the name of the session from the first line, or else from the file's name.
func newDroid(name string) converter {
	d := &droid{called: map[string]time.Time{}, talk: talk{source: "import/droid", scoped: true, start: events.ConversationStarted{Agent: "Factory Droid"}}}
	if stem := stemOfDocument(name); sessionName.MatchString(stem) {
		d.id = droidPrefix + stem
	}
	return d
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
		}
		return nil
	case l.Type == "":
		return errors.New("type: is missing")
	case d.id == "":
		return errors.New("there is no session_start line before this line, and the file's name is not a session's id")
	}
	switch l.Type {
	case "message":
		switch {
		case l.Message == nil:
			return errors.New("message: is missing")
		case l.ID == "":
			return errors.New("id: is missing")
		}
		d.said(out, &l)
	case "compaction_state":
		if l.ID != "" && l.Summary != "" {
			d.add(out, &l, &events.MessageCreated{Role: "system", Content: string(l.Summary), Origin: originCompaction})
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
