package sqlitestore

import (
	"context"
	"database/sql"
	"errors"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// mentionedBy holds the reads of references by a column: those of a tenant, and those of a
// conversation, newest first.
type mentionedBy struct{ ofTenant, ofConversation string }

var (
	byFile = mentionedBy{
		"SELECT v.id, r.seq, r.file, r.start_line, r.end_line, r.name FROM reference AS r INDEXED BY reference_by_file" +
			" CROSS JOIN conversation AS v ON v.c = r.c WHERE r.tenant = ? AND r.base = ? ORDER BY r.seq DESC LIMIT ?",
		"SELECT r.seq, m.turn, m.message_id, r.file, r.start_line, r.end_line, r.name FROM reference AS r INDEXED BY reference_of_file" +
			" CROSS JOIN message AS m ON m.seq = r.seq WHERE r.c = ? AND r.base = ? AND r.seq <= ? ORDER BY r.seq DESC LIMIT ?",
	}
	bySymbol = mentionedBy{
		"SELECT v.id, r.seq, r.file, r.start_line, r.end_line, r.name FROM reference AS r INDEXED BY reference_by_symbol" +
			" CROSS JOIN conversation AS v ON v.c = r.c WHERE r.tenant = ? AND r.symbol = ? AND r.symbol <> '' ORDER BY r.seq DESC LIMIT ?",
		"SELECT r.seq, m.turn, m.message_id, r.file, r.start_line, r.end_line, r.name FROM reference AS r INDEXED BY reference_of_symbol" +
			" CROSS JOIN message AS m ON m.seq = r.seq WHERE r.c = ? AND r.symbol = ? AND r.symbol <> '' AND r.seq <= ? ORDER BY r.seq DESC LIMIT ?",
	}
)

// by returns the lookup key of a query: its symbol, because symbols are rarer than files, else its
// file.
func by(q graph.CodeQuery) (mentionedBy, string) {
	if q.Name != "" {
		return bySymbol, q.Name
	}
	return byFile, q.Base()
}

// Referring implements graph.CodeReader.
func (g *Graph) Referring(ctx context.Context, tenant string, q graph.CodeQuery) (found graph.Mentions, err error) {
	statements, key := by(q)
	err = g.Snapshot(ctx, func(query Queryer) error {
		found, err = q.Mentions(func(limit int) (list []graph.Mention, err error) {
			rows, err := query(statements.ofTenant, tenant, key, limit)
			return All(rows, err, func(rows *sql.Rows, m *graph.Mention) error {
				return rows.Scan(&m.Conversation, &m.Seq, &m.File, &m.StartLine, &m.EndLine, &m.Name)
			})
		})
		return err
	})
	return found, err
}

// References implements graph.CodeReader.
func (g *Graph) References(ctx context.Context, tenant string, list []graph.Mentioned, q graph.CodeQuery) (found []graph.CodeReferences, err error) {
	statements, code := by(q)
	err = g.Snapshot(ctx, func(query Queryer) error {
		for _, m := range list {
			key, c, err := conversation(query, events.ConversationID{Tenant: tenant, ID: m.ID})
			if errors.Is(err, graph.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			rows, err := query(statements.ofConversation, key, code, min(m.Seq, maxSeq), graph.MentionsEach)
			references, err := All(rows, err, func(rows *sql.Rows, r *graph.CodeReference) error {
				return rows.Scan(&r.Seq, &r.Turn, &r.MessageID, &r.File, &r.StartLine, &r.EndLine, &r.Name)
			})
			if err != nil {
				return err
			}
			found = append(found, graph.CodeReferences{Conversation: c, References: q.NewestReferences(references)})
		}
		return nil
	})
	return found, err
}

const (
	selectAccessing = "SELECT v.id, a.seq, a.path FROM file_access AS a INDEXED BY file_access_by_file CROSS JOIN conversation AS v ON v.c = a.c" +
		" WHERE a.tenant = ? AND a.base = ? AND a.current = 1 ORDER BY a.seq DESC, a.rank DESC LIMIT ?"
	// The index alone shows which conversations they belong to.
	selectAccessesOfFile = "SELECT first.c, a.path, a.kind, a.tool, a.turn, a.seq, a.count FROM (SELECT c, seq, rank FROM file_access INDEXED BY file_access_by_file" +
		" WHERE tenant = ? AND base = ? AND current = 1 ORDER BY seq DESC, rank DESC LIMIT ?) AS first" +
		" CROSS JOIN file_access AS a ON a.c = first.c AND a.seq = first.seq AND a.rank = first.rank" +
		" WHERE first.c IN (SELECT k.value FROM json_each(?) AS k) ORDER BY first.seq DESC, first.rank DESC"
)

// Accessing implements graph.AccessReader.
func (f *Files) Accessing(ctx context.Context, tenant string, q graph.CodeQuery) (found graph.Mentions, err error) {
	if q.Name != "" {
		return found, nil
	}
	err = f.Snapshot(ctx, func(query Queryer) error {
		found, err = q.Mentions(func(limit int) (list []graph.Mention, err error) {
			rows, err := query(selectAccessing, tenant, q.Base(), limit)
			return All(rows, err, func(rows *sql.Rows, m *graph.Mention) error { return rows.Scan(&m.Conversation, &m.Seq, &m.File) })
		})
		return err
	})
	return found, err
}

// Accesses implements graph.AccessReader.
func (f *Files) Accesses(ctx context.Context, tenant string, ids []string, q graph.CodeQuery) (map[string][]graph.FileAccess, error) {
	found, add := q.NewestAccesses()
	if q.Name != "" {
		return found, nil
	}
	return found, f.Snapshot(ctx, func(query Queryer) error {
		keys, known := []int64{}, map[int64]string{}
		for _, id := range ids {
			s, err := filesStates.read(query, events.ConversationID{Tenant: tenant, ID: id})
			if err != nil {
				return err
			}
			if s.Key != 0 {
				keys, known[s.Key] = append(keys, s.Key), id
			}
		}
		rows, err := query(selectAccessesOfFile, tenant, q.Base(), graph.MaxMentions, marshal(keys))
		return Each(rows, err, func(rows *sql.Rows) error {
			var key int64
			var a graph.FileAccess
			err := rows.Scan(&key, &a.Path, &a.Kind, &a.Tool, &a.Turn, &a.Seq, &a.Count)
			add(known[key], a)
			return err
		})
	})
}
