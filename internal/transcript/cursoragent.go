package transcript

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"mneme.dev/mneme/events"
)

// cursorAgent reads the database that the program cursor-agent keeps for each chat. A message is a blob of JSON under the hash
// of its text, and so final. The newest state is a blob of protobuf, which lists the messages that the model sees; those that a
// compaction took away are in archives.
type cursorAgent struct {
	path  string
	about struct {
		ID      text `json:"agentId"`
		Root    text `json:"latestRootBlobId"`
		Name    text `json:"name"`
		Created text `json:"createdAt"`
		Model   text `json:"lastUsedModel"`
		Folder  text `json:"workspacePath"`
	}
}

// Numbers of fields in the state and in an archive.
const (
	cursorMessages        protowire.Number = 1
	cursorArchive         protowire.Number = 11
	cursorArchives        protowire.Number = 13
	cursorArchivedSummary protowire.Number = 4
)

func (c *cursorAgent) sessions(ctx context.Context, db *sql.DB, _ int64) ([]stored, error) {
	var value string
	switch err := db.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = '0'").Scan(&value); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil // nothing was said yet
	case err != nil:
		return nil, err
	}
	raw := []byte(value)
	if plain, err := hex.DecodeString(value); err == nil {
		raw = plain
	}
	if err := json.Unmarshal(raw, &c.about); err != nil {
		return nil, fmt.Errorf("meta: %s", reason(err))
	}
	s := stored{id: string(c.about.ID), folder: string(c.about.Folder), created: cursorMilliseconds(c.about.Created)}
	if s.id == "" {
		return nil, errors.New("meta: agentId: is missing")
	}
	if name := string(c.about.Name); name != "New Agent" {
		s.title = name
	}
	c.beside(&s)
	s.changed = s.created
	return []stored{s}, nil
}

// beside adds what the file meta.json beside the database says.
func (c *cursorAgent) beside(s *stored) {
	var meta struct {
		Title  text `json:"title"`
		Folder text `json:"cwd"`
	}
	if !readBeside(filepath.Join(filepath.Dir(c.path), "meta.json"), &meta) {
		return
	}
	s.title, s.folder = cmp.Or(string(meta.Title), s.title), cmp.Or(s.folder, string(meta.Folder))
}

// cursorMessage is a message of the model's history.
type cursorMessage struct {
	Role    text        `json:"role"`
	Content cursorSaids `json:"content"`
	Created text        `json:"createdAt"`
	Options struct {
		Cursor struct {
			Model text `json:"modelName"`
		} `json:"cursor"`
	} `json:"providerOptions"`
}

// cursorSaids is a list of parts, or a text.
type cursorSaids []cursorSaid

type cursorSaid struct {
	Type      text            `json:"type"`
	Text      text            `json:"text"`
	ID        text            `json:"toolCallId"`
	Tool      text            `json:"toolName"`
	Arguments json.RawMessage `json:"args"`
	Result    json.RawMessage `json:"result"`
	Failed    *bool           `json:"isError"`
}

func (c *cursorSaids) UnmarshalJSON(raw []byte) error {
	*c = nil
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]cursorSaid)(c))
	}
	var only text
	err := only.UnmarshalJSON(raw)
	*c = cursorSaids{{Type: "text", Text: only}}
	return err
}

func (c *cursorAgent) session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error {
	lists, summaries, err := c.lists(ctx, tx)
	if err != nil {
		return err
	}
	t := &talk{
		id: cursorPrefix + s.id, source: "import/cursor", began: milliseconds(s.created), scoped: true,
		start: events.ConversationStarted{Agent: "Cursor", Model: cursorModel(c.about.Model), Cwd: s.folder},
	}
	seen := map[string]int{}
	for _, list := range lists {
		here := map[string]int{} // the lists overlap, but in each a message may be there twice because it was said twice
		for _, blob := range list {
			if here[blob]++; here[blob] <= seen[blob] {
				continue
			}
			seen[blob] = here[blob]
			out.line++
			id := t.id + ":" + blob[:min(len(blob), 16)]
			if here[blob] > 1 {
				id += ":" + strconv.Itoa(here[blob])
			}
			raw, err := c.blob(ctx, tx, blob)
			if err != nil {
				return err
			}
			var m cursorMessage
			if err := json.Unmarshal(raw, &m); err != nil {
				out.refuse(fmt.Errorf("blob %s: %s", blob, reason(err)))
				continue
			}
			cursorSay(out, t, id, summaries[blob], &m)
		}
	}
	t.titled(out, s.title)
	return nil
}

// lists returns the blobs of the messages in archives, the oldest archive first, and of those that the model sees, and which of
// them are summaries of a compaction.
func (c *cursorAgent) lists(ctx context.Context, tx *sql.Tx) (lists [][]string, summaries map[string]bool, err error) {
	if c.about.Root == "" {
		return nil, nil, nil
	}
	state, err := c.fields(ctx, tx, string(c.about.Root))
	if err != nil {
		return nil, nil, err
	}
	summaries = map[string]bool{}
	for _, archive := range append(state[cursorArchives], state[cursorArchive]...) {
		fields, err := c.fields(ctx, tx, archive)
		if err != nil {
			return nil, nil, err
		}
		lists = append(lists, fields[cursorMessages])
		for _, summary := range fields[cursorArchivedSummary] {
			summaries[summary] = true
		}
	}
	return append(lists, state[cursorMessages]), summaries, nil
}

// fields returns the fields of a blob of protobuf that are bytes, in hex: those of a hash name another blob.
func (c *cursorAgent) fields(ctx context.Context, tx *sql.Tx, blob string) (map[protowire.Number][]string, error) {
	raw, err := c.blob(ctx, tx, blob)
	if err != nil {
		return nil, err
	}
	fields := map[protowire.Number][]string{}
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return nil, fmt.Errorf("blob %s: %w", blob, protowire.ParseError(n))
		}
		value := raw[n:]
		size := protowire.ConsumeFieldValue(number, kind, value)
		if size < 0 {
			return nil, fmt.Errorf("blob %s: %w", blob, protowire.ParseError(size))
		}
		if kind == protowire.BytesType {
			bytes, _ := protowire.ConsumeBytes(value)
			if len(bytes) == 32 {
				fields[number] = append(fields[number], hex.EncodeToString(bytes))
			}
		}
		raw = value[size:]
	}
	return fields, nil
}

func (c *cursorAgent) blob(ctx context.Context, tx *sql.Tx, id string) (raw []byte, err error) {
	err = tx.QueryRowContext(ctx, "SELECT CASE WHEN octet_length(data) <= ? THEN CAST(data AS BLOB) ELSE x'' END FROM blobs WHERE id = ?", MaxDocumentBytes, id).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("blob %s is missing", id)
	}
	return raw, err
}

var (
	cursorQuery = regexp.MustCompile(`(?s)<user_query>\s*(.*?)\s*</user_query>`)
	cursorExit  = regexp.MustCompile(`^Exit code: (\d+)`)
)

// cursorSay adds a message. What the program tells the model about the user's machine is left out.
func cursorSay(out *batch, t *talk, id string, summary bool, m *cursorMessage) {
	at := cursorAt(m.Created)
	var texts, thoughts []string
	for i := range m.Content {
		switch p := &m.Content[i]; p.Type {
		case "text":
			texts = append(texts, string(p.Text))
		case "reasoning", "thinking":
			thoughts = append(thoughts, string(p.Text))
		case "image", "file":
			texts = append(texts, "["+string(p.Type)+"]")
		case "tool-call", "tool-result", "redacted-reasoning":
		default:
			out.skip(cursorFormat, "", "part of type "+string(p.Type))
		}
	}
	content := strings.Join(texts, "\n")
	switch asked := cursorQuery.FindAllStringSubmatch(content, -1); {
	case summary:
		t.say(out, id, at, &events.MessageCreated{Role: "system", Content: content, Origin: originCompaction})
	case m.Role == "user" && len(asked) > 0:
		t.say(out, id, at, &events.MessageCreated{Role: "user", Content: asked[len(asked)-1][1]})
	case m.Role == "user" && strings.HasPrefix(content, "<user_info>"), m.Role == "system":
	case m.Role == "user":
		t.say(out, id, at, &events.MessageCreated{Role: "user", Content: content})
	case m.Role == "assistant":
		t.say(out, id, at, &events.MessageCreated{Role: "assistant", Content: content, Reasoning: strings.Join(thoughts, "\n"), Model: cursorModel(m.Options.Cursor.Model)})
	case m.Role != "tool":
		out.skip(cursorFormat, "", messageOf(string(m.Role)))
		return
	}
	for i := range m.Content {
		p := &m.Content[i]
		call := strings.ReplaceAll(cmp.Or(string(p.ID), id+":c"+strconv.Itoa(i+1)), "\n", ".") // some are two ids on two lines
		switch {
		case p.Type == "tool-call" && m.Role == "assistant":
			t.call(out, call, at, id, cmp.Or(string(p.Tool), "unknown"), p.Arguments)
		case p.Type == "tool-result" && p.ID != "":
			result := unquoted(or(p.Result, `""`))
			success := cursorSuccess(result, p.Failed)
			t.answer(out, call, at, result, success)
		}
	}
}

// cursorSuccess reports whether a call succeeded, nil if that is not known.
func cursorSuccess(result string, failed *bool) *bool {
	var success bool
	status := cursorExit.FindStringSubmatch(result)
	switch {
	case failed != nil:
		success = !*failed
	case status != nil:
		success = status[1] == "0"
	default:
		return nil
	}
	return &success
}
