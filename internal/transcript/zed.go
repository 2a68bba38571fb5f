package transcript

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"mneme.dev/mneme/events"
)

const (
	zedFormat = "zed"
	zedPrefix = "zed:"
	// zedUntitled is the title of a thread until a model has found one.
	zedUntitled = "New Thread"
)

var zedTables = []map[string][]string{{"threads": {"id", "summary", "updated_at", "data_type", "data"}}}

// zed reads the threads of the editor Zed. A thread is a JSON document in a row, which is written anew after each message.
// Its messages are finished, and have no times.
type zed struct{}

func newZedStore(string) store { return zed{} }

func (zed) sessions(ctx context.Context, db *sql.DB, since int64) ([]stored, error) {
	created, err := columnOr(ctx, db, "threads", "created_at", "''")
	if err != nil {
		return nil, err
	}
	return changedSince(ctx, db, since, `SELECT id, summary, coalesce(1000 * unixepoch(`+created+`), 0) AS created, coalesce(1000 * unixepoch(updated_at), 0) + 999 AS changed FROM threads`,
		func(s *stored) []any { return []any{&s.id, &s.title, &s.created, &s.changed} })
}

// zedThread is the document of a thread.
type zedThread struct {
	Version  text              `json:"version"`
	Messages []json.RawMessage `json:"messages"`
	Model    struct {
		Model text `json:"model"`
	} `json:"model"`
	Project struct {
		Worktrees []struct {
			Path text `json:"worktree_path"`
		} `json:"worktree_snapshots"`
	} `json:"initial_project_snapshot"`
}

// zedMessage is a message of version 0.3.0, or with a role one of the versions before.
type zedMessage struct {
	Content []json.RawMessage    `json:"content"`
	Results map[string]zedResult `json:"tool_results"`
}

type zedOldMessage struct {
	Role     text `json:"role"`
	Text     text `json:"text"` // instead of segments in the first version
	Segments []struct {
		Type text `json:"type"`
		Text text `json:"text"`
	} `json:"segments"`
	Calls   []zedCall   `json:"tool_uses"`
	Results []zedResult `json:"tool_results"`
	Hidden  bool        `json:"is_hidden"`
}

type zedCall struct {
	ID    text            `json:"id"`
	Name  text            `json:"name"`
	Input json.RawMessage `json:"input"`
}

type zedResult struct {
	Call    text            `json:"tool_use_id"`
	Failed  bool            `json:"is_error"`
	Content json.RawMessage `json:"content"`
}

// zedSaid is a message of any version.
type zedSaid struct {
	events.MessageCreated
	calls   []zedCall
	results []zedResult
}

// variant returns the name of the only member of an object, and its value; of a text, the text.
func variant(raw json.RawMessage) (name string, value json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &name) == nil {
		return name, nil
	}
	if json.Unmarshal(raw, &members) != nil || len(members) != 1 {
		return "", raw
	}
	name = slices.Collect(maps.Keys(members))[0]
	return name, members[name]
}

func (z zed) session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error {
	columns := map[string]string{}
	for _, column := range []string{"folder_paths", "folder_paths_order"} {
		var err error
		if columns[column], err = columnOr(ctx, tx, "threads", column, "''"); err != nil {
			return err
		}
	}
	var kind, folders, order string
	var data []byte
	err := tx.QueryRowContext(ctx, "SELECT data_type, data, "+columns["folder_paths"]+", "+columns["folder_paths_order"]+" FROM threads WHERE id = ?", s.id).Scan(&kind, &data, &folders, &order)
	switch {
	case errors.Is(err, sql.ErrNoRows): // it was deleted since the list was read
		return nil
	case err != nil:
		return err
	}
	out.line++
	thread, err := zedThreadOf(kind, data)
	if err != nil {
		out.refuse(fmt.Errorf("thread %s: %s", s.id, reason(err)))
		return nil
	}
	t := &zedTalk{
		talk: talk{
			id: zedPrefix + s.id, source: "import/zed", began: milliseconds(s.created), scoped: true,
			start: events.ConversationStarted{Agent: "Zed", Model: string(thread.Model.Model), Cwd: firstFolder(folders, order)},
		},
		ids: map[string]string{}, times: map[string]int{},
	}
	if t.start.Cwd == "" && len(thread.Project.Worktrees) > 0 {
		t.start.Cwd = string(thread.Project.Worktrees[0].Path)
	}
	for i, raw := range thread.Messages {
		said, unknown, err := zedMessageOf(raw)
		switch {
		case err != nil:
			refuseAt(out, "messages", i, err)
			continue
		case unknown != "":
			out.skip(zedFormat, string(thread.Version), unknown)
		}
		t.add(out, said)
	}
	if s.title != zedUntitled {
		t.titled(out, s.title)
	}
	return nil
}

// zedThreadOf reads the document of a thread.
func zedThreadOf(kind string, data []byte) (thread zedThread, err error) {
	switch kind {
	case "json":
	case "zstd":
		packed, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxDocumentBytes))
		if err != nil {
			return thread, err
		}
		defer packed.Close()
		if data, err = packed.DecodeAll(data, nil); err != nil {
			return thread, fmt.Errorf("the compressed data is damaged, or longer than %d bytes: %w", MaxDocumentBytes, err)
		}
	default:
		return thread, fmt.Errorf("data_type: %.64q is unknown", kind)
	}
	return thread, json.Unmarshal(data, &thread)
}

// firstFolder returns the first of the folders that were open. They are sorted; order says where each was before.
func firstFolder(folders, order string) string {
	list := strings.Split(folders, "\n")
	if at := slices.Index(strings.Split(order, ","), "0"); at >= 0 && at < len(list) {
		return list[at]
	}
	return list[0]
}

// zedMessageOf reads a message. unknown names what this version does not know of it.
func zedMessageOf(raw json.RawMessage) (said *zedSaid, unknown string, err error) {
	name, value := variant(raw)
	switch name {
	case "User", "Agent":
		return zedNewMessage(name, value)
	case "Compaction":
		said = &zedSaid{}
		if kind, summary := variant(value); kind == "Summary" {
			said.Role, said.Origin = "system", originCompaction
			err = json.Unmarshal(summary, &said.Content)
		}
		return said, "", err
	case "Resume": // the user let the agent go on
		return &zedSaid{}, "", nil
	case "":
		return zedOldMessageOf(raw)
	}
	return &zedSaid{}, "message " + name, nil
}

func zedNewMessage(side string, raw json.RawMessage) (said *zedSaid, unknown string, err error) {
	var m zedMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, "", err
	}
	said = &zedSaid{MessageCreated: events.MessageCreated{Role: "assistant"}}
	between := "\n"
	if side == "User" { // a prompt is in pieces around what it names with @
		said.Role, between = "user", ""
	}
	var texts, thoughts []string
	for _, part := range m.Content {
		switch name, value := variant(part); name {
		case "Text":
			var s text
			err = json.Unmarshal(value, &s)
			texts = append(texts, string(s))
		case "Thinking":
			var thought struct {
				Text text `json:"text"`
			}
			err = json.Unmarshal(value, &thought)
			thoughts = append(thoughts, string(thought.Text))
		case "Mention":
			texts = append(texts, zedMention(value))
		case "Image":
			texts = append(texts, "[image]")
		case "ToolUse":
			var c zedCall
			err = json.Unmarshal(value, &c)
			said.calls = append(said.calls, c)
		case "RedactedThinking":
		default:
			unknown = "part " + name
		}
		if err != nil {
			return nil, "", err
		}
	}
	said.Content, said.Reasoning = strings.Join(texts, between), strings.Join(thoughts, "\n")
	for _, c := range said.calls {
		if r, ok := m.Results[string(c.ID)]; ok {
			said.results = append(said.results, r)
			delete(m.Results, string(c.ID))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.Results)) {
		said.results = append(said.results, m.Results[id])
	}
	return said, unknown, nil
}

// zedMention returns what a prompt names with @: a file, a thread, an address.
func zedMention(raw json.RawMessage) string {
	var m struct {
		URI json.RawMessage `json:"uri"`
	}
	var at struct {
		AbsPath text `json:"abs_path"`
		Path    text `json:"path"`
		Name    text `json:"name"`
		URL     text `json:"url"`
	}
	_ = json.Unmarshal(raw, &m)
	kind, value := variant(or(m.URI, `""`))
	_ = json.Unmarshal(value, &at)
	return "@" + string(cmp.Or(at.AbsPath, at.Path, at.Name, at.URL, text(strings.ToLower(kind))))
}

func zedOldMessageOf(raw json.RawMessage) (said *zedSaid, unknown string, err error) {
	var m zedOldMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, "", err
	}
	said = &zedSaid{MessageCreated: events.MessageCreated{Role: string(m.Role)}, calls: m.Calls, results: m.Results}
	texts, thoughts := []string{}, []string{}
	if m.Text != "" {
		texts = append(texts, string(m.Text))
	}
	for _, s := range m.Segments {
		switch s.Type {
		case "text":
			texts = append(texts, string(s.Text))
		case "thinking":
			thoughts = append(thoughts, string(s.Text))
		case "RedactedThinking":
		default:
			unknown = "part " + string(s.Type)
		}
	}
	said.Content, said.Reasoning = strings.Join(texts, "\n"), strings.Join(thoughts, "\n")
	switch {
	case m.Role == "user" && m.Hidden:
		said.Origin = originMeta
	case m.Role != "user" && m.Role != "assistant" && m.Role != "system":
		return &zedSaid{}, messageOf(string(m.Role)), nil
	}
	return said, unknown, nil
}

// zedTalk adds the messages of a thread. A message is named by what it says, because a thread that an older version has
// written gets new ids, and an edited prompt removes what followed.
type zedTalk struct {
	talk
	ids   map[string]string // of the calls, by what the thread calls them
	times map[string]int    // how often a message or the id of a call came before
}

func (t *zedTalk) add(out *batch, m *zedSaid) {
	message := ""
	if m.Role != "" && (m.Content != "" || m.Reasoning != "" || len(m.calls) > 0) {
		sum := sha256.New()
		fmt.Fprintf(sum, "%q %q", m.Role, m.Content)
		for _, c := range m.calls {
			fmt.Fprintf(sum, " %q %q", c.ID, c.Name)
		}
		message = t.id + ":" + t.numbered(hex.EncodeToString(sum.Sum(nil)[:8]))
		t.say(out, message, "", &m.MessageCreated)
	}
	for _, c := range m.calls {
		id := t.numbered(string(c.ID)) // some models count their calls from 1 again
		t.ids[string(c.ID)] = id
		t.call(out, id, "", message, string(cmp.Or(c.Name, "unknown")), zedInput(c.Input))
	}
	for _, r := range m.results {
		well := !r.Failed
		t.answer(out, cmp.Or(t.ids[string(r.Call)], string(r.Call)), "", zedText(r.Content), &well)
	}
}

// numbered returns a name, with a number if it was there before.
func (t *zedTalk) numbered(name string) string {
	if t.times[name]++; t.times[name] > 1 {
		name += ":" + strconv.Itoa(t.times[name])
	}
	return name
}

// zedInput returns the arguments of a call. Newer versions say whether they are JSON or a text.
func zedInput(raw json.RawMessage) json.RawMessage {
	var input map[string]json.RawMessage
	if json.Unmarshal(or(raw, "{}"), &input) != nil || len(input) != 2 || input["value"] == nil {
		return raw
	}
	switch string(input["type"]) {
	case `"json"`, `"text"`:
		return input["value"]
	}
	return raw
}

// zedText returns the content of a result: texts and images, of which older versions wrote a single one without a list.
func zedText(raw json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(or(raw, "[]"), &list) != nil {
		list = []json.RawMessage{raw}
	}
	var texts []string
	for _, part := range list {
		var whole, s string
		var typed struct {
			Text *string `json:"text"` // {"Text": …} too
		}
		switch {
		case json.Unmarshal(part, &whole) == nil:
			s = whole
		case json.Unmarshal(part, &typed) == nil && typed.Text != nil:
			s = *typed.Text
		default:
			s = "[image]"
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, "\n")
}
