// Package ring is the part of a hook for which the agent waits: it reads the event from the agent, hands it
// to the server, and passes the server's answer on. It decides nothing. It imports only the standard
// library, because it starts before each prompt.
//
// A hook never disturbs the agent. Whatever goes wrong, it prints nothing and exits with 0. If the server does not
// answer in time, the news that a transcript has grown goes into a small file, see [Spool], and reaches the server
// with a later event.
package ring

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// Limits of an event.
const (
	MaxInput  = 16 << 20 // bytes that an agent may send; more is ignored
	MaxPrompt = 4_000    // characters of a prompt that the server gets
	maxField  = 4_096    // bytes of any other field
)

// Event is what the server learns of a hook's event. The names are those of Claude Code, which most agents use; see
// [Decode] for the others. Everything else that an agent sends, such as texts and tool results, stays here.
type Event struct {
	Name       string `json:"hook_event_name"`
	Session    string `json:"session_id"`
	Transcript string `json:"transcript_path,omitempty"`
	Folder     string `json:"cwd,omitempty"`
	Source     string `json:"source,omitempty"`   // of SessionStart: startup, resume, clear, compact, fork
	Prompt     string `json:"prompt,omitempty"`   // its beginning
	Subagent   string `json:"agent_id,omitempty"` // only inside of a subagent
	// Previous is the session whose context was compacted, if the agent continues in a new session.
	Previous string `json:"previous_session_id,omitempty"`
	// SubagentTranscript is the file of the subagent that stopped.
	SubagentTranscript string `json:"agent_transcript_path,omitempty"`
}

var errInput = errors.New("the event is not usable")

// Read reads an event of at most [MaxInput] bytes. It ignores members with unexpected types, because agents change
// their events with each version.
func Read(in io.Reader) (Event, error) {
	raw, err := io.ReadAll(io.LimitReader(in, MaxInput+1))
	if err != nil || len(raw) > MaxInput {
		return Event{}, errInput
	}
	return Decode(raw)
}

// names are the names of an event's members, those of Claude Code first, then those that Cursor (conversation_id), Factory
// Droid (calling_session_id) and OpenHands use instead.
var names = [][]string{
	{"hook_event_name", "event_type"},
	{"session_id", "conversation_id"},
	{"transcript_path"},
	{"cwd", "working_dir"},
	{"source"},
	{"prompt", "message"},
	{"agent_id", "calling_session_id"},
	{"previous_session_id"},
	{"agent_transcript_path"},
}

// Decode decodes an event. The error is not nil if it has no name or no session.
func Decode(raw []byte) (e Event, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return e, errInput
	}
	for i, to := range []*string{&e.Name, &e.Session, &e.Transcript, &e.Folder, &e.Source, &e.Prompt, &e.Subagent, &e.Previous, &e.SubagentTranscript} {
		for _, name := range names[i] {
			if json.Unmarshal(members[name], to) != nil || to != &e.Prompt && len(*to) > maxField {
				*to = ""
			}
			if *to != "" {
				break
			}
		}
	}
	if e.Prompt == "" { // Kimi Code sends its parts
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(members["prompt"], &parts) == nil {
			texts := make([]string, len(parts))
			for i, part := range parts {
				texts[i] = part.Text
			}
			e.Prompt = strings.Join(texts, "\n")
		}
	}
	var extra struct { // Hermes Agent
		Prompt   string `json:"user_message"`
		Platform string `json:"platform"`
		Task     string `json:"task_id"`
	}
	if raw := members["extra"]; len(raw) > 0 && json.Unmarshal(raw, &extra) == nil {
		e.Prompt = cmp.Or(e.Prompt, extra.Prompt)
		if extra.Platform == "subagent" && len(extra.Task) <= maxField {
			e.Subagent = cmp.Or(e.Subagent, extra.Task, extra.Platform)
		}
	}
	if e.Folder == "" { // Cursor names the folders that are open
		var roots []string
		if json.Unmarshal(members["workspace_roots"], &roots) == nil && len(roots) > 0 && len(roots[0]) <= maxField {
			e.Folder = roots[0]
		}
	}
	if e.Name == "" || e.Session == "" {
		return e, errInput
	}
	e.Prompt = head(e.Prompt, MaxPrompt)
	return e, nil
}

// head returns the first n characters of a text.
func head(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}

// doorbell is the part of an event that is needed to have its transcript read.
func (e Event) doorbell() Event {
	return Event{Name: e.Name, Session: e.Session, Transcript: e.Transcript, Folder: e.Folder, Subagent: e.Subagent, SubagentTranscript: e.SubagentTranscript}
}
