package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/harness"
)

const (
	codexFormat = "codex"
	codexAgent  = "codex"
	codexSource = "import/codex"

	// CodexPrefix and the id of a thread of Codex make the id of its conversation.
	CodexPrefix = "codex:"
)

// codexLine is a line of a rollout, as Codex calls the recording of a thread.
type codexLine struct {
	Timestamp text            `json:"timestamp"`
	Ordinal   *uint64         `json:"ordinal"`
	Type      text            `json:"type"`
	Payload   json.RawMessage `json:"payload"`
	Metadata  json.RawMessage `json:"metadata"`
}

// codexNote is what the metadata of a line says about an item.
type codexNote struct {
	Inherited bool `json:"inherited_user_message"` // a subagent begins with a copy of what its parent had seen
	Summary   bool `json:"compaction_output"`      // the next compacted line has the same text
}

// codexItem is the payload of a line. Each type of payload uses some of the members.
type codexItem struct {
	Type      text            `json:"type"`
	Role      text            `json:"role"`
	Content   codexTexts      `json:"content"`
	Summary   codexTexts      `json:"summary"` // of reasoning
	CallID    text            `json:"call_id"`
	Name      text            `json:"name"`
	Namespace text            `json:"namespace"` // of a tool of an MCP server: mcp__<server>
	Author    text            `json:"author"`    // of an agent_message
	Tools     json.RawMessage `json:"tools"`     // in a tool_search_output
	Arguments json.RawMessage `json:"arguments"` // in a function_call: JSON in a string
	Input     json.RawMessage `json:"input"`     // in a custom_tool_call: any text
	Action    json.RawMessage `json:"action"`    // of a local_shell_call or web_search_call
	Output    json.RawMessage `json:"output"`

	ID           text `json:"id"` // of a session_meta, as are the next four
	Timestamp    text `json:"timestamp"`
	Cwd          text `json:"cwd"`
	CLIVersion   text `json:"cli_version"`
	ThreadSource text `json:"thread_source"`
	Model        text `json:"model"`   // of a turn_context
	Message      text `json:"message"` // of a compacted

	Item struct { // of an item_completed
		ID     text `json:"id"` // of a call's, that of the call
		Status text `json:"status"`
	} `json:"item"`
}

// codexTexts is a text, or a list of parts that have a text. A part without one, such as an
// image, is shown as its type in brackets.
type codexTexts []string

func (c *codexTexts) UnmarshalJSON(raw []byte) error {
	*c = nil
	switch raw[0] {
	case '"':
		*c = make(codexTexts, 1)
		return json.Unmarshal(raw, &(*c)[0])
	case '[':
		var parts []struct {
			Type text  `json:"type"`
			Text *text `json:"text"`
		}
		if err := json.Unmarshal(raw, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			switch {
			case p.Text != nil:
				*c = append(*c, string(*p.Text))
			case p.Type != "":
				*c = append(*c, "["+string(p.Type)+"]")
			}
		}
	}
	return nil
}

func (c codexTexts) join() string { return strings.Join(c, "\n") }

// codex turns a rollout into items. A message has no id of its own, so its place in the file is its id: the ordinal
// where the line has one, else the line number. Reasoning is on separate lines, and is held until the message or call
// that it belongs to.
type codex struct {
	thread   string // from the first session_meta, else from the file's name
	began    string
	cwd      string
	version  string
	model    string
	subagent bool
	started  bool
	message  string // the id of the agent's last message in this turn, "" if there is none

	reasoning []string
	thought   string // the place of the first line in reasoning
	bytes     int    // size of reasoning

	outcomes map[string]bool // whether calls of this turn succeeded, from item_completed to their result

	held  codexHeld
	usage codexUsage // of responses whose message has not been emitted

	places places
}

// rolloutName matches the file name of a rollout and captures the thread.
var rolloutName = regexp.MustCompile(`^rollout-.*-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl`)

func newCodex(name string) converter {
	c := &codex{outcomes: map[string]bool{}}
	if m := rolloutName.FindStringSubmatch(path.Base(strings.ReplaceAll(name, `\`, "/"))); m != nil {
		c.thread = m[1]
	}
	return c
}

func (c *codex) refuse(out *batch, err error) { c.behind(out).refuse(err) }

func (c *codex) value(out *batch, raw []byte) error {
	var l codexLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	if l.Type == "" {
		return errors.New("type: is missing")
	}
	var item codexItem
	if err := json.Unmarshal(or(l.Payload, "{}"), &item); err != nil && codexRead[l.Type] {
		return err
	}
	ordinal := ""
	if l.Ordinal != nil { // so that it is not mistaken for a line number, as in recordings without ordinals
		ordinal = "o" + strconv.FormatUint(*l.Ordinal, 10)
	}
	at := c.places.at(out.line, ordinal)
	c.began = cmp.Or(c.began, string(l.Timestamp))
	if c.held.after.bytes > MaxLineBytes || l.Type == "event_msg" && codexEnds[item.Type] {
		c.release(out)
	}
	switch l.Type {
	case "event_msg":
		c.completed(&item)
	case "session_meta":
		return c.meta(&item)
	case "token_usage_record":
		c.counted(out, l.Payload)
	case "turn_context":
		c.model = cmp.Or(string(item.Model), c.model)
		c.cwd = cmp.Or(c.cwd, string(item.Cwd))
	case "response_item":
		var note codexNote
		if json.Unmarshal(or(l.Metadata, "{}"), &note) == nil && (note.Summary || note.Inherited && c.subagent) {
			return nil
		}
		return c.item(out, at, &l, &item)
	case "compacted":
		if item.Message != "" {
			return c.said(out, at, &l, &events.MessageCreated{Role: "system", Content: string(item.Message), Origin: originCompaction})
		}
	default:
		if !codexIgnored[string(l.Type)] {
			out.skip(codexFormat, c.version, string(l.Type))
		}
	}
	return nil
}

// codexRead are the types of lines whose payload is read. Those of others may have any form.
var codexRead = map[text]bool{"session_meta": true, "turn_context": true, "response_item": true, "compacted": true}

// codexIgnored are the known types of lines and items that are not part of the conversation.
var codexIgnored = map[string]bool{
	"ghost_snapshot":                     true,
	"inter_agent_communication":          true,
	"inter_agent_communication_metadata": true,
	"retained_context":                   true,
	"world_state":                        true,
	"compaction":                         true, // encrypted
	"compaction_summary":                 true, // encrypted
}

// completed takes an event_msg, which is what the terminal showed: the same texts again, some of them cut. Since 0.171 it
// also says, before the output of a call to an MCP server, whether the call succeeded, which the output does not.
func (c *codex) completed(i *codexItem) {
	if i.Type != "item_completed" || i.Item.ID == "" || len(c.outcomes) >= maxOpenCalls {
		return
	}
	switch i.Item.Status {
	case "completed":
		c.outcomes[string(i.Item.ID)] = true
	case "failed", "declined":
		c.outcomes[string(i.Item.ID)] = false
	}
}

// meta takes the first session_meta. In a fork, more follow it: those of the threads that it was copied from.
func (c *codex) meta(m *codexItem) error {
	if c.version != "" || c.started {
		return nil
	}
	if m.ID == "" {
		return errors.New("payload.id: is missing")
	}
	c.thread = string(m.ID)
	c.began = cmp.Or(string(m.Timestamp), c.began)
	c.cwd = string(m.Cwd)
	c.subagent = m.ThreadSource == "subagent"
	c.version = cmp.Or(string(m.CLIVersion), "unknown")
	return nil
}

func (c *codex) conversation() string { return CodexPrefix + c.thread }

// start emits the event that opens the conversation, before any other event.
func (c *codex) start(out *batch) {
	if !c.started {
		c.started = true
		out.event(c.conversation(), codexSource, c.conversation(), c.began, &events.ConversationStarted{Agent: codexAgent, Cwd: c.cwd})
	}
}

func (c *codex) event(out *batch, id string, l *codexLine, p events.Payload) {
	c.start(out)
	c.behind(out).event(c.conversation(), codexSource, id, string(l.Timestamp), p)
}

func (c *codex) item(out *batch, at string, l *codexLine, i *codexItem) error {
	kind := string(i.Type)
	switch {
	case kind == "message":
		return c.spoken(out, at, l, i)
	case kind == "agent_message":
		return c.said(out, at, l, codexAgentMessage(i))
	case kind == "reasoning":
		thoughts := i.Summary
		if len(i.Content) > 0 {
			thoughts = i.Content
		}
		if len(thoughts) == 0 { // encrypted
			return nil
		}
		c.thought = cmp.Or(c.thought, at)
		c.reasoning = append(c.reasoning, thoughts...)
		for _, s := range thoughts {
			c.bytes += len(s)
		}
		if c.bytes > MaxLineBytes/4 {
			return c.think(out, c.thought, l)
		}
		return nil
	case codexIgnored[kind]:
		return nil
	case strings.HasSuffix(kind, "_call"):
		return c.call(out, at, l, i, strings.TrimSuffix(kind, "_call"))
	case strings.HasSuffix(kind, "_output"):
		return c.result(out, l, i)
	}
	out.skip(codexFormat, c.version, cmp.Or(kind, "response_item without a type"))
	return nil
}

// codexSeen matches what an editor or the app says about the user's files before a prompt, and the heading of the prompt.
var codexSeen = regexp.MustCompile(`(?s)^\s*# (?:Context from my IDE setup|Files mentioned by the user|Applications mentioned by the user):\n.*?\n## My request(?: for Codex)?:\s*`)

// spoken takes a message. What an editor told in it becomes a message of its own, after it.
func (c *codex) spoken(out *batch, at string, l *codexLine, i *codexItem) error {
	m := &events.MessageCreated{Content: i.Content.join()}
	switch i.Role {
	case "assistant":
		m.Role = "assistant"
	case "user":
		m.Role = "user"
		if harness.Wrote(m.Content) {
			m.Origin = originMeta
		} else if seen := codexSeen.FindString(m.Content); seen != "" && len(seen) < len(m.Content) {
			m.Content = m.Content[len(seen):]
			if err := c.said(out, at, l, m); err != nil {
				return err
			}
			at, m = at+":ide", &events.MessageCreated{Role: "system", Content: seen, Origin: originMeta}
		}
	case "developer", "system":
		m.Role, m.Origin = "system", originMeta
	case "":
		return errors.New("payload.role: is missing")
	default:
		out.skip(codexFormat, c.version, messageOf(string(i.Role)))
		return nil
	}
	return c.said(out, at, l, m)
}

// codexTask begins the message by which an agent gives a subagent its task.
const codexTask = "Message Type: NEW_TASK"

// codexAgentMessage returns what another agent has sent: a task begins a turn, as a prompt does, and anything else is news
// within one.
func codexAgentMessage(i *codexItem) *events.MessageCreated {
	m := &events.MessageCreated{Role: "user", Content: i.Content.join(), Speaker: string(i.Author)}
	if !strings.HasPrefix(m.Content, codexTask) {
		m.Origin = originMeta
	}
	return m
}

// said adds a message. If it is the agent's, it takes the held reasoning.
func (c *codex) said(out *batch, at string, l *codexLine, m *events.MessageCreated) error {
	if c.thread == "" {
		return errNoThread
	}
	m.MessageID = c.conversation() + ":" + at
	if m.Role == "assistant" {
		m.Model, m.Reasoning = c.model, c.thoughts()
		c.message = m.MessageID
		c.start(out)
		c.hold(out, l, m)
		return nil
	}
	if c.thought != "" { // the turn was interrupted
		if err := c.think(out, c.thought, l); err != nil {
			return err
		}
	}
	c.release(out)
	if m.Role == "user" {
		c.message = ""
		clear(c.outcomes)
	}
	c.event(out, m.MessageID, l, m)
	return nil
}

var errNoThread = errors.New("there is no session_meta before this line, and the file's name has no thread id")

// think adds an agent's message with at most reasoning, for calls to belong to.
func (c *codex) think(out *batch, at string, l *codexLine) error {
	return c.said(out, at+":m", l, &events.MessageCreated{Role: "assistant"})
}

func (c *codex) thoughts() string {
	s := strings.Join(c.reasoning, "\n")
	c.reasoning, c.thought, c.bytes = nil, "", 0
	return s
}

func (c *codex) call(out *batch, at string, l *codexLine, i *codexItem, kind string) error {
	if c.thread == "" {
		return errNoThread
	}
	if c.thought != "" || c.message == "" {
		if err := c.think(out, at, l); err != nil {
			return err
		}
	}
	p := &events.ToolCalled{
		ToolCallID: cmp.Or(string(i.CallID), c.conversation()+":"+at+":c"), MessageID: c.message,
		ToolName: cmp.Or(string(i.Name), kind),
	}
	if strings.HasPrefix(string(i.Namespace), "mcp__") && !strings.HasPrefix(p.ToolName, "mcp__") {
		p.ToolName = string(i.Namespace) + "__" + p.ToolName
	}
	switch {
	case given(i.Arguments) != nil:
		p.Arguments = plain(argumentsOf(i.Arguments))
	case given(i.Input) != nil:
		p.Arguments = plain(json.RawMessage(`{"input":` + string(i.Input) + `}`))
	default:
		p.Arguments = plain(or(i.Action, "{}"))
	}
	c.event(out, p.ToolCallID, l, p)
	c.held.called = true
	return nil
}

// argumentsOf returns the JSON that a string holds. If it holds none, because the model wrote it badly or was cut off,
// it stays a string.
func argumentsOf(raw json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return raw
	}
	if inner := strings.TrimSpace(s); json.Valid([]byte(inner)) {
		return json.RawMessage(inner)
	}
	if strings.TrimSpace(s) == "" {
		return json.RawMessage("{}")
	}
	return raw
}

func (c *codex) result(out *batch, l *codexLine, i *codexItem) error {
	switch {
	case c.thread == "":
		return errNoThread
	case i.CallID == "":
		return errors.New("payload.call_id: is missing")
	}
	p := codexResult(or(i.Output, string(codexTools(i.Tools))))
	p.ToolCallID = string(i.CallID)
	if success, known := c.outcomes[p.ToolCallID]; known && p.Success == nil {
		p.Success = &success
		if !success {
			p.Error = codexText(i.Output)
		}
	}
	delete(c.outcomes, p.ToolCallID)
	c.release(out)
	c.event(out, resultPrefix+p.ToolCallID, l, p)
	return nil
}

// codexTools returns the names of the tools that a search has found as JSON, nil if there are none.
func codexTools(raw json.RawMessage) json.RawMessage {
	type tool struct {
		Name  text   `json:"name"`
		Tools []tool `json:"tools"`
	}
	var tools []tool
	if json.Unmarshal(or(raw, "[]"), &tools) != nil {
		return nil
	}
	var names []string
	for _, t := range tools {
		if len(t.Tools) == 0 {
			names = append(names, string(t.Name))
		}
		for _, inner := range t.Tools {
			names = append(names, string(t.Name+"__"+inner.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return quote(strings.Join(names, "\n"))
}
