package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"

	"mneme/events"
	"mneme/pkg/graph"
	"mneme/pkg/projection"
)

// Files is the read model "files" in SQLite.
type Files struct{ store }

var _ graph.FilesStore = (*Files)(nil)

// OpenFiles opens or creates a read model to write to it, and locks it.
// It returns [ErrLocked] or projection.ErrRebuild, see the package comment.
func OpenFiles(ctx context.Context, path string) (*Files, error) {
	d, err := openWriter(ctx, path, filesSchema)
	if err != nil {
		return nil, err
	}
	return &Files{store{d, "files"}}, nil
}

// OpenFilesReader opens a read model that another process writes. As long as that
// process has not made it, the error is fs.ErrNotExist.
func OpenFilesReader(path string) (*Files, error) {
	d, err := openReader(path)
	if err != nil {
		return nil, err
	}
	return &Files{store{d, "files"}}, nil
}

// Update implements projection.Store.
func (f *Files) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.FilesUnit]) error) error {
	return f.transact(ctx, func() error { return fn(&filesTx{f.newTx(partition)}) })
}

type filesTx struct{ tx }

const filesStateColumns = "c, tenant, id, cwd, turn_count, last_seq, deleted_seq"

func scanFilesState(rows *sql.Rows, s *graph.FilesState) error {
	return rows.Scan(&s.Key, &s.ID.Tenant, &s.ID.ID, &s.Cwd, &s.TurnCount, &s.LastSeq, &s.DeletedSeq)
}

func readFilesState(q queryer, id events.ConversationID) (s graph.FilesState, err error) {
	s.ID = id
	rows, err := q("SELECT "+filesStateColumns+" FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
	err = each(rows, err, func(rows *sql.Rows) error { return scanFilesState(rows, &s) })
	return s, err
}

// Load implements projection.Tx.
func (t *filesTx) Load(ctx context.Context, list []*events.Recorded) (*graph.FilesUnit, error) {
	u := graph.NewFilesUnit()
	for _, e := range list {
		id := e.Conversation()
		s := u.States[id]
		if s == nil {
			state, err := readFilesState(t.inside(ctx), id)
			if err != nil {
				return nil, err
			}
			s = &state
			u.States[id] = s
			if s.Key != 0 {
				t.keys[id] = s.Key
			}
		}
		if s.Key == 0 {
			continue
		}
		switch p := e.Payload.(type) {
		case *events.ToolReturned:
			rows, err := t.writer.query(ctx, "SELECT seq, tool_call_id, tool, arguments, cwd, turn FROM tracked_call WHERE c = ? AND tool_call_id = ?", s.Key, p.ToolCallID)
			if err := each(rows, err, func(rows *sql.Rows) error {
				var c graph.TrackedCall
				err := rows.Scan(&c.Seq, &c.ToolCallID, &c.Tool, &c.Arguments, &c.Cwd, &c.Turn)
				u.Calls[graph.CallRef{Conversation: id, ToolCallID: p.ToolCallID}] = c
				return err
			}); err != nil {
				return nil, err
			}
		case *events.ToolCalled:
			rows, err := t.writer.query(ctx, "SELECT seq, tool_call_id, failed, result, files FROM early_result WHERE c = ? AND tool_call_id = ?", s.Key, p.ToolCallID)
			if err := each(rows, err, func(rows *sql.Rows) error {
				var r graph.EarlyResult
				var files string
				if err := rows.Scan(&r.Seq, &r.ToolCallID, &r.Failed, &r.Result, &files); err != nil {
					return err
				}
				if files != "" {
					if err := json.Unmarshal([]byte(files), &r.Files); err != nil {
						return err
					}
				}
				u.Early[graph.CallRef{Conversation: id, ToolCallID: p.ToolCallID}] = r
				return nil
			}); err != nil {
				return nil, err
			}
		}
	}
	return u, nil
}

var filesTables = []string{"file_access", "tracked_call", "early_result"}

// Drop implements projection.Tx.
func (t *filesTx) Drop(ctx context.Context, id events.ConversationID) error {
	c, err := t.find(ctx, id)
	if err != nil {
		return err
	}
	return t.drop(ctx, id, c, true, filesTables...)
}

// Save implements projection.Tx.
func (t *filesTx) Save(ctx context.Context, u *graph.FilesUnit) error {
	for id, s := range u.States {
		if !s.Touched {
			continue
		}
		c, err := t.key(ctx, id)
		if err != nil {
			return err
		}
		s.Key = c
		if s.Dropped {
			if err := t.drop(ctx, id, c, false, filesTables...); err != nil {
				return err
			}
		}
		if _, err := t.writer.exec(ctx, "INSERT INTO conversation ("+filesStateColumns+`) VALUES (?,?,?,?,?,?,?) ON CONFLICT (c) DO UPDATE SET
			cwd = excluded.cwd, turn_count = excluded.turn_count, last_seq = excluded.last_seq, deleted_seq = excluded.deleted_seq`,
			c, id.Tenant, id.ID, s.Cwd, s.TurnCount, s.LastSeq, s.DeletedSeq); err != nil {
			return err
		}
	}
	if _, err := t.writer.insert(ctx, insertion{into: "tracked_call (seq, c, tool_call_id, tool, arguments, cwd, turn)", width: 7}, len(u.NewCalls), func(args []any, i int) []any {
		c := &u.NewCalls[i].Row
		return append(args, c.Seq, u.NewCalls[i].State.Key, c.ToolCallID, c.Tool, c.Arguments, c.Cwd, c.Turn)
	}); err != nil {
		return err
	}
	if _, err := t.writer.insert(ctx, insertion{into: "early_result (seq, c, tool_call_id, failed, result, files)", width: 6}, len(u.NewEarly), func(args []any, i int) []any {
		r := &u.NewEarly[i].Row
		return append(args, r.Seq, u.NewEarly[i].State.Key, r.ToolCallID, r.Failed, r.Result, marshal(r.Files))
	}); err != nil {
		return err
	}
	for i := range u.Changes {
		change, c := &u.Changes[i].Row, u.Changes[i].State.Key
		var err error
		if change.Revoked != 0 {
			err = t.revoke(ctx, c, change)
		} else {
			err = t.access(ctx, c, change)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The accesses of one path and kind, the newest that is not revoked first: it is
// the current one.
const (
	supersede = `UPDATE file_access SET superseded = ? WHERE a =
		(SELECT max(a) FROM file_access WHERE c = ? AND path = ? AND kind = ? AND revoked = 0) RETURNING count`
	selectAccessesOf = "SELECT a, superseded, path, kind, count FROM file_access WHERE c = ? AND call = ? AND revoked = 0 ORDER BY a DESC"
	revoke           = "UPDATE file_access SET revoked = ? WHERE a = ?"
	bringBack        = `UPDATE file_access SET superseded = ?, count = iif(? = 0, ?, count) WHERE a =
		(SELECT max(a) FROM file_access WHERE c = ? AND path = ? AND kind = ? AND revoked = 0 AND a < ?)`
	countDown = `UPDATE file_access SET count = count - 1 WHERE a =
		(SELECT max(a) FROM file_access WHERE c = ? AND path = ? AND kind = ? AND revoked = 0)`
)

// access adds an access; it supersedes the current one of the same path and kind.
func (t *filesTx) access(ctx context.Context, c int64, change *graph.FileChange) error {
	count := 0
	path, kind := change.Access.Path, string(change.Access.Kind)
	rows, err := t.writer.query(ctx, supersede, change.Seq, c, path, kind)
	if err := each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&count) }); err != nil {
		return err
	}
	_, err = t.writer.exec(ctx, "INSERT INTO file_access (c, seq, rank, path, kind, tool, turn, call, count, superseded, revoked) VALUES (?,?,?,?,?,?,?,?,?,0,0)",
		c, change.Seq, change.Rank, path, kind, change.Tool, change.Turn, change.Call, count+1)
	return err
}

// revoke ends the accesses of a failed call. What each of them superseded is now
// superseded by what superseded it; if that is nothing, it is current again.
func (t *filesTx) revoke(ctx context.Context, c int64, change *graph.FileChange) error {
	type access struct {
		id, superseded int64
		path, kind     string
		count          int
	}
	var list []access
	rows, err := t.writer.query(ctx, selectAccessesOf, c, change.Revoked)
	if err := each(rows, err, func(rows *sql.Rows) error {
		var a access
		err := rows.Scan(&a.id, &a.superseded, &a.path, &a.kind, &a.count)
		list = append(list, a)
		return err
	}); err != nil {
		return err
	}
	for _, a := range list {
		if _, err := t.writer.exec(ctx, revoke, change.Seq, a.id); err != nil {
			return err
		}
		if _, err := t.writer.exec(ctx, bringBack, a.superseded, a.superseded, a.count-1, c, a.path, a.kind, a.id); err != nil {
			return err
		}
		if a.superseded != 0 {
			if _, err := t.writer.exec(ctx, countDown, c, a.path, a.kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// The reads of accesses, newest first.
const (
	selectAccessesNow = `SELECT path, kind, tool, turn, seq, count, a FROM file_access
		WHERE c = ? AND superseded = 0 AND revoked = 0 ORDER BY seq DESC, rank DESC LIMIT ?`
	// Of each path and kind the row with the greatest a, which is the newest.
	selectAccessesThen = `SELECT path, kind, tool, turn, seq, count(*), max(a) FROM file_access
		WHERE c = ? AND seq <= ? AND (revoked = 0 OR revoked > ?) GROUP BY path, kind ORDER BY max(a) DESC LIMIT ?`
)

// Files implements graph.FilesReader.
func (f *Files) Files(ctx context.Context, id events.ConversationID, query graph.FileQuery) (list []graph.FileAccess, err error) {
	n := query.Limit
	if n <= 0 {
		n = 200
	}
	add := func(rows *sql.Rows) error {
		var a graph.FileAccess
		var newest int64
		err := rows.Scan(&a.Path, &a.Kind, &a.Tool, &a.Turn, &a.Seq, &a.Count, &newest)
		list = append(list, a)
		return err
	}
	err = f.snapshot(ctx, func(q queryer) error {
		s, err := readFilesState(q, id)
		if err != nil {
			return err
		}
		if query.AsOf == 0 || query.AsOf >= s.LastSeq {
			rows, err := q(selectAccessesNow, s.Key, n)
			return each(rows, err, add)
		}
		rows, err := q(selectAccessesThen, s.Key, query.AsOf, query.AsOf, n)
		return each(rows, err, add)
	})
	return list, err
}

// LastSeq implements graph.FilesReader.
func (f *Files) LastSeq(ctx context.Context, id events.ConversationID) (seq uint64, err error) {
	err = f.snapshot(ctx, func(q queryer) error {
		s, err := readFilesState(q, id)
		seq = s.LastSeq
		return err
	})
	return seq, err
}

// Hashes implements projection.ReadStore.
func (f *Files) Hashes(ctx context.Context, yield func(projection.ConversationHash) error) error {
	return f.eachConversation(ctx, func(q queryer, id events.ConversationID) error {
		h, err := filesHash(q, id)
		if err != nil {
			return err
		}
		return yield(h)
	})
}

// Hash implements projection.ReadStore.
func (f *Files) Hash(ctx context.Context, id events.ConversationID) (h projection.ConversationHash, err error) {
	err = f.snapshot(ctx, func(q queryer) error {
		h, err = filesHash(q, id)
		return err
	})
	return h, err
}

func filesHash(q queryer, id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	s, err := readFilesState(q, id)
	if err != nil || s.Key == 0 {
		return h, err
	}
	hasher := graph.NewHasher(id)
	hasher.FilesConversation(s)
	rows, err := q("SELECT path, kind, tool, turn, iif(superseded = 0 AND revoked = 0, count, 0), revoked <> 0 FROM file_access WHERE c = ? ORDER BY seq, rank", s.Key)
	if err := each(rows, err, func(rows *sql.Rows) error {
		var path, kind, tool string
		var turn, count int
		var revoked bool
		err := rows.Scan(&path, &kind, &tool, &turn, &count, &revoked)
		hasher.Access(path, kind, tool, turn, count, revoked)
		return err
	}); err != nil {
		return h, err
	}
	h.LastSeq, h.Hash = s.LastSeq, hasher.Sum()
	return h, nil
}
