package insight

import (
	"time"

	json "github.com/go-json-experiment/json/v1"

	"mneme.dev/mneme/events"
)

// UnknownDay is the day of events whose time is missing or absurd.
const UnknownDay = ""

// dayOf returns the UTC day of an event, such as 2026-03-01, or [UnknownDay].
func dayOf(e *events.Recorded) string {
	if !timed(e) {
		return UnknownDay
	}
	return e.Time.UTC().Format(time.DateOnly)
}

// year2000 and year2100 are the starts of these years, in Unix seconds. Times outside are mistakes.
const year2000, year2100 = 946_684_800, 4_102_444_800

func timed(e *events.Recorded) bool {
	at := e.Time.Unix()
	return at >= year2000 && at < year2100
}

// Limits of the rows of one conversation and day. [Left] counts the rest.
const (
	maxModels   = 16
	maxTools    = 64 // of one model
	maxErrors   = 48
	maxFiles    = 128
	maxCommands = 64
)

// Other is the name under which further models and tools count.
const Other = "(other)"

// Day is what a conversation did on one day.
type Day struct {
	Date    string
	Project string // that of the conversation when the day's last event came
	Agent   string
	Models  map[string]*Model // "" is an unknown model
	Detail  Detail
}

// Model is what a conversation did on one day with one model. Events that name no model count for that of the newest
// answer.
type Model struct {
	Turns   int64 `json:"t,omitempty"` // messages with which a user asked for something
	Steps   int64 `json:"s,omitempty"` // assistant messages
	Chars   int64 `json:"c,omitempty"` // of messages, reasoning, arguments and results
	Tokens  `json:"u,omitzero"`
	NoUsage int64 `json:"n,omitempty"` // steps whose tokens are unknown

	Compactions     int64 `json:"k,omitempty"`
	CompactedSteps  int64 `json:"ks,omitempty"` // steps between the previous compaction, or the beginning, and this one
	CompactedTokens int64 `json:"kt,omitempty"` // tokens that the step before the compaction read

	Reads   int64 `json:"fr,omitempty"`  // of files
	Rereads int64 `json:"frr,omitempty"` // reads of what was read before and not written since
	Writes  int64 `json:"fw,omitempty"`

	FirstChanges int64     `json:"f,omitempty"` // 1 if the conversation wrote its first file on this day
	FirstSeconds Histogram `json:"fs,omitempty"`
	FirstCalls   Histogram `json:"fc,omitempty"`

	Tools map[string]*Calls `json:"x,omitempty"`
}

// Calls are calls of one tool, or runs of one command. Outcomes count on the day when they came.
type Calls struct {
	Count     int64     `json:"n,omitempty"`
	Succeeded int64     `json:"s,omitempty"`
	Failed    int64     `json:"f,omitempty"`
	Refused   int64     `json:"r,omitempty"` // the user did not let them happen; they did not fail
	Untold    int64     `json:"u,omitempty"` // returned without saying whether they succeeded
	MS        Histogram `json:"d,omitempty"` // durations in milliseconds, without those of refused calls
}

// Detail is what only some queries need.
type Detail struct {
	Errors   map[string]map[string]int64 `json:"e,omitempty"` // by tool, then by [Normalise]d text
	Files    map[string]*File            `json:"f,omitempty"` // by path as seen from the conversation's folder
	Commands map[string]*Calls           `json:"c,omitempty"` // as project.Command returns them
	Left     Left                        `json:"l,omitzero"`
}

// File is what a conversation did with a file.
type File struct {
	Reads   int64 `json:"r,omitempty"`
	Rereads int64 `json:"rr,omitempty"`
	Writes  int64 `json:"w,omitempty"`
}

// Left counts what did not fit.
type Left struct {
	Errors   int64 `json:"e,omitempty"` // failed calls
	Files    int64 `json:"f,omitempty"` // accesses
	Commands int64 `json:"c,omitempty"` // runs
	Results  int64 `json:"r,omitempty"` // results of calls that were forgotten, or never came
}

func (d *Day) model(name string) *Model {
	return get(&d.Models, name, maxModels)
}

func (m *Model) tool(name string) *Calls {
	return get(&m.Tools, name, maxTools)
}

// get returns the entry of a name, and makes it if there is room; otherwise that of [Other].
func get[V any](in *map[string]*V, name string, most int) *V {
	if *in == nil {
		*in = map[string]*V{}
	}
	if v := (*in)[name]; v != nil {
		return v
	}
	if len(*in) >= most {
		if v := (*in)[Other]; v != nil {
			return v
		}
		name = Other
	}
	v := new(V)
	(*in)[name] = v
	return v
}

func (d *Detail) file(path string) *File {
	if d.Files[path] == nil && len(d.Files) >= maxFiles {
		d.Left.Files++
		return &File{}
	}
	return get(&d.Files, path, maxFiles+1)
}

func (d *Detail) command(name string) *Calls {
	if d.Commands[name] == nil && len(d.Commands) >= maxCommands {
		return nil
	}
	return get(&d.Commands, name, maxCommands+1)
}

func (d *Detail) failed(tool, text string) {
	n := 0
	for _, list := range d.Errors {
		n += len(list)
	}
	if d.Errors[tool][text] == 0 && n >= maxErrors {
		d.Left.Errors++
		return
	}
	if d.Errors == nil {
		d.Errors = map[string]map[string]int64{}
	}
	if d.Errors[tool] == nil {
		d.Errors[tool] = map[string]int64{}
	}
	d.Errors[tool][text]++
}

// Row is a [Day] as it is stored.
type Row struct {
	Conversation string // its id
	Day          string
	Project      string
	Agent        string
	Counts       string // of Models, JSON
	Detail       string // JSON
}

// Row returns the day as it is stored.
func (d *Day) Row(conversation string) Row {
	return Row{Conversation: conversation, Day: d.Date, Project: d.Project, Agent: d.Agent, Counts: encode(d.Models), Detail: encode(&d.Detail)}
}

// Decode is the inverse of [Day.Row].
func (r *Row) Decode() (*Day, error) {
	d := &Day{Date: r.Day, Project: r.Project, Agent: r.Agent}
	if err := decode(r.Counts, &d.Models); err != nil {
		return nil, err
	}
	return d, decode(r.Detail, &d.Detail)
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // texts and numbers always marshal
		panic(err)
	}
	return string(raw)
}

func decode(text string, v any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), v)
}
