package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// Graph is the read model "graph" in SQLite.
type Graph struct{ *Store[*graph.Unit] }

var _ graph.Store = (*Graph)(nil)

// GraphCodec is the read model "graph".
var GraphCodec = Codec[*graph.Unit]{
	Projection: "graph",
	Schema:     graphSchema,
	// The search index is emptied first, because that needs the bags.
	Delete: append([]string{deleteTitle, deleteWords},
		DeleteFrom("message", "bag", "reference", "tool_call", "tool_result", "version", "summary", "condensed")...),
	Begin: func(t *Tx) Work[*graph.Unit] { return graphTx{t} },
	Hash:  graphHash,
}

// OpenGraph opens or creates a read model for writing, and locks it. It returns [ErrLocked] or
// projection.ErrRebuild, see the package comment.
func OpenGraph(ctx context.Context, path string) (*Graph, error) {
	s, err := Open(ctx, path, GraphCodec)
	if err != nil {
		return nil, err
	}
	return &Graph{s}, nil
}

type graphTx struct{ *Tx }

// Load implements Work.
func (t graphTx) Load(ctx context.Context, list []*events.Recorded) (*graph.Unit, error) {
	u := graph.NewUnit()
	lookups := graph.LookupsOf(list)
	for _, e := range list {
		id := e.Conversation()
		if _, ok := u.States[id]; ok {
			continue
		}
		s, err := t.load(ctx, id)
		if err != nil {
			return nil, err
		}
		u.States[id] = s
		if s.Key != 0 {
			t.Keys[id] = s.Key
		}
		if l := lookups[id]; l != nil && s.Key != 0 {
			if err := t.lookUp(ctx, u, id, s.Key, l); err != nil {
				return nil, err
			}
		}
	}
	return u, nil
}

func (t graphTx) load(ctx context.Context, id events.ConversationID) (*graph.State, error) {
	s := &graph.State{}
	rows, err := t.Query(ctx, selectConversation, id.Tenant, id.ID)
	if err := Each(rows, err, func(rows *sql.Rows) error { return scanConversation(rows, &s.Key, &s.Conversation) }); err != nil || s.Key == 0 {
		return s, err
	}
	var ledger string
	rows, err = t.Query(ctx, "SELECT ledger FROM conversation WHERE c = ?", s.Key)
	if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&ledger) }); err != nil || ledger == "" {
		return s, err
	}
	return s, json.Unmarshal([]byte(ledger), &s.Ledger.Levels)
}

// Save implements Work.
func (t graphTx) Save(ctx context.Context, u *graph.Unit) error {
	for id, s := range u.States {
		if !s.Touched {
			continue
		}
		c, err := t.Key(ctx, id)
		if err != nil {
			return err
		}
		s.Key = c
		if s.Dropped {
			if err := t.Clear(ctx, c); err != nil {
				return err
			}
		}
		_, err = t.Exec(ctx, `INSERT INTO conversation (c, tenant, id, created_at, updated_at, message_count, turn_count, step_count,
			tool_call_count, tool_result_count, summary_count, condensed_count, total_chars, first_seq, last_seq, deleted_seq, ledger) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
			ON CONFLICT (c) DO UPDATE SET created_at = excluded.created_at, updated_at = excluded.updated_at,
			message_count = excluded.message_count, turn_count = excluded.turn_count, step_count = excluded.step_count,
			tool_call_count = excluded.tool_call_count, tool_result_count = excluded.tool_result_count,
			summary_count = excluded.summary_count, condensed_count = excluded.condensed_count, total_chars = excluded.total_chars,
			last_seq = excluded.last_seq, ledger = excluded.ledger`,
			c, id.Tenant, id.ID, s.CreatedAt, s.UpdatedAt, s.MessageCount, s.TurnCount, s.StepCount,
			s.ToolCallCount, s.ToolResultCount, s.SummaryCount, s.CondensedCount, s.TotalChars, s.FirstSeq, s.LastSeq, s.DeletedSeq, marshal(s.Ledger.Levels))
		if err == nil && s.DeletedSeq != 0 { // separate, or every save would write all indexes on deleted_seq
			_, err = t.Exec(ctx, "UPDATE conversation SET deleted_seq = ? WHERE c = ?", s.DeletedSeq, c)
		}
		if err != nil {
			return err
		}
	}
	for _, save := range []func(context.Context, *graph.Unit) error{t.saveVersions, t.saveTitles, t.saveMessages, t.saveBags, t.saveReferences, t.saveCalls, t.saveResults, t.saveSummaries, t.saveCondensed} {
		if err := save(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func (t graphTx) saveVersions(ctx context.Context, u *graph.Unit) error {
	for _, v := range u.Versions {
		d := &v.Row
		if v.State.Ended {
			v.State.Ended = false // ended by the first of its new versions
			if _, err := t.Exec(ctx, "UPDATE version SET ended = ? WHERE c = ? AND ended = 0", d.Seq, v.State.Key); err != nil {
				return err
			}
		}
		_, err := t.Exec(ctx, `INSERT INTO version (c, seq, ended, time, title, tags, status, agent, model, cwd, project, profile, max_context_chars, branched_from)
			VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
			v.State.Key, d.Seq, d.Ended, d.Time, d.Title, marshal(d.Tags), d.Status, d.Agent, d.Model, d.Cwd, d.Project, d.Profile, d.MaxContextChars, marshal(d.BranchedFrom))
		if err != nil {
			return err
		}
	}
	return nil
}

func (t graphTx) saveMessages(ctx context.Context, u *graph.Unit) error {
	_, err := t.Insert(ctx, Insertion{Into: "message (c, " + messageColumns + ")", Width: 25}, len(u.Messages), func(args []any, i int) []any {
		m := &u.Messages[i].Row
		args = appendHead(args, u.Messages[i].State.Key, m.Position, m.Origin)
		args = append(args, m.MessageID, m.Role)
		args = appendBody(args, &m.Content)
		args = appendBody(args, &m.Reasoning)
		return append(args, m.Speaker, m.Session, m.Model, m.Usage, m.Via, m.CumChars, len(m.References))
	})
	return err
}

func (t graphTx) saveBags(ctx context.Context, u *graph.Unit) error {
	bags, err := u.Bags()
	if err != nil {
		return err
	}
	_, err = t.Insert(ctx, Insertion{Into: "bag (seq, c, n, terms, vectors)", Width: 5}, len(bags), func(args []any, i int) []any {
		b := &bags[i].Row
		return append(args, b.Seq, bags[i].State.Key, b.N, b.Terms, b.Vectors)
	})
	if err != nil {
		return err
	}
	return t.saveWords(ctx, bags)
}

func (t graphTx) saveReferences(ctx context.Context, u *graph.Unit) error {
	for _, m := range u.Messages {
		refs := m.Row.References
		_, err := t.Insert(ctx, Insertion{Into: "reference (seq, i, c, file, start_line, end_line, name, tenant, base, symbol)", Width: 10}, len(refs), func(args []any, i int) []any {
			r := refs[i]
			return append(args, m.Row.Seq, i, m.State.Key, r.File, r.StartLine, r.EndLine, r.Name, m.State.ID.Tenant, graph.CodeBase(r.File), graph.CodeName(r))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t graphTx) saveCalls(ctx context.Context, u *graph.Unit) error {
	_, err := t.Insert(ctx, Insertion{Into: "tool_call (c, " + callColumns + ")", Width: 16}, len(u.Calls), func(args []any, i int) []any {
		c := &u.Calls[i].Row
		args = appendHead(args, u.Calls[i].State.Key, c.Position, c.Origin)
		args = append(args, c.ToolCallID, c.MessageID, c.ToolName)
		args = appendBody(args, &c.Arguments)
		return append(args, c.Iteration)
	})
	return err
}

func (t graphTx) saveResults(ctx context.Context, u *graph.Unit) error {
	_, err := t.Insert(ctx, Insertion{Into: "tool_result (c, " + resultColumns + ")", Width: 16}, len(u.Results), func(args []any, i int) []any {
		r := &u.Results[i].Row
		args = appendHead(args, u.Results[i].State.Key, r.Position, r.Origin)
		args = append(args, r.ToolCallID, nullable(r.Success))
		args = appendBody(args, &r.Result)
		return append(args, r.Error, nullable(r.DurationMS))
	})
	return err
}

func appendHead(args []any, c int64, p graph.Position, o graph.Origin) []any {
	return append(args, c, p.Seq, p.N, p.Turn, p.Step, o.EventID, o.Source, o.Time)
}

func appendBody(args []any, b *graph.Body) []any {
	return append(args, b.Text, b.Bytes, b.Chars, b.Hash[:])
}

func nullable[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

// marshal encodes a list or an optional object; an empty one as "".
func marshal(v any) string {
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "null" {
		return ""
	}
	return string(raw)
}
