package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	copilotFormat = "copilot-cli"
	copilotPrefix = "copilot_cli:"
)

// copilotLine is an event of a session of Copilot CLI.
type copilotLine struct {
	Type      text        `json:"type"`
	ID        text        `json:"id"`
	Timestamp text        `json:"timestamp"`
	AgentID   text        `json:"agentId"` // of a subagent
	Data      copilotData `json:"data"`
}

// copilotData is the content of an event. Each type uses some of the members.
type copilotData struct {
	SessionID      text `json:"sessionId"`
	StartTime      text `json:"startTime"`
	CopilotVersion text `json:"copilotVersion"`
	SelectedModel  text `json:"selectedModel"`
	Context        struct {
		Cwd text `json:"cwd"`
	} `json:"context"`
	NewModel           text            `json:"newModel"`
	Content            text            `json:"content"`
	TransformedContent text            `json:"transformedContent"`
	ReasoningText      text            `json:"reasoningText"`
	Model              text            `json:"model"`
	Usage              json.RawMessage `json:"usage"`
	SummaryContent     text            `json:"summaryContent"`
	Title              *text           `json:"title"`
	ToolRequests       []struct {
		ToolCallID text            `json:"toolCallId"`
		Name       text            `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
	} `json:"toolRequests"`
	ToolCallID text            `json:"toolCallId"`
	ToolName   text            `json:"toolName"`
	Arguments  json.RawMessage `json:"arguments"`
	Success    *bool           `json:"success"`
	Result     json.RawMessage `json:"result"` // a text, or an object with one as content
	Error      json.RawMessage `json:"error"`
	Shell      exitOf          `json:"shellExecution"`
}

// copilotWrap is what the program puts around a prompt.
var copilotWrap = regexp.MustCompile(`(?s)<(current_datetime|reminder|system_reminder)>.*?</(?:current_datetime|reminder|system_reminder)>`)

// copilotIgnored are the known types of events that are not part of the conversation, as are those that begin with model.,
// of the model that writes a summary. A system.message is the program's whole system prompt, again in each part of a session.
var copilotIgnored = map[text]bool{
	"assistant.turn_start": true, "assistant.turn_end": true, "assistant.intent": true, "assistant.usage": true, "assistant.reasoning": true,
	"session.resume": true, "session.idle": true, "session.shutdown": true, "session.info": true, "session.warning": true, "session.error": true,
	"session.truncation": true, "session.compaction_start": true, "session.usage_info": true, "session.handoff": true, "session.mode_changed": true,
	"session.plan_changed": true, "session.context_changed": true, "session.task_complete": true, "session.snapshot_rewind": true,
	"session.workspace_file_changed": true, "session.binary_asset": true, "subagent.started": true, "subagent.configured": true, "subagent.completed": true, "subagent.failed": true, "subagent.selected": true,
	"system.message": true, "hook.start": true, "hook.end": true, "skill.invoked": true, "abort": true, "tool.execution_progress": true, "tool.execution_partial_result": true,
	"tool.user_requested": true, "system.notification": true, "user.abort": true,
}

// copilot turns a session into items. Each event has an id. The events of a subagent are among those of its session, and
// become a conversation of their own: several subagents work at the same time.
type copilot struct {
	copilotTalk
	version   string
	subagents map[text]*copilotTalk
}

// copilotTalk is a session, or a subagent of it.
type copilotTalk struct {
	talk
	model   string
	called  map[string]bool
	message string          // the id of the agent's last message
	usage   json.RawMessage // of the agent's next message
}

func newCopilot(name string) converter {
	c := &copilot{copilotTalk: newCopilotTalk("", ""), subagents: map[text]*copilotTalk{}}
	if id := folderOf(name, 1); id != "" {
		c.id = copilotPrefix + id
	}
	return c
}

func newCopilotTalk(id, cwd string) copilotTalk {
	start := events.ConversationStarted{Agent: "GitHub Copilot CLI", Cwd: cwd}
	return copilotTalk{talk: talk{id: id, source: "import/copilot_cli", scoped: true, start: start}, called: map[string]bool{}}
}

// of returns the conversation of a session's subagent, or of the session if agent is "".
func (c *copilot) of(agent text) *copilotTalk {
	if agent == "" {
		return &c.copilotTalk
	}
	t := c.subagents[agent]
	if t == nil {
		t = new(newCopilotTalk(c.id+":"+string(agent), c.start.Cwd))
		c.subagents[agent] = t
	}
	return t
}

func (c *copilot) value(out *batch, raw []byte) error {
	var l copilotLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	d := &l.Data
	switch {
	case l.Type == "":
		return errors.New("type: is missing")
	case l.Type == "session.start":
		c.version, c.model = string(d.CopilotVersion), string(d.SelectedModel)
		if !c.started {
			c.id = copilotPrefix + cmp.Or(string(d.SessionID), strings.TrimPrefix(c.id, copilotPrefix))
			c.began, c.start.Cwd = cmp.Or(string(d.StartTime), string(l.Timestamp)), string(d.Context.Cwd)
		}
		return nil
	case copilotIgnored[l.Type], strings.HasPrefix(string(l.Type), "model."):
		return nil
	case c.id == "" || c.id == copilotPrefix:
		return errors.New("there is no session.start before this line, and the file is not in the folder of a session")
	case l.ID == "":
		return errors.New("id: is missing")
	}
	known, err := c.of(l.AgentID).took(out, &l)
	if !known {
		out.skip(copilotFormat, c.version, string(l.Type))
	}
	return err
}

// took adds what an event holds, and reports whether its type is known.
func (t *copilotTalk) took(out *batch, l *copilotLine) (known bool, err error) {
	d, id, at := &l.Data, t.id+":"+string(l.ID), string(l.Timestamp)
	switch l.Type {
	case "session.model_change":
		t.model = string(d.NewModel)
	case "session.usage_record":
		t.usage = inclusiveUsage(d.Usage)
	case "user.message":
		said := string(d.Content)
		if said == "" { // some sessions have it only in the form in which it was sent
			said = strings.TrimSpace(copilotWrap.ReplaceAllString(string(d.TransformedContent), ""))
		}
		t.say(out, id, at, &events.MessageCreated{Role: "user", Content: said})
	case "assistant.message":
		t.message = id
		t.say(out, id, at, &events.MessageCreated{
			Role: "assistant", Content: string(d.Content), Reasoning: string(d.ReasoningText), Model: cmp.Or(string(d.Model), t.model), Usage: t.usage,
		})
		t.usage = nil
		for _, r := range d.ToolRequests {
			if r.ToolCallID != "" {
				t.asked(out, string(r.ToolCallID), at, string(r.Name), r.Arguments)
			}
		}
	case "tool.execution_start":
		if d.ToolCallID == "" {
			return true, errors.New("data.toolCallId: is missing")
		}
		t.asked(out, string(d.ToolCallID), at, string(d.ToolName), d.Arguments)
	case "tool.execution_complete":
		if d.ToolCallID == "" {
			return true, errors.New("data.toolCallId: is missing")
		}
		if d.Shell != 0 { // a failure that it calls a success
			d.Success = new(bool)
		}
		t.answer(out, string(d.ToolCallID), at, copilotResult(d), d.Success)
	case "session.compaction_complete":
		if d.SummaryContent != "" {
			t.say(out, id, at, &events.MessageCreated{Role: "system", Content: string(d.SummaryContent), Origin: originCompaction})
		}
	case "session.title_changed":
		if d.Title != nil {
			t.event(out, id, at, &events.ConversationUpdated{Title: new(string(*d.Title))})
		}
	default:
		return false, nil
	}
	return true, nil
}

// asked adds a call, which is in the message that asks for it and again when it begins.
func (t *copilotTalk) asked(out *batch, id, at, tool string, arguments json.RawMessage) {
	if !t.called[id] {
		t.called[id] = true
		t.call(out, id, at, t.message, cmp.Or(tool, "unknown"), arguments)
	}
}

func copilotResult(d *copilotData) string {
	for _, raw := range []json.RawMessage{d.Result, d.Error} {
		var s string
		var object struct {
			Content *text `json:"content"`
			Message *text `json:"message"`
		}
		switch {
		case given(raw) == nil:
		case json.Unmarshal(raw, &s) == nil:
			return s
		case json.Unmarshal(raw, &object) == nil && object.Content != nil:
			return string(*object.Content)
		case object.Message != nil:
			return string(*object.Message)
		default:
			return string(plain(raw))
		}
	}
	return ""
}
