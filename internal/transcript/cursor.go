package transcript

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	cursorFormat = "cursor"
	cursorPrefix = "cursor:"
	cursorChats  = "composerData:" // with the id of a chat, the key of its state
	cursorParts  = "bubbleId:"     // with the id of a chat, a colon and its own id, the key of a bubble
	cursorStates = 10              // that a statement reads
)

// cursorTables are those of the editor, and those of the program cursor-agent.
var cursorTables = []map[string][]string{
	{"cursorDiskKV": {"key", "value"}},
	{"blobs": {"id", "data"}, "meta": {"key", "value"}},
}

// cursor reads a database of the editor Cursor or of the program cursor-agent.
type cursor struct {
	path string
	store
}

func newCursorStore(path string) store { return &cursor{path: path} }

func (c *cursor) sessions(ctx context.Context, db *sql.DB, since int64) ([]stored, error) {
	editor, err := hasColumns(ctx, db, cursorTables[0])
	if err != nil {
		return nil, err
	}
	c.store = &cursorAgent{path: c.path}
	if editor {
		c.store = &cursorEditor{}
	}
	return c.store.sessions(ctx, db, since)
}

// cursorEditor reads the database of the editor, which holds JSON under keys. Newer versions have a table of the chats, too.
type cursorEditor struct{}

// cursorHead says what a chat is. It is in the state of the chat or in the table.
type cursorHead struct {
	Name      text `json:"name"`
	Created   text `json:"createdAt"` // milliseconds, as is the next one
	Changed   text `json:"lastUpdatedAt"`
	Workspace struct {
		URI struct {
			Path text `json:"fsPath"`
		} `json:"uri"`
	} `json:"workspaceIdentifier"`
	Repositories []struct {
		Path text `json:"repoPath"`
	} `json:"trackedGitRepos"`
}

// folder returns the folder that was open, "" if it is not known.
func (h *cursorHead) folder() string {
	if path := h.Workspace.URI.Path; path != "" || len(h.Repositories) != 1 {
		return string(path)
	}
	return string(h.Repositories[0].Path)
}

// cursorState is the state of a chat.
type cursorState struct {
	cursorHead
	Status  text   `json:"status"`
	Writing []text `json:"generatingBubbleIds"`
	Order   []struct {
		ID text `json:"bubbleId"`
	} `json:"fullConversationHeadersOnly"`
	Bubbles []json.RawMessage `json:"conversation"` // instead of Order, until 2025
	Model   struct {
		Name text `json:"modelName"`
	} `json:"modelConfig"`
}

// isWriting reports whether the model is answering.
func (s *cursorState) isWriting() bool { return s.Status == "generating" || len(s.Writing) > 0 }

// cursorBubble is a prompt or a piece of an answer: a thought, a text, or a call with its result.
type cursorBubble struct {
	ID      text              `json:"bubbleId"`
	Type    text              `json:"type"`
	Text    text              `json:"text"`
	Created text              `json:"createdAt"`
	Images  []json.RawMessage `json:"images"`
	Folders texts             `json:"workspaceUris"`
	Thought cursorThought     `json:"thinking"`
	Call    *cursorCall       `json:"toolFormerData"`
	Usage   struct {
		Input  int64 `json:"inputTokens"`
		Output int64 `json:"outputTokens"`
	} `json:"tokenCount"`
	Model struct {
		Name text `json:"modelName"`
	} `json:"modelInfo"`
}

// cursorThought is a text, or an object with one.
type cursorThought string

func (c *cursorThought) UnmarshalJSON(raw []byte) error {
	var object struct {
		Text text `json:"text"`
	}
	if raw[0] != '{' {
		return (*text)(c).UnmarshalJSON(raw)
	}
	err := json.Unmarshal(raw, &object)
	*c = cursorThought(object.Text)
	return err
}

// cursorCall is a call. Its arguments are JSON in a string: as the model wrote them, which newer versions leave empty, and
// as the editor has read them.
type cursorCall struct {
	ID       text            `json:"toolCallId"`
	Name     text            `json:"name"`
	Status   text            `json:"status"`
	Written  text            `json:"rawArgs"`
	Read     text            `json:"params"`
	Result   text            `json:"result"`
	Decision text            `json:"userDecision"`
	Error    json.RawMessage `json:"error"`
}

// hasEnded reports whether the call has a result, or never will.
func (c *cursorCall) hasEnded() bool {
	return c.Status == "completed" || c.Status == "error" || c.Status == "cancelled"
}

// arguments returns the arguments of the call.
func (c *cursorCall) arguments() json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Written), &members) != nil || len(members) == 0 {
		return quote(string(c.Read))
	}
	return json.RawMessage(c.Written)
}

// outcome returns the result of a call that has ended, and whether it succeeded. That of a command is an object with its
// output, and that of reading a file one with the text.
func (c *cursorCall) outcome() (result string, success bool) {
	var object struct {
		Output   *string         `json:"output"`
		Contents *string         `json:"contents"`
		Exit     exit            `json:"exitCodeV2"`
		OldExit  exit            `json:"exitCode"`
		Rejected bool            `json:"rejected"`
		Error    json.RawMessage `json:"error"`
	}
	result, success = string(c.Result), c.Status == "completed" && c.Decision != "rejected"
	if strings.HasPrefix(result, "{") && json.Unmarshal([]byte(result), &object) == nil {
		success = success && object.Exit == 0 && object.OldExit == 0 && !object.Rejected && given(object.Error) == nil
		switch {
		case object.Output != nil:
			result = *object.Output
		case object.Contents != nil:
			result = *object.Contents
		}
	}
	if success || strings.TrimSpace(result) != "" {
		return result, success
	}
	return cmp.Or(cursorError(c.Error), string(c.Status)), false
}

// cursorError returns the text of an error, which is JSON, or that in a string.
func cursorError(raw json.RawMessage) string {
	if given(raw) == nil {
		return ""
	}
	said := unquoted(raw)
	var object struct {
		Model text `json:"modelVisibleErrorMessage"`
		User  text `json:"clientVisibleErrorMessage"`
	}
	_ = json.Unmarshal([]byte(said), &object) // it may be a plain text
	return cmp.Or(string(object.Model), string(object.User), said)
}

// cursorMilliseconds returns a time in milliseconds, 0 if the text is no number.
func cursorMilliseconds(n text) int64 {
	ms, _ := strconv.ParseFloat(string(n), 64)
	return int64(ms)
}

// cursorAt returns a time that is RFC 3339, or milliseconds, as RFC 3339.
func cursorAt(at text) string {
	if ms := cursorMilliseconds(at); ms != 0 {
		return milliseconds(ms)
	}
	return string(at)
}

func (c *cursorEditor) sessions(ctx context.Context, db *sql.DB, since int64) (list []stored, err error) {
	last := ""
	row := func(scan func(...any) error) error {
		var s stored
		var raw []byte
		if err := scan(&s.id, &s.created, &s.changed, &raw); err != nil {
			return err
		}
		last = s.id
		var h cursorHead
		_ = json.Unmarshal(raw, &h) // if it is the state, that is read again
		s.folder, s.title = h.folder(), string(h.Name)
		s.created = max(s.created, cursorMilliseconds(h.Created))
		if s.changed = max(s.created, s.changed, cursorMilliseconds(h.Changed)); s.changed >= since {
			list = append(list, s)
		}
		return nil
	}
	listed, err := hasColumns(ctx, db, map[string][]string{"composerHeaders": {"composerId", "createdAt", "lastUpdatedAt", "value"}})
	if err != nil {
		return nil, err
	}
	if listed {
		err = query(ctx, db, row, `SELECT composerId, coalesce(CAST(createdAt AS INTEGER), 0), coalesce(CAST(lastUpdatedAt AS INTEGER), 0), CAST(value AS BLOB) FROM composerHeaders
			WHERE composerId IS NOT NULL AND max(coalesce(CAST(createdAt AS INTEGER), 0), coalesce(CAST(lastUpdatedAt AS INTEGER), 0)) >= ?`, since)
	}
	// The states may be hundreds of megabytes, and the editor waits for a second at most: a statement reads a few.
	for before, more := "", !listed; more && err == nil; more = last != before {
		before = last
		err = query(ctx, db, row, `SELECT substr(key, ?), 0, 0, CASE WHEN octet_length(value) <= ? THEN CAST(value AS BLOB) END FROM cursorDiskKV
			WHERE key > ? AND key < ? ORDER BY key LIMIT ?`, len(cursorChats)+1, MaxDocumentBytes, cursorChats+last, strings.TrimSuffix(cursorChats, ":")+";", cursorStates)
	}
	slices.SortFunc(list, func(a, b stored) int { return cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.id, b.id)) })
	return list, err
}

// read decodes what is under a key. It returns nil if there is nothing.
func (c *cursorEditor) read(ctx context.Context, tx *sql.Tx, key string) (raw []byte, err error) {
	var size int64
	err = tx.QueryRowContext(ctx, "SELECT coalesce(octet_length(value), 0), CASE WHEN octet_length(value) <= ? THEN CAST(value AS BLOB) END FROM cursorDiskKV WHERE key = ?", MaxDocumentBytes, key).Scan(&size, &raw)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err == nil && size > MaxDocumentBytes:
		return nil, &LineError{Reason: fmt.Sprintf("%s: has %d bytes, the limit is %d", key, size, MaxDocumentBytes)}
	}
	return given(raw), err
}

func (c *cursorEditor) session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error {
	var bad *LineError
	var state cursorState
	raw, err := c.read(ctx, tx, cursorChats+s.id)
	if err == nil && raw != nil {
		if why := json.Unmarshal(raw, &state); why != nil {
			err = &LineError{Reason: cursorChats + s.id + ": " + reason(why), Err: why}
		}
	}
	if errors.As(err, &bad) {
		out.refuse(bad)
		return nil
	} else if err != nil {
		return err
	}
	t := &cursorTalk{
		talk: talk{
			id: cursorPrefix + s.id, source: "import/cursor", began: milliseconds(s.created), scoped: true,
			start: events.ConversationStarted{Agent: "Cursor", Model: cursorModel(state.Model.Name), Cwd: cmp.Or(s.folder, state.folder())},
		},
		open: -1,
	}
	n := cmp.Or(len(state.Order), len(state.Bubbles))
	for i := range n {
		out.line++
		var key string
		if len(state.Order) > 0 {
			key = cursorParts + s.id + ":" + string(state.Order[i].ID)
			raw, err = c.read(ctx, tx, key)
		} else {
			key, raw = fmt.Sprintf("%s%s: conversation[%d]", cursorChats, s.id, i), given(state.Bubbles[i])
		}
		var b cursorBubble
		if err == nil && raw != nil {
			if why := json.Unmarshal(raw, &b); why != nil {
				err = &LineError{Line: out.line, Reason: key + ": " + reason(why), Err: why}
			}
		}
		switch {
		case errors.As(err, &bad):
			bad.Line = out.line
			out.refuse(bad)
			err = nil
		case err != nil:
			return err
		case raw != nil:
			t.bubble(out, &b, state.isWriting(), i == n-1)
		}
	}
	for i := range out.items {
		out.items[i].Open = t.open >= 0 && i >= t.open
	}
	t.titled(out, cmp.Or(s.title, string(state.Name)))
	return nil
}

// cursorModel returns the name of a model, "" for the one that the editor chooses.
func cursorModel(name text) string {
	if name == "default" {
		return ""
	}
	return string(name)
}

// cursorTalk turns the bubbles of a chat into items.
type cursorTalk struct {
	talk
	message  string // the id of the last message of the turn's answer, "" if there is none
	thoughts []string
	open     int // the first item that may change, -1 if there is none
}

// bubble adds a bubble. While the model is writing, the last one may change, and so may calls of the turn that have not ended.
func (t *cursorTalk) bubble(out *batch, b *cursorBubble, writing, last bool) {
	if b.ID == "" {
		out.refuse(errors.New("bubbleId: is missing"))
		return
	}
	if t.start.Cwd == "" && len(b.Folders) == 1 {
		t.start.Cwd = continueFolder(string(b.Folders[0]))
	}
	id, at := t.id+":"+string(b.ID), cursorAt(b.Created)
	called := b.Call != nil && b.Call.Name+b.Call.ID != ""
	if b.Type == "1" {
		t.open = -1
	}
	if writing && t.open < 0 && (last && b.Type != "1" || called && !b.Call.hasEnded()) {
		t.open = len(out.items)
	}
	switch b.Type {
	case "1":
		t.message, t.thoughts = "", nil // of an answer that was stopped
		said := []string{string(b.Text)}
		if b.Text == "" {
			said = nil
		}
		for range b.Images {
			said = append(said, "[image]")
		}
		if len(said) > 0 {
			t.say(out, id, at, &events.MessageCreated{Role: "user", Content: strings.Join(said, "\n")})
		}
	case "2":
		if thought := strings.TrimSpace(string(b.Thought)); thought != "" {
			t.thoughts = append(t.thoughts, string(b.Thought))
		}
		if strings.TrimSpace(string(b.Text)) != "" || called && (t.message == "" || len(t.thoughts) > 0) {
			said := &events.MessageCreated{Role: "assistant", Content: string(b.Text), Reasoning: strings.Join(t.thoughts, "\n"), Model: cursorModel(b.Model.Name)}
			if b.Usage.Input+b.Usage.Output > 0 {
				said.Usage, _ = json.Marshal(b.Usage) // numbers alone
			}
			t.message, t.thoughts = id, nil
			t.say(out, id, at, said)
		}
		if called {
			t.called(out, b, at)
		}
	default:
		out.skip(cursorFormat, "", "bubble of type "+string(b.Type))
	}
}

// called adds a call and, if it has ended, its result. The id that the model gave the call may be two on two lines, so the
// bubble's is used.
func (t *cursorTalk) called(out *batch, b *cursorBubble, at string) {
	id := string(b.ID) + ":call"
	t.call(out, id, at, t.message, cmp.Or(string(b.Call.Name), "unknown"), b.Call.arguments())
	if b.Call.hasEnded() {
		result, success := b.Call.outcome()
		t.answer(out, id, at, result, &success)
	}
}
