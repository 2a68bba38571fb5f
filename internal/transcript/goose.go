package transcript

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	gooseFormat = "goose"
	goosePrefix = "goose:"
)

var gooseTables = []map[string][]string{
	{"sessions": {"id", "working_dir"}, "messages": {"id", "session_id", "role", "content_json", "created_timestamp"}},
}

// gooseMessage is a message of goose. Up to version 1.9 it is a line of a file.
type gooseMessage struct {
	ID      text          `json:"id"`
	Role    text          `json:"role"`
	Created json.Number   `json:"created"` // Unix seconds
	Content []gooseBlock  `json:"content"`
	About   gooseMetadata `json:"metadata"`
}

// gooseMetadata says who sees a message. After a compaction the agent no longer sees the older ones, and only the agent
// sees the summary.
type gooseMetadata struct {
	User  *bool `json:"userVisible"`
	Agent *bool `json:"agentVisible"`
}

type gooseBlock struct {
	Type     text `json:"type"`
	Text     text `json:"text"`
	Thinking text `json:"thinking"`
	ID       text `json:"id"` // of a toolRequest or a toolResponse
	ToolCall struct {
		Status text `json:"status"`
		Value  struct {
			Name      text            `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"value"`
		Error text `json:"error"`
	} `json:"toolCall"`
	ToolResult struct {
		Status text            `json:"status"`
		Value  json.RawMessage `json:"value"` // a list of blocks, or an object with one as content
		Error  text            `json:"error"`
	} `json:"toolResult"`
}

// gooseResult returns the text of a tool's result, and whether the tool says that it failed.
func gooseResult(raw json.RawMessage) (result string, failed bool) {
	var object struct {
		Content codexTexts `json:"content"`
		IsError bool       `json:"isError"`
	}
	if len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &object) == nil {
		return object.Content.join(), object.IsError
	}
	return outputText(raw), false
}

// goose turns the messages of a session into items.
type goose struct{ talk }

func gooseOf(id, folder, began string) *goose {
	return &goose{talk{
		id: goosePrefix + id, source: "import/goose", began: began, scoped: true,
		start: events.ConversationStarted{Agent: "goose", Cwd: folder},
	}}
}

// message adds a message under the id that it has in its session.
func (g *goose) message(out *batch, id string, m *gooseMessage) error {
	seconds, _ := m.Created.Int64()
	at := milliseconds(seconds * 1000)
	var texts, thoughts []string
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case "text":
			texts = append(texts, string(b.Text))
		case "thinking", "reasoning":
			thoughts = append(thoughts, string(b.Thinking+b.Text))
		case "toolRequest", "frontendToolRequest":
		case "toolResponse":
			success := b.ToolResult.Status != "error"
			result, failed := gooseResult(b.ToolResult.Value)
			success = success && !failed
			g.answer(out, string(b.ID), at, cmp.Or(result, string(b.ToolResult.Error)), &success)
		case "image":
			texts = append(texts, "[image]")
		case "redactedThinking", "toolConfirmationRequest", "systemNotification", "conversationCompacted", "contextLengthExceeded", "summarizationRequested":
		default:
			out.skip(gooseFormat, "", "content of type "+string(b.Type))
		}
	}
	said := &events.MessageCreated{Content: strings.Join(texts, "\n"), Reasoning: strings.Join(thoughts, "\n")}
	hidden := m.About.User != nil && !*m.About.User
	switch m.Role {
	case "user":
		if len(texts) == 0 {
			return nil
		}
		if said.Role = "user"; hidden {
			said.Role, said.Origin = "system", originMeta
		}
	case "assistant":
		if said.Role = "assistant"; hidden {
			said.Role, said.Origin = "system", originCompaction
		}
	case "":
		return errors.New("role: is missing")
	default:
		out.skip(gooseFormat, "", messageOf(string(m.Role)))
		return nil
	}
	g.say(out, id, at, said)
	for i := range m.Content {
		if b := &m.Content[i]; b.Type == "toolRequest" || b.Type == "frontendToolRequest" {
			call := cmp.Or(string(b.ID), id+":c"+strconv.Itoa(i+1))
			g.call(out, call, at, id, cmp.Or(string(b.ToolCall.Value.Name), "unknown"), b.ToolCall.Value.Arguments)
		}
	}
	return nil
}

// gooseStore reads the database.
type gooseStore struct{}

func newGooseStore(string) store { return gooseStore{} }

// epoch is the Unix time of a column in milliseconds. Columns of dates hold texts in the UTC.
func epoch(column string) string {
	return "CAST(coalesce(unixepoch(" + column + "), 0) AS INTEGER) * 1000"
}

func (gooseStore) sessions(ctx context.Context, db *sql.DB, since int64) ([]stored, error) {
	title := "''"
	for _, name := range []string{"description", "name"} { // the older one first
		if ok, err := hasColumns(ctx, db, map[string][]string{"sessions": {name}}); err != nil {
			return nil, err
		} else if ok {
			title = "coalesce(nullif(" + name + ", ''), " + title + ")"
		}
	}
	return changedSince(ctx, db, since, `SELECT id, coalesce(working_dir, ''), `+title+`, `+epoch("created_at")+` AS created, max(`+epoch("updated_at")+`,
			coalesce((SELECT max(m.created_timestamp) FROM messages m WHERE m.session_id = sessions.id), 0) * 1000) AS changed FROM sessions`,
		func(s *stored) []any { return []any{&s.id, &s.folder, &s.title, &s.created, &s.changed} })
}

func (gooseStore) session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error {
	id, err := columnOr(ctx, tx, "messages", "message_id", "''")
	if err != nil {
		return err
	}
	about, err := columnOr(ctx, tx, "messages", "metadata_json", "''")
	if err != nil {
		return err
	}
	g := gooseOf(s.id, s.folder, milliseconds(s.created))
	err = query(ctx, tx, func(scan func(...any) error) error {
		var m gooseMessage
		var row int64
		var id, role, created string
		var content, about []byte
		if err := scan(&row, &id, &role, &content, &created, &about); err != nil {
			return err
		}
		out.line++
		m.Role, m.Created = text(role), json.Number(created)
		err := json.Unmarshal(content, &m.Content)
		if err == nil && len(about) > 0 {
			err = json.Unmarshal(about, &m.About)
		}
		if err == nil {
			err = g.message(out, g.id+":"+cmp.Or(id, strconv.FormatInt(row, 10)), &m)
		}
		if err != nil {
			out.refuse(errors.New("message " + strconv.FormatInt(row, 10) + ": " + reason(err)))
		}
		return nil
	}, "SELECT id, "+id+", role, content_json, created_timestamp, "+about+" FROM messages WHERE session_id = ? ORDER BY id", s.id)
	if err == nil {
		g.titled(out, s.title)
	}
	return err
}

// gooseFile reads the older files: a line about the session, then a message on each line.
type gooseFile struct {
	immediate
	goose  *goose
	stem   string
	places places
}

func newGoose(name string) converter { return &gooseFile{stem: stemOfDocument(name)} }

func (f *gooseFile) value(out *batch, raw []byte) error {
	var head struct {
		ID         text `json:"id"`
		WorkingDir text `json:"working_dir"`
		Role       text `json:"role"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	if head.WorkingDir != "" && head.Role == "" {
		if f.goose == nil { // it is written again when the session gets a description
			f.goose = gooseOf(cmp.Or(f.stem, string(head.ID)), string(head.WorkingDir), "")
		}
		return nil
	}
	if f.goose == nil {
		f.goose = gooseOf(f.stem, "", "")
	}
	var m gooseMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	return f.goose.message(out, f.goose.id+":"+f.places.at(out.line, string(m.ID)), &m)
}
