package transcript

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"mneme.dev/mneme/events"
)

const opencodeFormat = "opencode"

// opencode reads the sessions of opencode and of Kilo, which is based on it: from their database, or from the output of
// opencode export. Rows are changed in place until a message is finished.
type opencode struct {
	prefix, agent string
	second        bool // the tables of version 2
	running       int  // the first item of an answer that may still be written, -1 if there is none
}

func opencodeOf(name string) opencode {
	if strings.HasPrefix(strings.ToLower(filepath.Base(name)), "kilo") {
		return opencode{prefix: "kilo", agent: "Kilo Code"}
	}
	return opencode{prefix: "opencode", agent: "opencode"}
}

func newOpencodeStore(path string) store { o := opencodeOf(path); return &o }

// opencodeTables identify the database; the second set is of version 2.
var opencodeTables = []map[string][]string{
	{"session": {"id", "directory"}, "message": {"id", "session_id", "data"}, "part": {"id", "message_id", "data"}},
	{"session_v2": {"id", "directory"}, "session_message": {"id", "session_id", "type", "seq", "data"}},
}

// opencodeMessage is a message with its parts.
type opencodeMessage struct {
	Info struct {
		ID         text            `json:"id"`
		Role       text            `json:"role"`
		Time       opencodeTime    `json:"time"`
		ModelID    text            `json:"modelID"`
		Tokens     json.RawMessage `json:"tokens"`
		Error      json.RawMessage `json:"error"`
		Summary    json.RawMessage `json:"summary"` // true: the message replaces all before it; an object is about changed files
		Text       text            `json:"text"`    // version 2, as are the next two
		Content    []opencodePart  `json:"content"`
		ModelInUse struct {
			ID      text `json:"id"`
			ModelID text `json:"modelID"`
		} `json:"model"`
	} `json:"info"`
	Parts []opencodePart `json:"parts"`
}

type opencodePart struct {
	ID        text `json:"id"`
	Type      text `json:"type"`
	Text      text `json:"text"`
	Synthetic bool `json:"synthetic"`
	Ignored   bool `json:"ignored"`
	Filename  text `json:"filename"`
	Tool      text `json:"tool"`
	Name      text `json:"name"` // of the tool in version 2
	State     struct {
		Status  text            `json:"status"`
		Input   json.RawMessage `json:"input"`
		Output  text            `json:"output"`
		Content codexTexts      `json:"content"` // version 2
		Error   json.RawMessage `json:"error"`
		Time    opencodeTime    `json:"time"`
		About   exitOf          `json:"metadata"`
	} `json:"state"`
}

// opencodeTime holds times in milliseconds. Some versions wrote them as text.
type opencodeTime struct {
	Created   json.RawMessage `json:"created"`
	Updated   json.RawMessage `json:"updated"`
	Completed json.RawMessage `json:"completed"`
	Start     json.RawMessage `json:"start"`
	End       json.RawMessage `json:"end"`
}

// opencodeAt returns a time as RFC 3339, "" if there is none.
func opencodeAt(raw json.RawMessage) string {
	var ms float64
	var s string
	switch {
	case json.Unmarshal(or(raw, "0"), &ms) == nil:
		return milliseconds(int64(ms))
	case json.Unmarshal(raw, &s) == nil:
		if at, err := parseTime(s); err == nil && !at.IsZero() {
			return s
		}
	}
	return ""
}

func (o *opencode) sessions(ctx context.Context, db *sql.DB, since int64) (_ []stored, err error) {
	tables, changed := "session", "message"
	if there, err := hasColumns(ctx, db, opencodeTables[0]); err != nil {
		return nil, err
	} else if !there {
		o.second, tables, changed = true, "session_v2", "session_message"
	}
	optional := map[string]string{"parent_id": "''", "title": "''", "time_created": "0", "time_updated": "0"}
	for name := range optional {
		if optional[name], err = columnOr(ctx, db, tables, name, optional[name]); err != nil {
			return nil, err
		}
	}
	touched := "0"
	if ok, err := hasColumns(ctx, db, map[string][]string{changed: {"time_updated"}}); err != nil {
		return nil, err
	} else if ok {
		touched = "coalesce((SELECT max(m.time_updated) FROM " + changed + " m WHERE m.session_id = s.id), 0)"
	}
	return changedSince(ctx, db, since, `SELECT s.id, coalesce(s.directory, ''), `+optional["parent_id"]+`, `+optional["title"]+`,
			CAST(`+optional["time_created"]+` AS INTEGER) AS created, max(CAST(`+optional["time_updated"]+` AS INTEGER), `+touched+`) AS changed FROM `+tables+` s`,
		func(s *stored) []any { return []any{&s.id, &s.folder, &s.parent, &s.title, &s.created, &s.changed} })
}

func (o *opencode) session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error {
	statement := `SELECT m.id, m.data, coalesce(p.id, ''), coalesce(p.data, '') FROM message m LEFT JOIN part p ON p.message_id = m.id
		WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.id`
	if o.second {
		statement = `SELECT id, json_set(data, '$.role', type), '', '' FROM session_message WHERE session_id = ? ORDER BY seq`
	}
	t := o.begin(s)
	var now *opencodeMessage
	flush := func() {
		if now != nil {
			o.message(out, t, now)
		}
	}
	err := query(ctx, tx, func(scan func(...any) error) error {
		var id, part string
		var data, content []byte
		if err := scan(&id, &data, &part, &content); err != nil {
			return err
		}
		if now == nil || string(now.Info.ID) != id {
			flush()
			now = &opencodeMessage{}
			out.line++
			if err := json.Unmarshal(data, &now.Info); err != nil {
				out.refuse(errors.New("message " + id + ": " + reason(err)))
				now.Info.Role = ""
			}
			now.Info.ID = text(id)
		}
		if part != "" {
			var p opencodePart
			if err := json.Unmarshal(content, &p); err != nil {
				out.refuse(errors.New("part " + part + ": " + reason(err)))
				return nil
			}
			p.ID = text(part)
			now.Parts = append(now.Parts, p)
		}
		return nil
	}, statement, s.id)
	if err != nil {
		return err
	}
	flush()
	o.end(out)
	titleUnless(out, t, s.title)
	return nil
}

func (o *opencode) begin(s stored) *talk {
	o.running = -1
	return &talk{
		id: o.prefix + ":" + s.id, source: "import/" + o.prefix, began: milliseconds(s.created),
		start: events.ConversationStarted{Agent: o.agent, Cwd: s.folder},
	}
}

// titleUnless adds the title of a session, unless it is the one with which each session begins.
func titleUnless(out *batch, t *talk, title string) {
	if !strings.HasPrefix(title, "New session - ") && !strings.HasPrefix(title, "Child session - ") {
		t.titled(out, title)
	}
}

// message adds a message.
func (o *opencode) message(out *batch, t *talk, m *opencodeMessage) {
	i := &m.Info
	first := len(out.items)
	at := opencodeAt(i.Time.Created)
	parts := append(m.Parts, i.Content...)
	switch i.Role {
	case "user", "synthetic", "system":
		o.prompt(out, t, string(i.ID), at, string(i.Role), string(i.Text), parts)
		return
	case "assistant":
		o.answer(out, t, m, at, parts)
	case "compaction":
		t.say(out, string(i.ID), at, &events.MessageCreated{Role: "system", Content: string(i.Text), Origin: originCompaction})
		return
	case "": // refused
		return
	default:
		out.skip(opencodeFormat, "", messageOf(string(i.Role)))
		return
	}
	// A session has one answer at a time: those before are what they will be, also if the agent was killed.
	o.running = -1
	if given(i.Time.Completed) == nil && given(i.Error) == nil {
		o.running = first
	}
}

// end marks the answer that is not finished, and what comes after it, such as a prompt that waits for its end.
func (o *opencode) end(out *batch) {
	if o.running < 0 {
		return
	}
	out.open(o.running, false)
}

// prompt adds a user's message, and separately what the program put there.
func (o *opencode) prompt(out *batch, t *talk, id, at, role, content string, parts []opencodePart) {
	var said, put []string
	if content != "" {
		said = append(said, content)
	}
	for i := range parts {
		switch p := &parts[i]; {
		case p.Type == "text" && p.Synthetic:
			put = append(put, string(p.Text))
		case p.Type == "text" && !p.Ignored:
			said = append(said, string(p.Text))
		case p.Type == "file":
			said = append(said, "[file]")
		}
	}
	if role != "user" {
		put, said = append(put, said...), nil
	}
	if len(said) > 0 {
		t.say(out, id, at, &events.MessageCreated{Role: "user", Content: strings.Join(said, "\n")})
	}
	if len(put) > 0 {
		t.say(out, id+":put", at, &events.MessageCreated{Role: "system", Content: strings.Join(put, "\n"), Origin: originMeta})
	}
}

func (o *opencode) answer(out *batch, t *talk, m *opencodeMessage, at string, parts []opencodePart) {
	i := &m.Info
	var texts, thoughts []string
	for n := range parts {
		switch p := &parts[n]; p.Type {
		case "text":
			texts = append(texts, string(p.Text))
		case "reasoning":
			if p.Text != "" {
				thoughts = append(thoughts, string(p.Text))
			}
		}
	}
	said := &events.MessageCreated{
		Role: "assistant", Content: strings.Join(texts, "\n"), Reasoning: strings.Join(thoughts, "\n"),
		Model: string(i.ModelID + i.ModelInUse.ModelID), Usage: given(i.Tokens),
	}
	said.Model = cmp.Or(said.Model, string(i.ModelInUse.ID))
	if string(i.Summary) == "true" {
		said.Role, said.Origin = "system", originCompaction
	}
	t.say(out, string(i.ID), at, said)
	for n := range parts {
		switch p := &parts[n]; {
		case p.Type == "tool":
			o.tool(out, t, string(i.ID), at, p)
		case !opencodeParts[p.Type]:
			out.skip(opencodeFormat, "", "part of type "+string(p.Type))
		}
	}
}

// opencodeParts are the known types of parts.
var opencodeParts = map[text]bool{
	"text": true, "reasoning": true, "tool": true, "file": true, "step-start": true, "step-finish": true, "snapshot": true,
	"patch": true, "agent": true, "retry": true, "compaction": true, "subtask": true,
}

// tool adds a call and its result. Because ids of calls recur in other sessions, it uses the id of the part.
func (o *opencode) tool(out *batch, t *talk, message, at string, p *opencodePart) {
	name, id := string(p.Tool+p.Name), string(p.ID)
	if o.second {
		id = message + ":" + id
	}
	if p.State.Status == "pending" { // the model is still writing its arguments
		return
	}
	if began := opencodeAt(p.State.Time.Start); began != "" {
		at = began
	}
	t.call(out, id, at, message, name, p.State.Input)
	if p.State.Status != "completed" && p.State.Status != "error" {
		return
	}
	success := p.State.Status == "completed"
	result := cmp.Or(string(p.State.Output), p.State.Content.join())
	r := &events.ToolReturned{ToolCallID: id, Success: &success, Result: events.JSONResult(quote(result))}
	if success && p.State.About != 0 { // a failure that it calls completed
		success, r.Error = false, result
	} else if !success {
		var plainly string
		if json.Unmarshal(or(p.State.Error, `""`), &plainly) != nil {
			plainly = string(plain(p.State.Error))
		}
		r.Error, r.Result = plainly, events.JSONResult(quote(plainly))
	}
	ended := opencodeAt(p.State.Time.End)
	if began, err := parseTime(at); err == nil && ended != "" && !began.IsZero() {
		r.DurationMS = elapsed(began, ended)
	} else {
		ended = at
	}
	t.event(out, resultPrefix+id, ended, r)
}

// opencodeExport is the output of opencode export for a session.
type opencodeExport struct {
	Info struct {
		ID        text         `json:"id"`
		ParentID  text         `json:"parentID"`
		Directory text         `json:"directory"`
		Title     text         `json:"title"`
		Time      opencodeTime `json:"time"`
	} `json:"info"`
	Messages []json.RawMessage `json:"messages"`
}

// opencodeDocument converts an export.
type opencodeDocument struct{ opencode }

func newOpencode(name string) converter { return &opencodeDocument{opencodeOf(name)} }

func (o *opencodeDocument) end(*batch)                   {} // of the file; a session has ended before
func (o *opencodeDocument) refuse(out *batch, err error) { out.refuse(err) }

func (o *opencodeDocument) value(out *batch, raw []byte) error {
	var x opencodeExport
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if x.Info.ID == "" {
		return errors.New("info.id: is missing")
	}
	t := o.begin(stored{id: string(x.Info.ID), folder: string(x.Info.Directory)})
	t.began = opencodeAt(x.Info.Time.Created)
	eachPart(out, "messages", x.Messages, func(_ int, m *opencodeMessage) error {
		if m.Info.ID == "" {
			return errors.New("info.id: is missing")
		}
		o.message(out, t, m)
		return nil
	})
	o.opencode.end(out)
	titleUnless(out, t, string(x.Info.Title))
	return nil
}
