package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Auto as a format's name makes [Read] choose by the first lines.
const Auto = "auto"

// ErrUnknownFormat says that no format of that name exists, or that none of the
// known ones fits the first lines.
var ErrUnknownFormat = errors.New("unknown transcript format")

// Format is one way in which agents record their conversations.
type Format struct {
	Name string
	Doc  string // one line for help texts
	// Detect tells whether a line is of this format. A line that any format of its
	// family could have is nobody's: the next line is asked.
	Detect func(line []byte) bool

	converter func(name string) converter
}

// converter turns the values of one recording into items, in order.
type converter interface {
	// value adds the items of one JSON value. It returns an error, and has added
	// nothing, if the value as a whole can't be used.
	value(out *batch, raw []byte) error
	// refuse adds the refusal of a line, in its place among the items.
	refuse(out *batch, err error)
	// end adds what was held back.
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

// Formats lists the names of the formats, in the order in which [Auto] asks them.
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

// probe holds the members by which formats are told apart.
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
