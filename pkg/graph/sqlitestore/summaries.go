package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Summaries is the read model "summaries" in SQLite.
type Summaries struct{ *Store[*summary.Unit] }

var _ summary.Store = (*Summaries)(nil)

// SummariesCodec is the read model "summaries".
var SummariesCodec = Codec[*summary.Unit]{
	Projection: "summaries",
	Schema:     summariesSchema,
	Delete:     DeleteFrom("mark", "summary"),
	Begin:      func(t *Tx) Work[*summary.Unit] { return summariesTx{t} },
	Hash:       summariesHash,
}

type summariesTx struct{ *Tx }

const takenColumns = "id, seq, level, first, last, first_turn, last_turn, chars, revised"

var summarised = stateTable[summary.Conversation, *summary.Conversation]{
	columns:  []string{"first_seq", "ledger", "turn", "chars", "covered_turn", "covered_chars", "max_context_chars", "profile", "titled", "first_user", "answered"},
	selected: []string{"pending", "uncovered_turns", "untitled"},
	scan: func(c *summary.Conversation, scan func(...any) error) error {
		var ledger string
		if err := scan(&c.FirstSeq, &ledger, &c.Turn, &c.Chars, &c.CoveredTurn, &c.CoveredChars, &c.MaxContextChars, &c.Profile, &c.Titled, &c.FirstUser, &c.Answered); err != nil {
			return err
		}
		return json.Unmarshal([]byte(ledger), &c.Ledger)
	},
	values: func(c *summary.Conversation) []any {
		return []any{
			c.FirstSeq, marshal(c.Ledger), c.Turn, c.Chars, c.CoveredTurn, c.CoveredChars, c.MaxContextChars, clean(c.Profile), c.Titled, c.FirstUser, c.Answered,
			c.Pending(), c.Turn - c.CoveredTurn, c.Untitled(),
		}
	},
}

func scanTaken(rows *sql.Rows, t *summary.Taken, more ...any) error {
	return rows.Scan(append(more, &t.ID, &t.Seq, &t.Level, &t.First, &t.Last, &t.FirstTurn, &t.LastTurn, &t.Chars, &t.Revised)...)
}

// Load implements Work.
func (t summariesTx) Load(ctx context.Context, list []*events.Recorded) (*summary.Unit, error) {
	u := summary.NewUnit()
	if err := summarised.load(ctx, t.Tx, u.States, list); err != nil {
		return nil, err
	}
	return u, t.loadNamed(ctx, u, list)
}

// named is a summary that an event names.
type named struct {
	conversation events.ConversationID
	id           string
}

// loadNamed adds the summaries that summaries name, and what follows their ranges.
func (t summariesTx) loadNamed(ctx context.Context, u *summary.Unit, list []*events.Recorded) error {
	var names []named
	for _, e := range list {
		p, ok := e.Payload.(*events.SummaryWritten)
		id := e.Conversation()
		if !ok || t.Keys[id] == 0 {
			continue
		}
		for _, child := range p.Children {
			names = append(names, named{id, child})
		}
		if p.Supersedes != "" {
			names = append(names, named{id, p.Supersedes})
		}
		if p.Level > 1 {
			continue
		}
		rows, err := t.Query(ctx, "SELECT seq, turn, chars FROM mark WHERE c = ? AND seq > ? ORDER BY seq LIMIT 1", t.Keys[id], p.LastSeq)
		if err := Each(rows, err, func(rows *sql.Rows) error {
			var m summary.Mark
			err := rows.Scan(&m.Seq, &m.Turn, &m.Chars)
			u.LoadedMark(id, p.LastSeq, m)
			return err
		}); err != nil {
			return err
		}
	}
	return t.Lookup(ctx, Selection{takenColumns, "summary", []string{"c", "id"}}, len(names), func(args []any, i int) []any {
		return append(args, t.Keys[names[i].conversation], names[i].id)
	}, func(rows *sql.Rows) error {
		var i int
		var taken summary.Taken
		err := scanTaken(rows, &taken, &i)
		u.Loaded(names[i].conversation, taken.Range)
		return err
	})
}

// Save implements Work.
func (t summariesTx) Save(ctx context.Context, u *summary.Unit) error {
	touched, err := summarised.save(ctx, t.Tx, u.States)
	if err != nil {
		return err
	}
	for _, c := range touched {
		if !c.Trimmed {
			continue
		}
		if _, err := t.Exec(ctx, "DELETE FROM mark WHERE c = ? AND seq <= ?", c.Key, c.Ledger.Last(1)); err != nil {
			return err
		}
	}
	if _, err := t.Insert(ctx, Insertion{Into: "mark (c, seq, turn, chars)", Width: 4}, len(u.Marks), func(args []any, i int) []any {
		m := &u.Marks[i]
		return append(args, m.State.Key, m.Row.Seq, m.Row.Turn, m.Row.Chars)
	}); err != nil {
		return err
	}
	_, err = t.Insert(ctx, Insertion{Into: "summary (c, " + takenColumns + ")", Width: 10}, len(u.Taken), func(args []any, i int) []any {
		s := &u.Taken[i].Row
		return append(args, u.Taken[i].State.Key, s.ID, s.Seq, s.Level, s.First, s.Last, s.FirstTurn, s.LastTurn, s.Chars, s.Revised)
	})
	return err
}

// Conversation implements summary.Reader.
func (s *Summaries) Conversation(ctx context.Context, id events.ConversationID) (c summary.Conversation, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		c, err = summarised.read(q, id)
		return err
	})
	return c, err
}

// Marks implements summary.Reader.
func (s *Summaries) Marks(ctx context.Context, id events.ConversationID, after uint64, limit int) (list []summary.Mark, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		c, err := summarised.read(q, id)
		if err != nil {
			return err
		}
		list, err = marks(q, c.Key, after, limit)
		return err
	})
	return list, err
}

func marks(q Queryer, c int64, after uint64, limit int) (list []summary.Mark, err error) {
	rows, err := q("SELECT seq, turn, chars FROM mark WHERE c = ? AND seq > ? ORDER BY seq LIMIT ?", c, after, limit)
	return All(rows, err, func(rows *sql.Rows, m *summary.Mark) error { return rows.Scan(&m.Seq, &m.Turn, &m.Chars) })
}

// Ranges implements summary.Reader.
func (s *Summaries) Ranges(ctx context.Context, id events.ConversationID, level int, after uint64, limit int) (list []summary.Taken, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		c, err := summarised.read(q, id)
		if err != nil {
			return err
		}
		list, err = taken(q, "c = ? AND level = ? AND last > ? AND revised = 0 ORDER BY last LIMIT ?", c.Key, level, after, limit)
		return err
	})
	return list, err
}

func taken(q Queryer, where string, args ...any) (list []summary.Taken, err error) {
	rows, err := q("SELECT "+takenColumns+" FROM summary WHERE "+where, args...)
	return All(rows, err, func(rows *sql.Rows, t *summary.Taken) error { return scanTaken(rows, t) })
}

// Waiting implements summary.Reader.
func (s *Summaries) Waiting(ctx context.Context, query summary.WaitingQuery) (list []summary.Conversation, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		rows, err := q("SELECT "+summarised.list()+` FROM conversation WHERE (tenant, id) > (?, ?) AND deleted_seq = 0
			AND (pending >= ? OR ? > 0 AND uncovered_turns >= ? OR ? AND untitled) ORDER BY tenant, id LIMIT ?`,
			query.After.Tenant, query.After.ID, query.Pending, query.Turns, query.Turns, query.Untitled, query.Limit)
		list, err = All(rows, err, func(rows *sql.Rows, c *summary.Conversation) error { return summarised.scanRow(rows, c) })
		return err
	})
	return list, err
}

func summariesHash(q Queryer, id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	c, err := summarised.read(q, id)
	if err != nil || c.Key == 0 {
		return h, err
	}
	list, err := marks(q, c.Key, 0, -1)
	if err != nil {
		return h, err
	}
	summaries, err := taken(q, "c = ? ORDER BY seq", c.Key)
	h.LastSeq, h.Hash = c.LastSeq, summary.Hash(c, list, summaries)
	return h, err
}
