package transcript

import (
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	aiderFormat = "aider"
	aiderPrefix = "aider:"
	// aiderStart begins the line with which a chat begins.
	aiderStart = "# aider chat started at "
)

// aider turns a chat history into items. It is Markdown that only grows: a line that begins with #### is the user's, one that
// begins with > is what Aider prints, all others are the model's. Inside a block of code these marks are content.
//
// A chat has a time, of a zone that is not written. A message has neither time nor id: its number in the chat is its id.
type aider struct {
	*talk
	folder string
	chats  map[string]int // by their id
	role   string         // of the message that is being read, "" if there is none
	text   []string
	line   int // where it began
	bytes  int
	fenced bool
	count  int // messages of this chat
}

func newAider(name string) converter {
	return &aider{folder: folderOf(name, 1), chats: map[string]int{}}
}

func (a *aider) refuse(out *batch, err error) {
	a.flush(out)
	out.refuse(err)
}

// end emits the last message, which may still grow.
func (a *aider) end(out *batch) {
	first := len(out.items)
	a.flush(out)
	for i := range out.items[first:] {
		out.items[first+i].Open = true
	}
}

func (a *aider) value(out *batch, raw []byte) error {
	line := string(raw)
	if began, ok := strings.CutPrefix(line, aiderStart); ok {
		a.flush(out)
		a.begin(strings.TrimSpace(began))
		return nil
	}
	if a.talk == nil {
		a.begin("")
	}
	said, user := strings.CutPrefix(line, "#### ")
	switch {
	case a.role == "assistant" && strings.HasPrefix(line, "```"):
		a.fenced = !a.fenced
		a.add(out, "assistant", line)
	case a.fenced:
		a.add(out, "assistant", line)
	case user:
		a.add(out, "user", strings.TrimRight(said, " "))
	case line == "####":
		a.add(out, "user", "")
	case strings.HasPrefix(line, ">"):
		a.flush(out)
	case a.role != "assistant" && strings.TrimSpace(line) == "":
	default:
		if strings.HasPrefix(line, "```") {
			a.fenced = true
		}
		a.add(out, "assistant", line)
	}
	return nil
}

// begin begins a chat.
func (a *aider) begin(at string) {
	id := aiderPrefix + strings.Trim(a.folder+":"+at, ":")
	a.chats[id]++
	if n := a.chats[id]; n > 1 {
		id += ":" + strconv.Itoa(n)
	}
	began := strings.Replace(at, " ", "T", 1)
	if _, err := parseTime(began); err != nil {
		began = ""
	}
	a.talk = &talk{id: id, source: "import/aider", began: began, start: events.ConversationStarted{Agent: "Aider"}}
	a.count, a.fenced = 0, false
}

// add adds a line to the message of a role.
func (a *aider) add(out *batch, role, line string) {
	if a.role != role || a.bytes > MaxLineBytes/4 {
		a.flush(out)
		a.role, a.line = role, out.line
	}
	a.text = append(a.text, line)
	a.bytes += len(line) + 1
}

// flush emits the message that is being read.
func (a *aider) flush(out *batch) {
	content := strings.TrimSpace(strings.Join(a.text, "\n"))
	role := a.role
	a.role, a.text, a.bytes, a.fenced = "", nil, 0, false
	if role == "" || content == "" {
		return
	}
	a.count++
	line := out.line
	out.line = a.line
	a.say(out, a.id+":"+strconv.Itoa(a.count), a.began, &events.MessageCreated{Role: role, Content: content})
	out.line = line
}
