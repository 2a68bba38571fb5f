package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"mneme.dev/mneme/events"
)

const (
	claudeCodeFormat = "claude-code"
	claudeCodeAgent  = "Claude Code"
	claudeCodeSource = "import/claude_code"

	// ClaudeCodePrefix and the id of a session of Claude Code make the id of its conversation.
	ClaudeCodePrefix = "claude_code:"
)

// claudeLine is a line of Claude Code's transcript. Each type of line uses some of the
// members.
type claudeLine struct {
	Type             string          `json:"type"`
	Subtype          text            `json:"subtype"`
	UUID             string          `json:"uuid"`
	SessionID        string          `json:"sessionId"`
	Timestamp        text            `json:"timestamp"`
	Cwd              text            `json:"cwd"`
	Version          text            `json:"version"` // of Claude Code
	IsSidechain      bool            `json:"isSidechain"`
	IsMeta           bool            `json:"isMeta"`
	IsCompactSummary bool            `json:"isCompactSummary"`
	Origin           json.RawMessage `json:"origin"` // who wrote a prompt, see byProgram
	Message          *claudeMessage  `json:"message"`
	ToolUseResult    json.RawMessage `json:"toolUseResult"`
	Error            json.RawMessage `json:"error"`
	Operation        text            `json:"operation"` // in lines of type queue-operation, as are the next two
	Reason           text            `json:"reason"`
	Content          json.RawMessage `json:"content"`
	Attachment       json.RawMessage `json:"attachment"`
	Summary          text            `json:"summary"`          // in lines of type summary, as is the next one
	LeafUUID         string          `json:"leafUuid"`         // the message with which the summarised session ends
	ForkedFrom       json.RawMessage `json:"forkedFrom"`       // of which line it is a copy, see origin
	AskedIn          text            `json:"requestSessionId"` // of an answer that is a copy: the session in which the model gave it
	CustomTitle      text            `json:"customTitle"`      // type custom-title
	AITitle          text            `json:"aiTitle"`          // type ai-title
}

type claudeMessage struct {
	ID      string          `json:"id"`
	Model   text            `json:"model"`
	Content blocks          `json:"content"`
	Usage   json.RawMessage `json:"usage"`
}

// claudeCode turns a Claude Code transcript into items. It remembers the session, the
// agent's open message (see group) and when unanswered calls were made.
type claudeCode struct {
	conversation string // from the file's name, or else from the first line with a session id
	subagent     string // the name of a subagent's file, "" in a session's
	began        string // the first timestamp
	cwd          string // the first one
	title        string
	titles       int // titles set after the start
	started      bool
	lines        map[uint64]struct{}  // hashes of the uuids of lines
	awaited      map[string]text      // titles of sessions whose last message was not seen, by its uuid
	calls        map[string]time.Time // not yet answered
	queue        claudeQueue
	messages     int // of the agent that have begun
	group        group
	last         string // the id of the last message
	own          bool   // the session's own lines have begun, see origin
	held         []claudeHeld
	heldBytes    int
	before       *claudeCode // the session whose lines are repeated now
	branched     *events.BranchedAt
	origins      origins
}

// maxOpenCalls bounds the memory for unanswered calls. Beyond it their times are dropped,
// so their results have no duration.
const maxOpenCalls = 10_000

// maxAwaited bounds the titles that are kept until their session is found to be this one.
const maxAwaited = 1_000

func newClaudeCode(name string) converter {
	c := newClaudeConversation(conversationOf(name))
	c.subagent, c.origins = subagentOf(name), originsBeside(name)
	c.own = c.subagent != ""
	return c
}

func newClaudeConversation(id string) *claudeCode {
	return &claudeCode{
		conversation: id, calls: make(map[string]time.Time),
		lines: make(map[uint64]struct{}), awaited: make(map[string]text), queue: newClaudeQueue(),
	}
}

// subagentName matches the file name of a subagent's transcript. All of its lines are of a side
// chain and have the id of the session that started it.
var subagentName = regexp.MustCompile(`^agent-[A-Za-z0-9_-]{1,64}$`)

// subagentOf returns the name of the subagent that a file name stands for, or "".
func subagentOf(name string) string {
	if stem, ok := stemOf(name); ok && subagentName.MatchString(stem) {
		return stem
	}
	return ""
}

// stemOf returns a file's name without its folder and its suffix.
func stemOf(name string) (string, bool) {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	for _, suffix := range suffixes {
		if stem, ok := strings.CutSuffix(base, suffix); ok {
			return stem, true
		}
	}
	return base, false
}

// sessionName matches the file name of a session. Tools that keep copies put the date in
// front and make it part of the session's name.
var sessionName = regexp.MustCompile(`^(\d{4}-\d\d-\d\d-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// conversationOf returns the conversation that a file name stands for, or "". The name wins over sessionId because a
// resumed session begins with lines of the previous session, which are part of what the agent saw.
func conversationOf(name string) string {
	if stem, ok := stemOf(name); ok && sessionName.MatchString(stem) {
		return ClaudeCodePrefix + stem
	}
	return ""
}

// end emits the open message and the items held after it, all marked Open: if the agent
// adds to the message, it changes and they move after the new version. A turn ends with a
// message that has no calls and whose last block is a text: so did 232 of 240 recorded ones, and
// none went on with that message. A pause alone says little: of the texts that another block of
// their message follows, every fourth is followed more than two seconds later.
func (c *claudeCode) end(out *batch) {
	if err := c.releaseOwn(out); err != nil {
		c.refuse(out, err)
	}
	first, answer := len(out.items), c.group.answer
	if c.before != nil {
		answer = c.before.group.answer
		c.leave(out)
	}
	c.group.close(c, out)
	out.open(first, answer)
}

func (c *claudeCode) value(out *batch, raw []byte) error {
	var l claudeLine
	err := json.Unmarshal(raw, &l)
	use, known := claudeLines[l.Type]
	switch {
	case err != nil && (use != nil || l.Type == ""):
		return err
	case l.Type == "":
		return errors.New("type: is missing")
	case !known:
		out.skip(claudeCodeFormat, string(l.Version), l.Type)
	}
	if c.conversation == "" && l.SessionID != "" {
		c.conversation = ClaudeCodePrefix + l.SessionID
		if c.subagent != "" {
			c.conversation += ":" + c.subagent
		}
	}
	if !c.own {
		return c.hold(out, claudeHeld{no: out.line, size: len(raw), line: &l, use: use})
	}
	return c.line(out, &l, use)
}

// line takes a line of the conversation's own.
func (c *claudeCode) line(out *batch, l *claudeLine, use claudeUse) error {
	c.began = cmp.Or(c.began, string(l.Timestamp))
	c.cwd = cmp.Or(c.cwd, string(l.Cwd))
	if use == nil || l.IsSidechain && c.subagent == "" {
		return nil
	}
	err := use(c, out, l)
	if l.UUID != "" {
		c.lines[xxhash.Sum64String(l.UUID)] = struct{}{}
	}
	if title := c.awaited[l.UUID]; title != "" {
		delete(c.awaited, l.UUID)
		_ = c.titled(out, &claudeLine{Summary: title, Timestamp: l.Timestamp}) // it never fails
	}
	c.bound(out)
	return err
}

func (c *claudeCode) refuse(out *batch, err error) {
	switch {
	case len(c.held) > 0:
		c.held = append(c.held, claudeHeld{no: out.line, size: itemBytes, err: err})
		return
	case c.before != nil:
		c.before.refuse(out, err)
		return
	}
	out = c.group.behind(out)
	out.refuse(err)
	out.items[len(out.items)-1].Open = errors.Is(err, errCut)
	c.bound(out)
}

// bound closes the open message once too much is held.
func (c *claudeCode) bound(out *batch) {
	if c.group.bytes+c.group.after.bytes > MaxLineBytes {
		c.group.close(c, out)
	}
}

// claudeLines maps each type of line to its converter; nil means that the line is not part
// of the conversation.
var claudeLines = map[string]claudeUse{
	"user":         (*claudeCode).user,
	"assistant":    (*claudeCode).assistant,
	"system":       (*claudeCode).system,
	"attachment":   (*claudeCode).attached,
	"summary":      (*claudeCode).titled,
	"custom-title": (*claudeCode).titled,
	"ai-title":     (*claudeCode).titled,

	"queue-operation": (*claudeCode).queued,

	"agent-color": nil, "agent-name": nil, "agent-setting": nil, "api-request": nil, "api-request-blob": nil,
	"api-request-shape": nil, "atis-latch": nil, "attribution-snapshot": nil, "bridge-session": nil,
	"content-replacement": nil, "cost-state": nil, "file-history-delta": nil, "file-history-snapshot": nil,
	"last-prompt": nil, "mode": nil, "permission-mode": nil, "pr-link": nil, "progress": nil, "relocated": nil,
	"result": nil, "started": nil, "tag": nil, "tools-used": nil, "worktree-state": nil,
}

// start emits the event that opens the conversation, before any other event. It uses only
// what earlier lines say, so a transcript that has grown begins with the same event.
func (c *claudeCode) start(out *batch) {
	if c.started {
		return
	}
	c.started = true
	if c.before != nil {
		c.leave(out)
	}
	out.event(c.conversation, claudeCodeSource, c.conversation, c.began, &events.ConversationStarted{
		Title: c.title, Agent: claudeCodeAgent, Cwd: c.cwd, BranchedFrom: c.branched,
	})
}

// titled takes a title. A title by the agent counts only if there is none yet, because it
// writes several for one session; the user's always counts. After the start a title becomes
// an update. A summary is the title of the session that ends with its leaf: the agent also writes those of other sessions
// into the file of a new one.
func (c *claudeCode) titled(out *batch, l *claudeLine) error {
	if l.LeafUUID != "" {
		if _, ours := c.lines[xxhash.Sum64String(l.LeafUUID)]; !ours {
			if len(c.awaited) < maxAwaited {
				c.awaited[l.LeafUUID] = l.Summary
			}
			return nil
		}
	}
	own := string(l.CustomTitle)
	title := cmp.Or(own, string(l.AITitle), string(l.Summary))
	if title == "" || title == c.title || own == "" && c.title != "" {
		return nil
	}
	c.title = title
	if !c.started {
		return nil
	}
	c.titles++
	c.event(out, "title:"+strconv.Itoa(c.titles), l, &events.ConversationUpdated{Title: &title})
	return nil
}

// system imports requests that the model's server refused. The other subtypes are notices
// of the program: hooks, durations, boundaries, local commands.
func (c *claudeCode) system(out *batch, l *claudeLine) error {
	if l.Subtype != "api_error" {
		return nil
	}
	if l.UUID == "" {
		return errors.New("uuid: is missing")
	}
	c.start(out)
	c.message(out, "sys:"+l.UUID, l, &events.MessageCreated{Role: "system", Content: "api_error: " + apiError(l.Error)})
	return nil
}

// apiError returns what Claude Code itself shows of an error. Before it kept that text, and details of the connection
// beside it, the error was what the model's server answered, which is returned whole.
func apiError(raw json.RawMessage) string {
	var e struct {
		Formatted text `json:"formatted"`
	}
	if json.Unmarshal(raw, &e) == nil && e.Formatted != "" {
		return string(e.Formatted)
	}
	return spaced(plain(or(raw, "{}")))
}

// user imports the user's side of the conversation: results of calls first, then text.
func (c *claudeCode) user(out *batch, l *claudeLine) error {
	switch {
	case l.Message == nil:
		return errors.New("message: is missing")
	case l.UUID == "":
		return errors.New("uuid: is missing")
	}
	c.start(out)
	returned := false
	for i := range l.Message.Content {
		if b := &l.Message.Content[i]; b.Type == "tool_result" {
			c.result(out, l, b)
			returned = true
		}
	}
	content, any := l.Message.Content.text("tool_result")
	l.IsMeta = l.IsMeta || isNotification(content) || byProgram(l.Origin, content)
	if any && !returned && !l.IsMeta {
		c.group.close(c, out) // the next turn begins
	}
	switch {
	case !any:
	case l.IsCompactSummary:
		c.message(out, "sum:"+l.UUID, l, &events.MessageCreated{Role: "system", Content: content, Origin: originCompaction})
	case l.IsMeta:
		c.message(out, "msg:"+l.UUID, l, &events.MessageCreated{Role: "user", Content: content, Origin: originMeta})
	default:
		c.asked(out, l.UUID, l, content)
	}
	return nil
}

var ideContext = regexp.MustCompile(`(?s)^(?:\s*(?:<ide_opened_file>.*?</ide_opened_file>|<ide_selection>.*?</ide_selection>))+`)

// asked adds a prompt and, as a message of its own, what an editor said before it about the user's files.
func (c *claudeCode) asked(out *batch, id string, l *claudeLine, content string) {
	seen := ideContext.FindString(content)
	said := strings.TrimPrefix(content, seen)
	if seen != "" {
		said = strings.TrimSpace(said)
	}
	if said != "" || seen == "" {
		c.message(out, "msg:"+id, l, &events.MessageCreated{Role: "user", Content: said})
	}
	if seen != "" {
		c.message(out, "ide:"+id, l, &events.MessageCreated{Role: "system", Content: strings.TrimSpace(seen), Origin: originMeta})
	}
}

func (c *claudeCode) message(out *batch, id string, l *claudeLine, m *events.MessageCreated) {
	m.MessageID, c.last = id, id
	c.event(out, id, l, m)
}

// event adds an event of a line, after the open message if there is one.
func (c *claudeCode) event(out *batch, id string, l *claudeLine, p events.Payload) {
	c.group.behind(out).event(c.conversation, claudeCodeSource, id, string(l.Timestamp), p)
}

func (c *claudeCode) result(out *batch, l *claudeLine, b *block) {
	content, _ := b.Content.text("")
	success := b.IsError != "true"
	p := &events.ToolReturned{ToolCallID: b.ToolUseID, Success: &success, DurationMS: c.duration(l, b.ToolUseID)}
	p.Result = events.TextResult(content)
	if !success {
		p.Error = content
	}
	c.event(out, resultPrefix+b.ToolUseID, l, p)
}

// duration returns the milliseconds that the tool itself reports, else the whole
// milliseconds from call to result. It returns nil if neither is known or the clock ran
// backward: no result is lost because of its duration.
func (c *claudeCode) duration(l *claudeLine, call string) *float64 {
	asked, known := c.calls[call]
	delete(c.calls, call)
	var own struct {
		Milliseconds *float64 `json:"durationMs"`
		Total        *float64 `json:"totalDurationMs"`
		Seconds      *float64 `json:"durationSeconds"`
	}
	if len(l.ToolUseResult) > 0 && l.ToolUseResult[0] == '{' && json.Unmarshal(l.ToolUseResult, &own) == nil {
		ms := cmp.Or(own.Milliseconds, own.Total)
		if ms == nil && own.Seconds != nil {
			ms = new(*own.Seconds * 1000)
		}
		if ms != nil && *ms >= 0 && !math.IsInf(*ms, 0) {
			return ms
		}
	}
	answered, err := parseTime(string(l.Timestamp))
	if !known || err != nil || answered.Before(asked) {
		return nil
	}
	return new(float64(answered.Sub(asked).Round(time.Millisecond).Milliseconds()))
}
