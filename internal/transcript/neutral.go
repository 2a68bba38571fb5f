package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/harness"
)

// neutral reads the neutral form: each line is an event and has its own id.
type neutral struct{ immediate }

type neutralLine struct {
	Kind           string          `json:"kind"`
	ConversationID string          `json:"conversation_id"`
	ID             string          `json:"id"`
	ParentIDs      []string        `json:"parent_ids"`
	Role           string          `json:"role"`
	Content        *string         `json:"content"`
	Reasoning      text            `json:"reasoning"`
	ToolName       string          `json:"tool_name"`
	Arguments      json.RawMessage `json:"arguments"`
	Result         json.RawMessage `json:"result"`
	Success        *bool           `json:"success"`
	Error          text            `json:"error"`
	DurationMS     *float64        `json:"duration_ms"`
	Time           text            `json:"time"`
	Meta           struct {
		Agent   text            `json:"agent"`
		Model   text            `json:"model"`
		Cwd     text            `json:"cwd"`
		Project text            `json:"project"`
		Titles  texts           `json:"titles"`
		Speaker text            `json:"speaker"`
		Session text            `json:"session"`
		Usage   json.RawMessage `json:"usage"`
		IsMeta  text            `json:"is_meta"`
	} `json:"meta"`
}

// Origins of messages that neither the user nor the model wrote.
const (
	originCompaction = events.OriginCompaction
	originMeta       = harness.OriginMeta // inserted by the agent's program: a skill's text, a caveat
)

func (neutral) value(out *batch, raw []byte) error {
	var l neutralLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	payload, err := l.payload()
	if err != nil {
		return err
	}
	if _, err := parseTime(string(l.Time)); err != nil { // whoever writes this form can correct it
		return err
	}
	out.event(l.ConversationID, sourceOf(l.ConversationID), l.ID, string(l.Time), payload)
	return nil
}

// payload returns the typed body for the line's kind.
func (l *neutralLine) payload() (events.Payload, error) {
	switch l.Kind {
	case "conversation":
		p := &events.ConversationStarted{
			Agent: string(l.Meta.Agent), Model: string(l.Meta.Model), Cwd: string(l.Meta.Cwd), Project: string(l.Meta.Project),
		}
		p.Agent = cmp.Or(p.Agent, agentOf(l.ConversationID))
		if len(l.Meta.Titles) > 0 {
			p.Title = string(l.Meta.Titles[0])
		}
		return p, nil
	case "message", "summary":
		p := &events.MessageCreated{
			MessageID: l.ID, Role: l.Role, Reasoning: string(l.Reasoning), Speaker: string(l.Meta.Speaker),
			Session: string(l.Meta.Session), Model: string(l.Meta.Model), Usage: given(l.Meta.Usage),
		}
		switch {
		case l.Content != nil:
			p.Content = *l.Content
		case l.Role != "assistant": // an assistant may call a tool without saying anything
			return nil, fmt.Errorf("content: is missing")
		}
		if l.Meta.IsMeta == "true" {
			p.Origin = originMeta
		}
		if l.Kind == "summary" {
			p.Role, p.Origin = "system", originCompaction
		}
		return p, nil
	case "tool_call":
		return &events.ToolCalled{
			ToolCallID: l.ID, MessageID: l.parent(), ToolName: l.ToolName, Arguments: plain(or(l.Arguments, "{}")),
		}, nil
	case "tool_result":
		p := &events.ToolReturned{
			ToolCallID: l.parent(), Success: l.Success, Result: events.JSONResult(plain(or(l.Result, `""`))), Error: string(l.Error), DurationMS: l.duration(),
		}
		p.ToolCallID = cmp.Or(p.ToolCallID, strings.TrimPrefix(l.ID, resultPrefix))
		return p, nil
	case "":
		return nil, fmt.Errorf("kind: is missing")
	}
	return nil, fmt.Errorf("kind: %.64q is not one of conversation, message, tool_call, tool_result, summary", l.Kind)
}

// resultPrefix turns the id of a call into the event id of its result.
const resultPrefix = "res:"

// duration returns the recorded duration, nil if it is negative because the clock was set
// back.
func (l *neutralLine) duration() *float64 {
	if l.DurationMS != nil && *l.DurationMS < 0 {
		return nil
	}
	return l.DurationMS
}

func (l *neutralLine) parent() string {
	if len(l.ParentIDs) == 0 {
		return ""
	}
	return l.ParentIDs[0]
}

// sourceOf returns the CloudEvents source of a conversation's events: import/neutral if the
// conversation's id names no agent.
func sourceOf(conversation string) string {
	if agent := agentOf(conversation); agent != "" {
		return "import/" + agent
	}
	return "import/neutral"
}

// agentOf returns the part of a conversation id before its first colon, if that is a word
// of letters, digits, - and _ that begins with a letter, else "".
func agentOf(conversation string) string {
	agent, _, ok := strings.Cut(conversation, ":")
	if !ok || agent == "" || len(agent) > 64 {
		return ""
	}
	for i, c := range agent {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) {
			return ""
		}
	}
	return agent
}
