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
	// Native means that the agent itself writes this format, so that nothing has examined its content before.
	Native bool
	// detect reports whether a line, or a document, is certainly of this format. If several formats are possible, all
	// of them decline and the next line decides. A nil detect recognizes nothing: the format is a database, or raw.
	detect func(p *probe) bool
	// raw means that lines are not JSON: the converter gets them unchanged, blank ones too.
	raw bool
	// documents means that a recording can be one JSON value over several lines.
	documents bool
	// files are patterns of the names of recordings in folders, with their last folders if these matter, for names that
	// [Find] does not accept anyway.
	files     []string
	converter func(name string) converter
	// tables are columns by table; a database that has all of one set is of this format. They are used with store.
	tables []map[string][]string
	store  func(path string) store
}

// converter turns the values of one recording into items, in order.
type converter interface {
	// value adds the items of one JSON value, or of a raw line. If the value as a whole can't be used, it
	// adds nothing and returns an error.
	value(out *batch, raw []byte) error
	// refuse adds the refusal of a line at the current place.
	refuse(out *batch, err error)
	// end adds the items held back.
	end(out *batch)
}

var formats = []Format{
	{ // JSON lines with kind and conversation_id, of any agent
		Name: "neutral",
		detect: func(p *probe) bool {
			return p.Kind != "" && p.ConversationID != ""
		},
		converter: func(string) converter { return neutral{} },
	},
	{ // JSON lines of CloudEvents, as an export writes them
		Name: FormatCloudEvents,
		detect: func(p *probe) bool {
			return p.SpecVersion != "" && p.Type != "" && p.Source != ""
		},
		converter: func(string) converter { return cloudEvents{} },
	},
	{ // sessions of Qwen Code, ~/.qwen/projects/<project>/chats/<session>.jsonl
		Name: qwenFormat, Native: true,
		detect:    isQwen,
		converter: newQwen,
	},
	{ // sessions of Kimi Code, ~/.kimi-code/sessions/<folder>/<session>/agents/<agent>/wire.jsonl
		Name: kimiFormat, Native: true,
		detect:    isKimi,
		converter: newKimi,
	},
	{ // sessions of Factory Droid, ~/.factory/sessions/<folder>/<session>.jsonl
		Name: droidFormat, Native: true,
		detect: func(p *probe) bool {
			return !p.list && p.Type == "session_start" && p.ID != ""
		},
		converter: newDroid,
	},
	{ // Claude Code's own transcripts, ~/.claude/projects/<project>/<session>.jsonl
		Name: claudeCodeFormat, Native: true,
		detect: func(p *probe) bool {
			return p.Type != "" && (p.SessionID != "" || p.UUID != "" || p.LeafUUID != "" || p.MessageID != "")
		},
		converter: newClaudeCode,
	},
	{ // Codex's own rollouts, ~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl
		Name: codexFormat, Native: true,
		detect: func(p *probe) bool {
			return len(p.Payload) > 0 && p.Payload[0] == '{' && p.Timestamp != "" && codexTypes[string(p.Type)]
		},
		converter: newCodex,
	},
	{ // sessions of pi and of older versions of OpenClaw, ~/.pi/agent/sessions/--<folder>--/<time>_<session>.jsonl
		Name: piFormat, Native: true,
		detect: func(p *probe) bool {
			return p.Type == "session" && p.ID != "" && p.Timestamp != "" && p.SessionID == ""
		},
		converter: newPi,
	},
	{ // databases of OpenClaw, ~/.openclaw/agents/<agent>/agent/openclaw-agent.sqlite
		Name: openClawFormat, Native: true, files: []string{"openclaw-agent.sqlite"},
		tables: openClawTables, store: newOpenClawStore,
	},
	{ // sessions of Gemini CLI, ~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl
		Name: geminiFormat, Native: true,
		documents: true, files: []string{"chats/session-*.json"},
		detect:    func(p *probe) bool { return !p.list && p.SessionID != "" && p.ProjectHash != "" },
		converter: newGemini,
	},
	{ // tasks of Cline, Roo Code and Kilo Code, <task>/api_conversation_history.json and <session>.messages.json
		Name: clineFormat, Native: true,
		documents: true, files: []string{clineHistory, "*" + clineMessages},
		detect: func(p *probe) bool {
			return p.list && p.base() == clineHistory || !p.list && isList(p.Messages) && strings.HasSuffix(p.base(), clineMessages)
		},
		converter: newCline,
	},
	{ // databases of opencode and Kilo, ~/.local/share/opencode/opencode.db, and what opencode export prints
		Name: opencodeFormat, Native: true,
		documents: true, files: []string{"opencode*.db", "kilo*.db"},
		detect:    func(p *probe) bool { return !p.list && isObject(p.Info) && isList(p.Messages) },
		converter: newOpencode, tables: opencodeTables, store: newOpencodeStore,
	},
	{ // databases of goose, ~/.local/share/goose/sessions/sessions.db, and its older files <session>.jsonl
		Name: gooseFormat, Native: true,
		files:     []string{"sessions/sessions.db"},
		detect:    func(p *probe) bool { return !p.list && p.WorkingDir != "" && p.ID+p.Description != "" && p.Role == "" },
		converter: newGoose, tables: gooseTables, store: newGooseStore,
	},
	{ // databases of Crush, <project>/.crush/crush.db
		Name: crushFormat, Native: true, files: []string{"crush.db"},
		tables: crushTables, store: newCrushStore,
	},
	{ // the database of Hermes Agent, ~/.hermes/state.db
		Name: hermesFormat, Native: true, files: []string{"state.db"},
		tables: hermesTables, store: newHermesStore,
	},
	{ // the database of Zed, ~/.local/share/zed/threads/threads.db
		Name: zedFormat, Native: true, files: []string{"threads/threads.db"},
		tables: zedTables, store: newZedStore,
	},
	{ // databases of Cursor, Cursor/User/globalStorage/state.vscdb in the folder of settings, and of its CLI, ~/.cursor/chats/<folder>/<chat>/store.db
		Name: cursorFormat, Native: true,
		files:  []string{"Cursor/User/globalStorage/state.vscdb", "chats/*/*/store.db"},
		tables: cursorTables, store: newCursorStore,
	},
	{ // sessions of VS Code's chat, User/workspaceStorage/<folder>/chatSessions/<session>.jsonl, and its older .json
		Name: vscodeFormat, Native: true,
		documents: true, files: []string{"chatSessions/*.json", "chatSessions/*.jsonl", "emptyWindowChatSessions/*.json", "emptyWindowChatSessions/*.jsonl"},
		detect: isVSCode, converter: newVSCode,
	},
	{ // sessions of GitHub Copilot CLI, ~/.copilot/session-state/<session>/events.jsonl
		Name: copilotFormat, Native: true,
		detect: func(p *probe) bool {
			return !p.list && isObject(p.Data) && p.Timestamp != "" && strings.Contains(string(p.Type), ".") && p.SpecVersion == ""
		},
		converter: newCopilot,
	},
	{ // sessions of Continue, ~/.continue/sessions/<session>.json
		Name: continueFormat, Native: true,
		documents: true, files: []string{"sessions/????????-????-????-????-????????????.json"},
		detect: func(p *probe) bool {
			return !p.list && p.SessionID != "" && isList(p.History)
		},
		converter: newContinue,
	},
	{ // events of OpenHands, ~/.openhands/conversations/<id>/events/event-<number>-<id>.json
		Name: openHandsFormat, Native: true,
		documents: true, files: []string{"events/event-*.json"},
		detect: func(p *probe) bool {
			return !p.list && p.ID != "" && p.Timestamp != "" && p.Source != "" && openHandsKind.MatchString(string(p.Kind))
		},
		converter: newOpenHands,
	},
	{ // Aider's chat history, <project>/.aider.chat.history.md
		Name: aiderFormat, Native: true, files: []string{".aider.chat.history.md"},
		raw: true, converter: newAider,
	},
	{ // trajectories of SWE-agent, <run>/<instance>.traj
		Name: sweAgentFormat, Native: true,
		documents: true, files: []string{"*.traj", "*.traj.gz"},
		detect: func(p *probe) bool {
			return isList(p.Trajectory) && (isList(p.History) || p.Environment != "") || isList(p.History) && bytes.Contains(p.History, []byte(`"agent"`))
		},
		converter: newSWEAgent,
	},
	{ // messages as programs send them to the APIs of OpenAI, Anthropic and Gemini, a list or one on each line
		Name: messagesFormat, Native: true,
		documents: true, detect: detectMessages, converter: newMessages,
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

// detect returns the format that a line or a document shows, in a file with this name; nil if it does not show one.
func detect(name string, text []byte) *Format {
	if bytes.HasPrefix(text, []byte(aiderStart)) {
		f, _ := formatNamed(aiderFormat)
		return f
	}
	p := probeOf(text)
	if p == nil {
		return nil
	}
	p.name = name
	for i := range formats {
		if f := &formats[i]; f.detect != nil && f.detect(p) {
			return &formats[i]
		}
	}
	return nil
}

// codexTypes are the types of lines by which a rollout is recognized.
var codexTypes = map[string]bool{
	"session_meta": true, "response_item": true, "event_msg": true, "turn_context": true, "compacted": true,
}

// probe holds the members that distinguish formats, of an object or of the first object in a list.
type probe struct {
	name string // of the file
	list bool   // it is a list

	Kind           text            `json:"kind"`
	ConversationID text            `json:"conversation_id"`
	SpecVersion    text            `json:"specversion"`
	Source         text            `json:"source"`
	Type           text            `json:"type"`
	ID             text            `json:"id"`
	SessionID      text            `json:"sessionId"`
	ProjectHash    text            `json:"projectHash"`
	UUID           text            `json:"uuid"`
	LeafUUID       text            `json:"leafUuid"`
	MessageID      text            `json:"messageId"`
	Timestamp      text            `json:"timestamp"`
	Message        json.RawMessage `json:"message"`
	SystemPayload  json.RawMessage `json:"systemPayload"`
	Role           text            `json:"role"`
	Environment    text            `json:"environment"`
	Payload        json.RawMessage `json:"payload"`
	Trajectory     json.RawMessage `json:"trajectory"`
	History        json.RawMessage `json:"history"`
	Messages       json.RawMessage `json:"messages"`
	Info           json.RawMessage `json:"info"`
	Data           json.RawMessage `json:"data"`
	WorkingDir     text            `json:"working_dir"`
	Description    text            `json:"description"`
	Contents       json.RawMessage `json:"contents"`
	Content        json.RawMessage `json:"content"`
	Parts          json.RawMessage `json:"parts"`
	ToolCalls      json.RawMessage `json:"tool_calls"`
	Input          json.RawMessage `json:"input"`
	Model          text            `json:"model"`
	Instructions   text            `json:"instructions"`
	CallID         text            `json:"call_id"`
	Protocol       text            `json:"protocol_version"`
	Value          json.RawMessage `json:"v"`
	Requests       json.RawMessage `json:"requests"`
}

// probeOf decodes the first value of a line; a line can hold more than one. It returns nil if that value is neither an
// object nor a list of objects.
func probeOf(text []byte) *probe {
	p := &probe{list: text[0] == '['}
	d := json.NewDecoder(bytes.NewReader(text))
	if p.list {
		if _, err := d.Token(); err != nil {
			return nil
		}
		if !d.More() {
			return p
		}
	}
	if d.Decode(p) != nil {
		return nil
	}
	return p
}

// base returns the name of the file without its folder and without .gz.
func (p *probe) base() string { return strings.TrimSuffix(folderOf(p.name, 0), ".gz") }

// isList reports whether a member exists and is a JSON array.
func isList(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '[' }

// isObject reports whether a member exists and is a JSON object.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }
