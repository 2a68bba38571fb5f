package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	sweAgentFormat = "swe-agent"
	sweAgentSource = "import/swe_agent"
	// sweAgentPrefix and the run and instance of a trajectory make the id of its conversation.
	sweAgentPrefix = "swe_agent:"
)

// trajectory is a file of SWE-agent. It has no ids and no times.
type trajectory struct {
	Steps   []json.RawMessage `json:"trajectory"`
	History []json.RawMessage `json:"history"`
}

// sweStep is one action of the agent and its outcome.
type sweStep struct {
	Action      text     `json:"action"`
	Observation text     `json:"observation"`
	Thought     text     `json:"thought"`
	Response    text     `json:"response"`
	Seconds     *float64 `json:"execution_time"`
}

// sweSaid is a message that the model was shown or wrote.
type sweSaid struct {
	Role    text       `json:"role"`
	Content codexTexts `json:"content"` // a text, or a list of parts
	IsDemo  bool       `json:"is_demo"`
	Action  text       `json:"action"`
	Thought text       `json:"thought"`
}

// sweAgent turns a trajectory into items: the messages before the first step, then the steps.
type sweAgent struct{ talk }

func newSWEAgent(name string) converter {
	instance := stemOfDocument(name)
	run := folderOf(name, 1)
	if run == instance { // newer versions have a folder for each instance
		run = folderOf(name, 2)
	}
	id := sweAgentPrefix + instance
	if run != "" {
		id = sweAgentPrefix + run + "/" + instance
	}
	return &sweAgent{talk{id: id, source: sweAgentSource, start: events.ConversationStarted{Agent: "swe_agent"}}}
}

func (s *sweAgent) value(out *batch, raw []byte) error {
	var t trajectory
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	if t.Steps == nil && t.History == nil {
		return errors.New("trajectory: is missing")
	}
	for i, raw := range t.History {
		var said sweSaid
		if err := json.Unmarshal(raw, &said); err != nil {
			refuseAt(out, "history", i, err)
			continue
		}
		if said.Role == "assistant" {
			if t.Steps == nil { // a demonstration has only a history
				s.played(out, t.History[i:])
			}
			break
		}
		m := &events.MessageCreated{Role: "user", Content: said.Content.join()}
		if said.Role == "system" {
			m.Role = "system"
		}
		if said.IsDemo { // of another task: no turn begins
			m.Role, m.Origin = "system", originMeta
		}
		s.say(out, s.id+":h"+strconv.Itoa(i+1), "", m)
	}
	eachPart(out, "trajectory", t.Steps, func(i int, step *sweStep) error {
		s.step(out, i, step)
		return nil
	})
	return nil
}

// played takes the steps of a trajectory that has only a history: an answer follows each action.
func (s *sweAgent) played(out *batch, history []json.RawMessage) {
	var step *sweStep
	var observed strings.Builder
	n := 0
	flush := func() {
		if step != nil {
			step.Observation = text(observed.String())
			s.step(out, n, step)
			n++
		}
		observed.Reset()
	}
	eachPart(out, "history after the first answer", history, func(_ int, said *sweSaid) error {
		if said.Role == "assistant" {
			flush()
			step = &sweStep{Action: said.Action, Thought: text(cmp.Or(string(said.Thought), said.Content.join()))}
		} else {
			observed.WriteString(said.Content.join())
		}
		return nil
	})
	flush()
}

func (s *sweAgent) step(out *batch, n int, step *sweStep) {
	id := s.id + ":" + strconv.Itoa(n)
	s.say(out, id, "", &events.MessageCreated{Role: "assistant", Content: cmp.Or(string(step.Thought), string(step.Response))})
	command := strings.TrimSpace(string(step.Action))
	if command == "" { // the step has only text
		return
	}
	tool := strings.Fields(command)[0]
	if !sweCommands[tool] {
		tool = "bash"
	}
	call := id + ":call"
	s.call(out, call, "", id, tool, shellArguments(command))
	r := &events.ToolReturned{ToolCallID: call, Result: events.JSONResult(quote(string(step.Observation)))}
	if sweFailed(string(step.Observation)) {
		r.Success, r.Error = new(bool), string(step.Observation)
	}
	if step.Seconds != nil && *step.Seconds >= 0 {
		r.DurationMS = new(math.Round(*step.Seconds * 1e3))
	}
	s.event(out, id+":res", "", r)
}

// sweCommands are SWE-agent's own tools. All other actions are commands of the shell.
var sweCommands = map[string]bool{
	"open": true, "goto": true, "scroll_up": true, "scroll_down": true, "create": true, "edit": true, "insert": true,
	"search_dir": true, "search_file": true, "find_file": true, "submit": true, "exit_cost": true, "exit_context": true,
	"str_replace_editor": true, "view_image": true,
}

// sweFailed reports whether SWE-agent itself says that an action failed. It records no exit codes, so the outcome of
// all other actions is unknown.
func sweFailed(observation string) bool {
	return strings.HasPrefix(observation, "Your proposed edit has introduced new syntax error(s)") ||
		strings.HasSuffix(strings.TrimRight(observation, "\r\n"), "EXECUTION TIMED OUT")
}
