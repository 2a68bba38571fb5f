package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
		Name: "cloudevents", Doc: "JSON lines of CloudEvents, as an export writes them",
		Detect: func(line []byte) bool {
			p := probeOf(line)
			return p.SpecVersion != "" && p.Type != "" && p.Source != ""
		},
		converter: func(string) converter { return cloudEvents{} },
	},
	{
		Name: "claude-code", Doc: "Claude Code's own transcripts, ~/.claude/projects/<project>/<session>.jsonl",
		Detect: func(line []byte) bool {
			p := probeOf(line)
			return p.Type != "" && (p.SessionID != "" || p.UUID != "" || p.LeafUUID != "" || p.MessageID != "")
		},
		converter: newClaudeCode,
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

// probe holds the members that tell formats apart.
type probe struct {
	Kind           text `json:"kind"`
	ConversationID text `json:"conversation_id"`
	SpecVersion    text `json:"specversion"`
	Source         text `json:"source"`
	Type           text `json:"type"`
	SessionID      text `json:"sessionId"`
	UUID           text `json:"uuid"`
	LeafUUID       text `json:"leafUuid"`
	MessageID      text `json:"messageId"`
}

// probeOf decodes the first value of a line; a line can hold more than one.
func probeOf(line []byte) (p probe) {
	if json.NewDecoder(bytes.NewReader(line)).Decode(&p) != nil {
		return probe{}
	}
	return p
}
