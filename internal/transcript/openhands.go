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
	openHandsFormat = "openhands"
	openHandsPrefix = "openhands:"
)

// openHandsKind matches the kinds of events.
var openHandsKind = regexp.MustCompile(`^[A-Z][A-Za-z]*(Event|Condensation|Pause|Error|Observation)$`)

// openHandsEvent is an event of OpenHands, which has a file of its own. Each kind uses some of the members.
type openHandsEvent struct {
	ID         text `json:"id"`
	Kind       text `json:"kind"`
	Timestamp  text `json:"timestamp"` // without a zone: UTC
	Source     text `json:"source"`
	LLMMessage struct {
		Role      text       `json:"role"`
		Content   codexTexts `json:"content"`
		Reasoning text       `json:"reasoning_content"`
	} `json:"llm_message"`
	SystemPrompt openHandsPart `json:"system_prompt"`
	Thought      codexTexts    `json:"thought"` // of an ActionEvent, as are the next four
	Reasoning    text          `json:"reasoning_content"`
	ToolName     text          `json:"tool_name"`
	ToolCallID   text          `json:"tool_call_id"`
	ToolCall     struct {
		Arguments json.RawMessage `json:"arguments"`
		Function  struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_call"`
	Action      json.RawMessage `json:"action"`
	Observation struct {        // of an ObservationEvent
		Content  codexTexts `json:"content"`
		Output   codexTexts `json:"output"`
		IsError  bool       `json:"is_error"`
		ExitCode exit       `json:"exit_code"`
		Error    text       `json:"error"`
	} `json:"observation"`
	Error  text  `json:"error"`            // of an AgentErrorEvent
	Reason text  `json:"rejection_reason"` // of a UserRejectObservation
	Text   *text `json:"summary"`          // of a Condensation
}

// openHandsPart is a part that has a text.
type openHandsPart struct {
	Text text `json:"text"`
}

// openHands turns an event into items. The folder of a conversation names it; its other files are not needed.
type openHands struct{ talk }

func newOpenHands(name string) converter {
	o := &openHands{talk{source: "import/openhands", scoped: true, started: true}}
	if folderOf(name, 1) == "events" && folderOf(name, 2) != "" {
		o.id = openHandsPrefix + folderOf(name, 2)
	}
	if strings.HasPrefix(folderOf(name, 0), "event-00000-") { // otherwise each file would begin the conversation
		o.started, o.start.Agent = false, "OpenHands"
	}
	return o
}

func (o *openHands) value(out *batch, raw []byte) error {
	var e openHandsEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	switch {
	case o.id == "":
		return errors.New("the path does not name the conversation: it must end in <conversation>/events/<event>.json")
	case e.ID == "":
		return errors.New("id: is missing")
	}
	id, at := o.id+":"+string(e.ID), string(e.Timestamp)
	switch e.Kind {
	case "SystemPromptEvent":
		o.say(out, id, at, &events.MessageCreated{Role: "system", Content: string(e.SystemPrompt.Text), Origin: originMeta})
	case "MessageEvent":
		m := &events.MessageCreated{Role: "user", Content: e.LLMMessage.Content.join()}
		if e.LLMMessage.Role == "assistant" || e.LLMMessage.Role == "" && e.Source == "agent" {
			m.Role, m.Reasoning = "assistant", string(e.LLMMessage.Reasoning)
		} else if e.Source != "user" {
			m.Role, m.Origin = "system", originMeta
		}
		o.say(out, id, at, m)
	case "ActionEvent":
		o.say(out, id, at, &events.MessageCreated{Role: "assistant", Content: e.Thought.join(), Reasoning: string(e.Reasoning)})
		arguments := or(e.ToolCall.Arguments, string(or(e.ToolCall.Function.Arguments, string(or(e.Action, "{}")))))
		o.call(out, cmp.Or(string(e.ToolCallID), id+":c"), at, id, cmp.Or(string(e.ToolName), "unknown"), arguments)
	case "ObservationEvent", "AgentErrorEvent", "UserRejectObservation":
		if e.ToolCallID == "" {
			return errors.New("tool_call_id: is missing")
		}
		if e.Observation.Error == "false" { // some tools report it as true or false, others as a text
			e.Observation.Error = ""
		}
		success := e.Kind == "ObservationEvent" && !e.Observation.IsError && e.Observation.Error == "" && e.Observation.ExitCode <= 0 // -1: it still runs
		result := cmp.Or(e.Observation.Content.join(), e.Observation.Output.join(), string(e.Observation.Error), string(e.Error), string(e.Reason))
		o.answer(out, string(e.ToolCallID), at, result, &success)
	case "Condensation":
		if e.Text != nil && *e.Text != "" {
			o.say(out, id, at, &events.MessageCreated{Role: "system", Content: string(*e.Text), Origin: originCompaction})
		}
	case "CondensationRequest", "PauseEvent", "ConversationStateUpdateEvent", "ConversationErrorEvent", "LLMCompletionLogEvent", "TokenEvent":
	default:
		out.skip(openHandsFormat, "", cmp.Or(string(e.Kind), "event without a kind"))
	}
	return nil
}
