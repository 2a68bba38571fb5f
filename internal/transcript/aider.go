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
	fence  int // of the block of code that is open: its number of backticks, 0 if there is none
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
	out.open(first, false)
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
	fence := fenceOf(line)
	switch {
	case endsAnswer(line): // also in a block of code that was interrupted
		a.flush(out)
	case a.fence > 0 && fence >= a.fence && strings.TrimSpace(line) == line[:fence]:
		a.fence = 0
		a.add(out, "assistant", line)
	case a.fence > 0:
		a.add(out, "assistant", line)
	case user:
		a.add(out, "user", strings.TrimRight(said, " "))
	case line == "####":
		a.add(out, "user", "")
	case strings.HasPrefix(line, ">"):
		a.flush(out)
	case a.role != "assistant" && strings.TrimSpace(line) == "":
	default:
		a.add(out, "assistant", line)
		a.fence = fence
	}
	return nil
}

// fenceOf returns how many backticks begin or end a block of code, 0 if the line does neither. Around a text with such
// lines a fence is longer than these.
func fenceOf(line string) int {
	if n := len(line) - len(strings.TrimLeft(line, "`")); n >= 3 {
		return n
	}
	return 0
}

// endsAnswer reports whether a line is what Aider prints after an answer, finished or interrupted.
func endsAnswer(line string) bool {
	return strings.HasPrefix(line, "> ^C again to exit") || strings.HasPrefix(line, "> Tokens: ")
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
	a.count, a.fence = 0, 0
}

// add adds a line to the message of a role.
func (a *aider) add(out *batch, role, line string) {
	if a.role != role || a.bytes > MaxLineBytes/4 {
		fence := a.fence
		a.flush(out)
		a.role, a.line, a.fence = role, out.line, fence
	}
	a.text = append(a.text, line)
	a.bytes += len(line) + 1
}

// flush emits the message that is being read.
func (a *aider) flush(out *batch) {
	content := strings.TrimSpace(strings.Join(a.text, "\n"))
	role := a.role
	a.role, a.text, a.bytes, a.fence = "", nil, 0, 0
	if role == "" || content == "" {
		return
	}
	a.count++
	line := out.line
	out.line = a.line
	a.say(out, a.id+":"+strconv.Itoa(a.count), a.began, &events.MessageCreated{Role: role, Content: content})
	out.line = line
}
