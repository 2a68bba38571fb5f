// Package intake prepares what an agent recorded before it is published: it removes the frames in which mneme
// showed something to the agent (see package frame), and secrets if requested (see package redact).
//
// Subject, source and id of an event stay the same. An event in which nothing is found stays the same
// byte for byte.
package intake

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/redact"
)

// maxCalls bounds the memory for calls of mneme's own tools that have no result yet.
const maxCalls = 10_000

// Cleaner cleans the events of one recording, in their order. It is not safe for concurrent use.
type Cleaner struct {
	// Redact are the rules of what is redacted. Nil redacts nothing.
	Redact *redact.Rules

	own map[[2]string]bool // conversation and id of the calls of mneme's own tools
}

// Clean returns the event to publish, and whether it differs from the given one. The event must be valid, see
// [events.Record]. Types of other projects are never changed.
//
// Frames are removed from messages and results of tools. The event names their contexts in the extension
// [events.ExtensionContexts]. A result that held nothing else, or that one of mneme's own tools returned, becomes a
// short reference. With rules, secrets are replaced in all texts and arguments; the event then has the version of the
// rules in [events.ExtensionRedaction].
//
// It returns an [*events.Invalid] if the changed event breaks a rule of the vocabulary: it has become too large.
func (c *Cleaner) Clean(e events.Event) (events.Event, bool, error) {
	if events.IsForeign(e.Type) || !c.concerns(&e) {
		return e, false, nil
	}
	r, err := events.Record(e)
	if err != nil {
		return e, false, err
	}
	w := work{rules: c.Redact}
	own := false
	switch p := r.Payload.(type) {
	case *events.ToolCalled:
		if isOwn(p.ToolName) {
			c.remember(e.Subject, p.ToolCallID)
		}
	case *events.ToolReturned:
		call := [2]string{e.Subject, p.ToolCallID}
		own = c.own[call]
		delete(c.own, call)
	}
	w.clean(r.Payload, own)
	if !w.changed {
		return e, false, nil
	}
	made, err := events.New(e.Subject, e.Source, e.ID, r.Payload)
	if err != nil {
		return e, false, err
	}
	e.Data, e.DataContentType = made.Data, made.DataContentType
	e.Extensions = maps.Clone(e.Extensions)
	if e.Extensions == nil {
		e.Extensions = map[string]any{}
	}
	if ids := joined(append(strings.Split(e.Extension(events.ExtensionContexts), ","), w.seen...)); ids != "" {
		e.Extensions[events.ExtensionContexts] = ids
	}
	if len(w.found) > 0 {
		e.Extensions[events.ExtensionRedaction] = c.Redact.Version()
	}
	return e, true, nil
}

// concerns reports whether an event has to be decoded.
func (c *Cleaner) concerns(e *events.Event) bool {
	switch {
	case c.Redact != nil || bytes.Contains(e.Data, []byte("mneme")):
		return true
	case e.Type == events.TypeToolReturned:
		return len(c.own) > 0
	}
	return false
}

func (c *Cleaner) remember(conversation, call string) {
	if c.own == nil || len(c.own) >= maxCalls {
		c.own = map[[2]string]bool{}
	}
	c.own[[2]string{conversation, call}] = true
}

// joined returns ids as a list with commas, each once, as many as fit into an extension.
func joined(ids []string) string {
	var list []string
	size := 0
	for _, id := range ids {
		if size += len(id) + 1; size > events.MaxExtensionBytes {
			break
		}
		if id != "" && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return strings.Join(list, ",")
}

// own are the tools whose results are read from the log.
var own = []string{"memory_context", "memory_search", "memory_read", "memory_file_history"}

// isOwn reports whether a tool is one of mneme's own, as agents name those of a server: mcp__mneme__memory_read, mneme.memory_read.
func isOwn(tool string) bool {
	for _, name := range own {
		if server, ok := strings.CutSuffix(tool, name); ok {
			trimmed := strings.TrimRight(server, "_.-:/")
			return trimmed != server && strings.HasSuffix(trimmed, "mneme")
		}
	}
	return false
}

// work is the cleaning of one event.
type work struct {
	rules   *redact.Rules
	seen    []string
	changed bool
	field   string // the field being cleaned
	found   []Finding
}

// Finding is a secret in an event.
type Finding struct {
	Field string `json:"field"` // of the event's data, such as content, arguments or findings; data if that is no object
	Kind  string `json:"kind"`
}

// Find returns the secrets in a payload of any type, also in what [Cleaner.Clean] leaves as it is.
func Find(rules *redact.Rules, p events.Payload) []Finding {
	w := work{rules: rules, field: "data"}
	var raw []byte
	if foreign, ok := p.(*events.Foreign); !ok {
		raw, _ = json.Marshal(p) // a decoded payload never fails
	} else if raw = foreign.Data; !json.Valid(raw) {
		w.redact(string(raw))
		return w.found
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		isName, name := false, ""
		if d.PeekKind() == '"' {
			isName, name = place(d)
		}
		t, err := d.ReadToken()
		if err != nil {
			return w.found // the end
		}
		if t.Kind() == '"' && !isName {
			value := t.String()
			w.field = "data"
			for field := range d.StackPointer().Tokens() {
				w.field = field
				break
			}
			w.member(name, value, w.redact)
		}
	}
}

// clean cleans a payload. own says that it is the result of one of mneme's own tools.
func (w *work) clean(p events.Payload, own bool) {
	switch p := p.(type) {
	case *events.ConversationStarted:
		w.field = "title"
		p.Title = w.redact(p.Title)
	case *events.ConversationUpdated:
		if p.Title != nil {
			w.field = "title"
			p.Title = new(w.redact(*p.Title))
		}
	case *events.MessageCreated:
		w.field = "content"
		p.Content = w.text(p.Content)
		w.field = "reasoning"
		p.Reasoning = w.text(p.Reasoning)
	case *events.ConversationDeleted:
		w.field = "reason"
		p.Reason = w.redact(p.Reason)
	case *events.LessonWithdrawn:
		w.field = "reason"
		p.Reason = w.redact(p.Reason)
	case *events.ToolCalled:
		w.field = "arguments"
		p.Arguments = w.json(p.Arguments, w.redact)
	case *events.ToolReturned:
		w.returned(p, own)
	}
}

// strip removes frames.
func (w *work) strip(s string) string {
	stripped, ids := frame.Strip(s)
	w.changed = w.changed || len(stripped) != len(s)
	w.seen = append(w.seen, ids...)
	return stripped
}

// redact replaces secrets.
func (w *work) redact(s string) string {
	if w.rules == nil {
		return s
	}
	redacted, kinds := w.rules.Text(s)
	for _, kind := range kinds {
		w.changed, w.found = true, append(w.found, Finding{w.field, kind})
	}
	return redacted
}

func (w *work) text(s string) string { return w.redact(w.strip(s)) }

// returned cleans a result.
func (w *work) returned(p *events.ToolReturned, own bool) {
	if own && (p.Success == nil || *p.Success) {
		w.strip(p.Result.Text())
		p.Result, w.changed = events.TextResult(reference(w.seen)), true
		return
	}
	before := len(w.seen)
	w.field = "result"
	cleaned := p.Result
	if cleaned.IsText() {
		cleaned = events.TextResult(w.text(cleaned.Text()))
	} else {
		cleaned = events.JSONResult(w.json([]byte(cleaned.Text()), w.text))
	}
	if len(w.seen) > before && strings.TrimSpace(cleaned.Text()) == "" {
		cleaned = events.TextResult(reference(w.seen))
	}
	w.field = "error"
	p.Result, p.Error = cleaned, w.text(p.Error)
}

// reference replaces what mneme showed.
func reference(ids []string) string {
	if len(ids) == 0 {
		return "[shown by mneme]"
	}
	return "[shown by mneme: context " + strings.Join(ids, ", ") + "]"
}

// json cleans the texts in a JSON value. It returns the same bytes if there is nothing to clean.
func (w *work) json(raw json.RawMessage, clean func(string) string) json.RawMessage {
	if w.rules == nil && !bytes.Contains(raw, []byte("mneme")) {
		return raw
	}
	before := w.changed
	w.changed = false
	defer func() { w.changed = w.changed || before }()
	var out bytes.Buffer
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	e := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		isName, name := false, ""
		if d.PeekKind() == '"' {
			isName, name = place(d)
		}
		t, err := d.ReadToken()
		if err != nil {
			break // the end
		}
		if t.Kind() == '"' && !isName {
			t = jsontext.String(w.member(name, t.String(), clean))
		}
		if err := e.WriteToken(t); err != nil {
			return raw // a decoded value never has such tokens
		}
	}
	if !w.changed {
		return raw
	}
	return bytes.TrimSpace(out.Bytes())
}

// member cleans the value of an object's member, or any other text if name is "".
func (w *work) member(name, value string, clean func(string) string) string {
	if w.rules != nil && name != "" {
		if kind, secret := w.rules.Member(name, value); secret {
			w.changed, w.found = true, append(w.found, Finding{w.field, kind})
			return "[redacted:" + kind + "]"
		}
	}
	return clean(value)
}

// place says whether the decoder is about to read the name of a member, or else to which member the value belongs.
func place(d *jsontext.Decoder) (isName bool, name string) {
	kind, n := d.StackIndex(d.StackDepth())
	if kind != '{' {
		return false, ""
	}
	if n%2 == 0 {
		return true, ""
	}
	return false, d.StackPointer().LastToken()
}
