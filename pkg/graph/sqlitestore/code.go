package sqlitestore

import (
	"context"
	"database/sql"
	"errors"

	"mneme/events"
	"mneme/pkg/graph"
)

// mentionedBy are the reads of references by a column: those of a tenant, and those of a
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

// by is what a query is looked up by: its symbol is rarer than its file.
func by(q graph.CodeQuery) (mentionedBy, string) {
	if q.Name != "" {
		return bySymbol, q.Name
	}
	return byFile, q.Base()
}

// Referring implements graph.CodeReader.
func (g *Graph) Referring(ctx context.Context, tenant string, q graph.CodeQuery) (found graph.Mentions, err error) {
	statements, key := by(q)
	err = g.snapshot(ctx, func(query queryer) error {
		found, err = q.Mentions(func(limit int) (list []graph.Mention, err error) {
			rows, err := query(statements.ofTenant, tenant, key, limit)
			err = each(rows, err, func(rows *sql.Rows) error {
				var m graph.Mention
				err := rows.Scan(&m.Conversation, &m.Seq, &m.File, &m.StartLine, &m.EndLine, &m.Name)
				list = append(list, m)
				return err
			})
			return list, err
		})
		return err
	})
	return found, err
}

// References implements graph.CodeReader.
func (g *Graph) References(ctx context.Context, tenant string, list []graph.Mentioned, q graph.CodeQuery) (found []graph.CodeReferences, err error) {
	statements, code := by(q)
	err = g.snapshot(ctx, func(query queryer) error {
		for _, m := range list {
			key, c, err := conversation(query, events.ConversationID{Tenant: tenant, ID: m.ID})
			if errors.Is(err, graph.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			var references []graph.CodeReference
			rows, err := query(statements.ofConversation, key, code, min(m.Seq, maxSeq), graph.MentionsEach)
			if err := each(rows, err, func(rows *sql.Rows) error {
				var r graph.CodeReference
				err := rows.Scan(&r.Seq, &r.Turn, &r.MessageID, &r.File, &r.StartLine, &r.EndLine, &r.Name)
				references = append(references, r)
				return err
			}); err != nil {
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
	selectAccessesOfFile = "SELECT a.path, a.kind, a.tool, a.turn, a.seq, a.count FROM conversation AS v CROSS JOIN file_access AS a INDEXED BY file_access_of_file ON a.c = v.c" +
		" WHERE v.tenant = ? AND v.id = ? AND a.base = ? AND a.current = 1 AND a.seq <= ? ORDER BY a.seq DESC, a.rank DESC LIMIT ?"
)

// Accessing implements graph.AccessReader.
func (f *Files) Accessing(ctx context.Context, tenant string, q graph.CodeQuery) (found graph.Mentions, err error) {
	if q.Name != "" {
		return found, nil
	}
	err = f.snapshot(ctx, func(query queryer) error {
		found, err = q.Mentions(func(limit int) (list []graph.Mention, err error) {
			rows, err := query(selectAccessing, tenant, q.Base(), limit)
			err = each(rows, err, func(rows *sql.Rows) error {
				var m graph.Mention
				err := rows.Scan(&m.Conversation, &m.Seq, &m.File)
				list = append(list, m)
				return err
			})
			return list, err
		})
		return err
	})
	return found, err
}

// Accesses implements graph.AccessReader.
func (f *Files) Accesses(ctx context.Context, tenant string, list []graph.Mentioned, q graph.CodeQuery) (map[string][]graph.FileAccess, error) {
	found := map[string][]graph.FileAccess{}
	if q.Name != "" {
		return found, nil
	}
	return found, f.snapshot(ctx, func(query queryer) error {
		for _, m := range list {
			var accesses []graph.FileAccess
			rows, err := query(selectAccessesOfFile, tenant, m.ID, q.Base(), min(m.Seq, maxSeq), graph.MentionsEach)
			if err := each(rows, err, func(rows *sql.Rows) error {
				var a graph.FileAccess
				err := rows.Scan(&a.Path, &a.Kind, &a.Tool, &a.Turn, &a.Seq, &a.Count)
				accesses = append(accesses, a)
				return err
			}); err != nil {
				return err
			}
			if accesses = q.NewestAccesses(accesses); len(accesses) > 0 {
				found[m.ID] = accesses
			}
		}
		return nil
	})
}
