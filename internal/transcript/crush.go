package transcript

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	crushFormat = "crush"
	crushPrefix = "crush:"
)

var crushTables = []map[string][]string{
	{"sessions": {"id", "title", "created_at", "updated_at"}, "messages": {"id", "session_id", "role", "parts", "created_at", "finished_at"}},
}

// crushPart is a part of a message of Crush.
type crushPart struct {
	Type text `json:"type"`
	Data struct {
		Text       text            `json:"text"`
		Thinking   text            `json:"thinking"`
		ID         text            `json:"id"` // of a tool_call, as are the next three
		Name       text            `json:"name"`
		Input      json.RawMessage `json:"input"`
		Finished   bool            `json:"finished"`
		ToolCallID text            `json:"tool_call_id"` // of a tool_result, as are the next two
		Content    text            `json:"content"`
		IsError    bool            `json:"is_error"`
	} `json:"data"`
}

// crush reads the database that Crush keeps in each project.
type crush struct{ project string }

func newCrushStore(path string) store {
	project := ""
	if absolute, err := filepath.Abs(path); err == nil && filepath.Base(filepath.Dir(absolute)) == ".crush" {
		project = filepath.Dir(filepath.Dir(absolute))
	}
	return &crush{project}
}

// crushTime returns a time in milliseconds. The columns hold seconds or milliseconds, whatever their description says.
func crushTime(n int64) int64 {
	if n < 1e11 {
		return n * 1000
	}
	return n
}

func (c *crush) sessions(ctx context.Context, db *sql.DB, since int64) (list []stored, err error) {
	err = query(ctx, db, func(scan func(...any) error) error {
		s := stored{folder: c.project}
		if err := scan(&s.id, &s.title, &s.created, &s.changed); err != nil {
			return err
		}
		s.created, s.changed = crushTime(s.created), crushTime(s.changed)
		if s.changed >= since {
			list = append(list, s)
		}
		return nil
	}, `SELECT id, coalesce(title, ''), coalesce(created_at, 0), max(coalesce(updated_at, 0),
		coalesce((SELECT max(m.updated_at) FROM messages m WHERE m.session_id = sessions.id), 0)) FROM sessions ORDER BY created_at, id`)
	return list, err
}

func (c *crush) session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error {
	summary := "0"
	if ok, err := hasColumns(ctx, tx, map[string][]string{"messages": {"is_summary_message"}}); err != nil {
		return err
	} else if ok {
		summary = "is_summary_message"
	}
	t := &talk{
		id: crushPrefix + s.id, source: "import/crush", began: milliseconds(s.created), scoped: true,
		start: events.ConversationStarted{Agent: "Crush", Cwd: s.folder},
	}
	last, finished := 0, true // where the items of the last message begin
	err := query(ctx, tx, func(scan func(...any) error) error {
		var id, role, model string
		var parts []byte
		var created, ended int64
		var summary bool
		if err := scan(&id, &role, &parts, &model, &created, &ended, &summary); err != nil {
			return err
		}
		out.line++
		last, finished = len(out.items), role != "assistant" || ended != 0
		var list []crushPart
		if err := json.Unmarshal(parts, &list); err != nil {
			out.refuse(errors.New("message " + id + ": " + reason(err)))
			return nil
		}
		crushMessage(out, t, id, role, model, milliseconds(crushTime(created)), summary, list)
		return nil
	}, `SELECT id, role, parts, coalesce(model, ''), coalesce(created_at, 0), coalesce(finished_at, 0), `+summary+`
		FROM messages WHERE session_id = ? ORDER BY created_at, rowid`, s.id)
	if err != nil {
		return err
	}
	if !finished {
		out.open(last, false)
	}
	t.titled(out, s.title)
	return nil
}

func crushMessage(out *batch, t *talk, id, role, model, at string, summary bool, parts []crushPart) {
	var texts, thoughts []string
	finished := false
	for i := range parts {
		switch p := &parts[i]; p.Type {
		case "text":
			texts = append(texts, string(p.Data.Text))
		case "reasoning":
			if p.Data.Thinking != "" {
				thoughts = append(thoughts, string(p.Data.Thinking))
			}
		case "image_url", "binary":
			texts = append(texts, "[file]")
		case "finish":
			finished = true
		case "tool_call":
		case "tool_result":
			t.answer(out, string(p.Data.ToolCallID), at, string(p.Data.Content), new(!p.Data.IsError))
		default:
			out.skip(crushFormat, "", "part of type "+string(p.Type))
		}
	}
	said := &events.MessageCreated{Role: role, Content: strings.Join(texts, "\n"), Reasoning: strings.Join(thoughts, "\n"), Model: model}
	switch {
	case role == "tool":
		return
	case role != "user" && role != "assistant" && role != "system":
		out.skip(crushFormat, "", messageOf(role))
		return
	case summary:
		said.Role, said.Origin = "system", originCompaction
	case role == "user":
		said.Model = ""
	}
	t.say(out, id, at, said)
	for i := range parts {
		if p := &parts[i]; p.Type == "tool_call" && (p.Data.Finished || finished) {
			t.call(out, string(p.Data.ID), at, id, string(p.Data.Name), p.Data.Input)
		}
	}
}
