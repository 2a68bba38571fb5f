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
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	hermesFormat = "hermes"
	hermesPrefix = "hermes:"
	// hermesJSON begins content that is a list of parts.
	hermesJSON = "\x00json:"
	// hermesBurst is the longest time, in seconds, between two rows that a compaction wrote in one go. They are a
	// microsecond apart, and a float64 holds the time to a quarter of one.
	hermesBurst = 2e-6
)

var hermesTables = []map[string][]string{
	{"sessions": {"id", "source", "started_at", "parent_session_id", "model_config"}, "messages": {"id", "session_id", "role", "content", "tool_calls", "timestamp"}},
}

// Texts with which a message begins that nobody has said: a summary, which any role may have, and what the program puts in.
var (
	hermesSummaries = []string{"[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:"}
	hermesPut       = []string{
		"[System: ", "[System note: ", "[Your active task list was preserved across context compression]",
		"[IMPORTANT: Background process ", "[IMPORTANT: MCP servers have been reloaded.", "[ASYNC DELEGATION ",
	}
)

// hermesStore reads the database of Hermes Agent. A row is final, but a compaction writes what the model still sees once
// more, and a session that continues or leaves another one begins with a copy of it.
type hermesStore struct {
	columns map[string]string // how columns are selected that older databases lack
}

func newHermesStore(string) store { return &hermesStore{} }

// hermesRow is a message in the database.
type hermesRow struct {
	role, content, thoughts string
	calls                   []toolCall
	callID                  string // of the result of a tool
	seconds                 float64
	err                     error

	id   string // of its event, "" if it is a copy
	copy bool   // of an earlier row of its session
}

// key is the same for a row and its copies. A compaction shortens results and arguments in its copies.
func (r *hermesRow) key() string {
	switch {
	case r.role == "tool":
		return "tool\x00" + r.callID
	case len(r.calls) > 0:
		return "calls\x00" + string(r.calls[0].ID) + "\x00" + r.content
	}
	return r.role + "\x00" + r.content
}

func (r *hermesRow) isSummary() bool { return beginsWithAny(r.content, hermesSummaries) }

func beginsWithAny(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

func (h *hermesStore) sessions(ctx context.Context, db *sql.DB, since int64) (_ []stored, err error) {
	h.columns = map[string]string{}
	for _, column := range [][2]string{{"sessions", "cwd"}, {"sessions", "title"}, {"sessions", "model"}, {"messages", "reasoning"}, {"messages", "reasoning_content"}} {
		if h.columns[column[1]], err = columnOr(ctx, db, column[0], column[1], "''"); err != nil {
			return nil, err
		}
	}
	folder := h.columns["cwd"]
	if folder != "''" { // a subagent or a branch works where its parent does, and its row may not say so
		folder = `coalesce((WITH RECURSIVE up (cwd, parent, n) AS (SELECT s.cwd, s.parent_session_id, 0 UNION ALL
				SELECT p.cwd, p.parent_session_id, n + 1 FROM up JOIN sessions p ON p.id = up.parent WHERE n < 100)
			SELECT cwd FROM up WHERE cwd <> '' ORDER BY n LIMIT 1), '')`
	}
	return changedSince(ctx, db, since, `SELECT id, `+folder+`, coalesce(parent_session_id, ''), `+h.columns["title"]+`, CAST(started_at * 1000 AS INTEGER) AS created,
			CAST(1000 * max(started_at, coalesce((SELECT max(m.timestamp) FROM messages m WHERE m.session_id = s.id), 0)) AS INTEGER) AS changed FROM sessions s`,
		func(s *stored) []any { return []any{&s.id, &s.folder, &s.parent, &s.title, &s.created, &s.changed} })
}

// lineage says how a session began.
type lineage struct {
	model     string
	branch    bool // with all that its parent, which has none itself, had said: the user branched off
	continues bool // with what a compaction kept of its parent
}

func (h *hermesStore) lineage(ctx context.Context, tx *sql.Tx, s stored) (l lineage, err error) {
	err = tx.QueryRowContext(ctx, `SELECT `+h.columns["model"]+`, marked AND branches AND p_parent = '', marked AND NOT branches AND ended = 'compression' FROM (
			SELECT s.*, p.id IS NOT NULL AND s.source <> 'subagent' AND coalesce(s.model_config, '') NOT LIKE '%"_delegate_from"%' AS marked,
				coalesce(s.model_config, '') LIKE '%"_branched_from"%' AS branches, coalesce(p.parent_session_id, '') AS p_parent, coalesce(p.end_reason, '') AS ended
			FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_session_id WHERE s.id = ?)`, s.id).Scan(&l.model, &l.branch, &l.continues)
	return l, err
}

// rows returns the messages of a session. It names them by what they say, because an agent that edits a history deletes
// the rows and writes them again.
func (h *hermesStore) rows(ctx context.Context, tx *sql.Tx, session string) (rows []hermesRow, err error) {
	err = query(ctx, tx, func(scan func(...any) error) error {
		var r hermesRow
		var row int64
		var calls []byte
		if err := scan(&row, &r.role, &r.content, &calls, &r.callID, &r.seconds, &r.thoughts); err != nil {
			return err
		}
		if list, ok := strings.CutPrefix(r.content, hermesJSON); ok {
			var parts codexTexts
			if r.err = json.Unmarshal([]byte(list), &parts); r.err == nil {
				r.content = parts.join()
			}
		}
		if len(calls) > 0 && r.err == nil {
			r.err = json.Unmarshal(calls, &r.calls)
		}
		if r.err != nil {
			r.err = fmt.Errorf("message %d: %s", row, reason(r.err))
		}
		rows = append(rows, r)
		return nil
	}, `SELECT id, role, coalesce(content, ''), coalesce(tool_calls, ''), coalesce(tool_call_id, ''), timestamp,
			coalesce(nullif(`+h.columns["reasoning"]+`, ''), `+h.columns["reasoning_content"]+`) FROM messages WHERE session_id = ? ORDER BY id`, session)
	if err != nil {
		return nil, err
	}
	seen, times := map[string]float64{}, map[string]int{}
	for i := range rows {
		r := &rows[i]
		at, again := seen[r.key()]
		if r.copy = again && (at == r.seconds || inBurst(rows, i)); r.copy {
			continue
		}
		seen[r.key()] = r.seconds
		sum := sha256.New()
		fmt.Fprintf(sum, "%q %q", r.role, r.content)
		for _, c := range r.calls {
			fmt.Fprintf(sum, " %q %q", c.Function.Name, c.Function.Arguments)
		}
		hash := hex.EncodeToString(sum.Sum(nil)[:8])
		if times[hash]++; times[hash] > 1 {
			hash += ":" + strconv.Itoa(times[hash])
		}
		r.id = hermesPrefix + session + ":" + hash
	}
	return rows, nil
}

// inBurst reports whether a row was written in one go with its neighbor.
func inBurst(rows []hermesRow, i int) bool {
	near := func(j int) bool {
		apart := rows[max(i, j)].seconds - rows[min(i, j)].seconds
		return apart >= 0 && apart < hermesBurst
	}
	return i > 0 && near(i-1) || i+1 < len(rows) && near(i+1)
}

func (h *hermesStore) session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error {
	from, err := h.lineage(ctx, tx, s)
	switch {
	case errors.Is(err, sql.ErrNoRows): // it was deleted since the list was read
		return nil
	case err != nil:
		return err
	}
	rows, err := h.rows(ctx, tx, s.id)
	if err != nil {
		return err
	}
	t := &hermes{
		talk: talk{
			id: hermesPrefix + s.id, source: "import/hermes", began: milliseconds(s.created), scoped: true,
			start: events.ConversationStarted{Agent: "Hermes Agent", Model: from.model, Cwd: s.folder},
		},
		ids: map[string]string{}, calls: map[string]int{},
	}
	if from.branch || from.continues {
		before, err := h.rows(ctx, tx, s.parent)
		if err != nil {
			return err
		}
		last := leaveOut(rows, before)
		if from.branch && last != "" {
			t.start.BranchedFrom = &events.BranchedAt{ConversationID: hermesPrefix + s.parent, MessageID: last}
		}
	}
	for i := range rows {
		out.line++
		switch r := &rows[i]; {
		case r.copy:
		case r.err != nil:
			out.refuse(r.err)
		default:
			t.row(out, r)
		}
	}
	t.titled(out, s.title)
	return nil
}

// leaveOut marks the rows with which a session repeats its parent, and returns the parent's id of the last message among
// them. A summary may be in between.
func leaveOut(rows, parent []hermesRow) (last string) {
	ids := map[string]string{}
	for i := range parent {
		if r := &parent[i]; !r.copy {
			ids[r.key()] = r.id
		}
	}
	for i := range rows {
		r := &rows[i]
		id, there := ids[r.key()]
		switch {
		case there:
			if r.copy = true; r.role != "tool" {
				last = id
			}
		case !r.isSummary():
			return last
		}
	}
	return last
}

// hermes turns the rows of a session into items.
type hermes struct {
	talk
	ids   map[string]string // of the calls, by what the rows call them
	calls map[string]int    // how many calls had that name
}

func (t *hermes) row(out *batch, r *hermesRow) {
	at := milliseconds(int64(r.seconds * 1000))
	said := &events.MessageCreated{Role: r.role, Content: r.content, Reasoning: r.thoughts}
	switch {
	case r.role == "tool":
		t.result(out, r, at)
		return
	case r.role != "user" && r.role != "assistant" && r.role != "system":
		out.skip(hermesFormat, "", messageOf(r.role))
		return
	case r.isSummary():
		said.Role, said.Origin = "system", originCompaction
	case r.role != "assistant" && (r.role == "system" || beginsWithAny(r.content, hermesPut)):
		said.Role, said.Origin = "system", originMeta
	}
	t.say(out, r.id, at, said)
	for i := range r.calls {
		c := &r.calls[i]
		name := cmp.Or(string(c.ID), r.id+":c"+strconv.Itoa(i+1))
		id := name
		if t.calls[name]++; t.calls[name] > 1 { // some models count their calls from 1 in each answer
			id += ":" + strconv.Itoa(t.calls[name])
		}
		t.ids[name] = id
		t.call(out, id, at, r.id, cmp.Or(string(c.Function.Name), "unknown"), c.Function.Arguments)
	}
}

// result adds the result of a tool, whose text is JSON in most cases. That of a shell is an object with its output.
func (t *hermes) result(out *batch, r *hermesRow, at string) {
	var object struct {
		Output   *string         `json:"output"`
		ExitCode *int            `json:"exit_code"`
		Error    json.RawMessage `json:"error"`
		Success  *bool           `json:"success"`
	}
	result, success := r.content, (*bool)(nil)
	if strings.HasPrefix(result, "{") && json.Unmarshal([]byte(result), &object) == nil {
		failed := given(object.Error) != nil && string(object.Error) != `""`
		success = new(!failed && (object.Success == nil || *object.Success) && (object.ExitCode == nil || *object.ExitCode == 0))
		if object.Output != nil && object.ExitCode != nil {
			if result = *object.Output; failed {
				result = strings.TrimPrefix(result+"\n"+unquoted(object.Error), "\n")
			}
		}
	}
	t.answer(out, cmp.Or(t.ids[r.callID], r.callID), at, result, success)
}

// unquoted returns the text of a JSON string, else the JSON.
func unquoted(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(plain(raw))
	}
	return s
}
