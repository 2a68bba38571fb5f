package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Auto is the format name that makes [Read] pick the format by the first lines.
const Auto = "auto"

// ErrUnknownFormat means that no format has the given name, or that none fits the first
// lines.
var ErrUnknownFormat = errors.New("unknown transcript format")

// Format is a way in which agents record their conversations.
type Format struct {
	Name string
	Doc  string // one line for help texts
	// Native means that the agent itself writes this format: what is in it was never looked at before.
	Native bool
	// Detect reports whether a line is certainly of this format. If it could be of several,
	// all of them decline and the next line decides.
	Detect func(line []byte) bool

	converter func(name string) converter
}

// converter turns the values of one recording into items, in order.
type converter interface {
	// value adds the items of one JSON value. If the value as a whole can't be used, it
	// adds nothing and returns an error.
	value(out *batch, raw []byte) error
	// refuse adds the refusal of a line at the current place.
	refuse(out *batch, err error)
	// end adds the items held back.
	end(out *batch)
}

var formats = []Format{
	{
		Name: "neutral", Doc: "JSON lines with kind and conversation_id, of any agent",
		Detect: func(line []byte) bool {
			p := probeOf(line)
			return p.Kind != "" && p.ConversationID != ""
		},
		converter: func(string) converter { return neutral{} },
	},
	{
		Name: FormatCloudEvents, Doc: "JSON lines of CloudEvents, as an export writes them",
		Detect: func(line []byte) bool {
			p := probeOf(line)
			return p.SpecVersion != "" && p.Type != "" && p.Source != ""
		},
		converter: func(string) converter { return cloudEvents{} },
	},
	{
		Name: claudeCodeFormat, Native: true, Doc: "Claude Code's own transcripts, ~/.claude/projects/<project>/<session>.jsonl",
		Detect: func(line []byte) bool {
			p := probeOf(line)
			return p.Type != "" && (p.SessionID != "" || p.UUID != "" || p.LeafUUID != "" || p.MessageID != "")
		},
		converter: newClaudeCode,
	},
	{
		Name: codexFormat, Native: true, Doc: "Codex's own rollouts, ~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl",
		Detect: func(line []byte) bool {
			p := probeOf(line)
			return len(p.Payload) > 0 && p.Payload[0] == '{' && p.Timestamp != "" && codexTypes[string(p.Type)]
		},
		converter: newCodex,
	},
	{
		Name: piFormat, Native: true, Doc: "sessions of pi and OpenClaw, ~/.pi/agent/sessions/--<folder>--/<time>_<session>.jsonl",
		Detect: func(line []byte) bool {
			p := probeOf(line)
			return p.Type == "session" && p.ID != "" && p.Timestamp != "" && p.SessionID == ""
		},
		converter: newPi,
	},
}

// Formats lists the names of the formats in the order in which [Auto] tries them.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	return names
}

// IsNative reports whether an agent itself writes the format of this name, see [Format].
func IsNative(name string) bool {
	return slices.ContainsFunc(formats, func(f Format) bool { return f.Name == name && f.Native })
}

// FormatCloudEvents is the name of the format in which events are copied from a log, unchanged.
const FormatCloudEvents = "cloudevents"

func formatNamed(name string) (*Format, error) {
	for i := range formats {
		if formats[i].Name == name {
			return &formats[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %q, known are %s, %s", ErrUnknownFormat, name, Auto, strings.Join(Formats(), ", "))
}

func detect(line []byte) *Format {
	for i := range formats {
		if formats[i].Detect(line) {
			return &formats[i]
		}
	}
	return nil
}

// codexTypes are the types of lines by which a rollout is recognized.
var codexTypes = map[string]bool{
	"session_meta": true, "response_item": true, "event_msg": true, "turn_context": true, "compacted": true,
}

// probe holds the members that tell formats apart.
type probe struct {
	Kind           text            `json:"kind"`
	ConversationID text            `json:"conversation_id"`
	SpecVersion    text            `json:"specversion"`
	Source         text            `json:"source"`
	Type           text            `json:"type"`
	ID             text            `json:"id"`
	SessionID      text            `json:"sessionId"`
	UUID           text            `json:"uuid"`
	LeafUUID       text            `json:"leafUuid"`
	MessageID      text            `json:"messageId"`
	Timestamp      text            `json:"timestamp"`
	Payload        json.RawMessage `json:"payload"`
}

// probeOf decodes the first value of a line; a line can hold more than one.
func probeOf(line []byte) (p probe) {
	if json.NewDecoder(bytes.NewReader(line)).Decode(&p) != nil {
		return probe{}
	}
	return p
}
