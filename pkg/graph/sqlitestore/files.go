package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Files is the read model "files" in SQLite.
type Files struct{ *Store[*graph.FilesUnit] }

var _ graph.FilesStore = (*Files)(nil)

// FilesCodec is the read model "files".
var FilesCodec = Codec[*graph.FilesUnit]{
	Projection: "files",
	Schema:     filesSchema,
	Delete:     DeleteFrom("file_access", "tracked_call", "early_result"),
	Begin:      func(t *Tx) Work[*graph.FilesUnit] { return filesTx{t} },
	Hash:       filesHash,
}

// OpenFiles opens or creates a read model for writing, and locks it. It returns [ErrLocked] or
// projection.ErrRebuild, see the package comment.
func OpenFiles(ctx context.Context, path string) (*Files, error) {
	s, err := Open(ctx, path, FilesCodec)
	if err != nil {
		return nil, err
	}
	return &Files{s}, nil
}

type filesTx struct{ *Tx }

var filesStates = stateTable[graph.FilesState, *graph.FilesState]{
	columns: []string{"cwd", "turn_count"},
	scan:    func(s *graph.FilesState, scan func(...any) error) error { return scan(&s.Cwd, &s.TurnCount) },
	values:  func(s *graph.FilesState) []any { return []any{s.Cwd, s.TurnCount} },
}

// Load implements Work.
func (t filesTx) Load(ctx context.Context, list []*events.Recorded) (*graph.FilesUnit, error) {
	u := graph.NewFilesUnit()
	if err := filesStates.load(ctx, t.Tx, u.States, list); err != nil {
		return nil, err
	}
	var calls, results []graph.CallRef
	for _, e := range list {
		id := e.Conversation()
		if t.Keys[id] == 0 {
			continue // none of its rows are stored
		}
		switch p := e.Payload.(type) {
		case *events.ToolCalled:
			calls = append(calls, graph.CallRef{Conversation: id, ToolCallID: p.ToolCallID})
		case *events.ToolReturned:
			results = append(results, graph.CallRef{Conversation: id, ToolCallID: p.ToolCallID})
		}
	}
	if err := t.loadWaiting(ctx, Selection{"seq, tool, arguments, cwd, turn", "tracked_call", waitingKey}, results, func(rows *sql.Rows) error {
		var i int
		var c graph.TrackedCall
		err := rows.Scan(&i, &c.Seq, &c.Tool, &c.Arguments, &c.Cwd, &c.Turn)
		u.Calls.Loaded(results[i], c)
		return err
	}); err != nil {
		return nil, err
	}
	return u, t.loadWaiting(ctx, Selection{"seq, failed, result, files", "early_result", waitingKey}, calls, func(rows *sql.Rows) error {
		var i int
		var r graph.EarlyResult
		var reported string
		if err := rows.Scan(&i, &r.Seq, &r.Failed, &r.Result, &reported); err != nil {
			return err
		}
		if reported != "" {
			if err := json.Unmarshal([]byte(reported), &r.Files); err != nil {
				return err
			}
		}
		u.Early.Loaded(calls[i], r)
		return nil
	})
}

// waitingKey is the key of the tables of waiting calls and results.
var waitingKey = []string{"c", "tool_call_id"}

func (t filesTx) loadWaiting(ctx context.Context, sel Selection, refs []graph.CallRef, scan func(*sql.Rows) error) error {
	return t.Lookup(ctx, sel, len(refs), func(args []any, i int) []any {
		return append(args, t.Keys[refs[i].Conversation], refs[i].ToolCallID)
	}, scan)
}

// Save implements Work.
func (t filesTx) Save(ctx context.Context, u *graph.FilesUnit) error {
	if _, err := filesStates.save(ctx, t.Tx, u.States); err != nil {
		return err
	}
	if err := t.saveWaiting(ctx, u); err != nil {
		return err
	}
	for i := range u.Revoked {
		if err := t.revoke(ctx, u.Revoked[i].State.Key, u.Revoked[i].Row); err != nil {
			return err
		}
	}
	return t.saveAccesses(ctx, u.Accesses)
}

// saveWaiting stores the calls and results that wait for each other, and deletes matched ones.
func (t filesTx) saveWaiting(ctx context.Context, u *graph.FilesUnit) error {
	for table, met := range map[string][]graph.CallRef{"tracked_call": u.Calls.Met(), "early_result": u.Early.Met()} {
		for _, ref := range met {
			if _, err := t.Exec(ctx, "DELETE FROM "+table+" WHERE c = ? AND tool_call_id = ?", t.Keys[ref.Conversation], ref.ToolCallID); err != nil {
				return err
			}
		}
	}
	calls := u.Calls.New()
	if _, err := t.Insert(ctx, Insertion{Into: "tracked_call (c, tool_call_id, seq, tool, arguments, cwd, turn)", Width: 7}, len(calls), func(args []any, i int) []any {
		c := u.Calls.Row(calls[i])
		return append(args, t.Keys[calls[i].Conversation], calls[i].ToolCallID, c.Seq, c.Tool, c.Arguments, c.Cwd, c.Turn)
	}); err != nil {
		return err
	}
	early := u.Early.New()
	_, err := t.Insert(ctx, Insertion{Into: "early_result (c, tool_call_id, seq, failed, result, files)", Width: 6}, len(early), func(args []any, i int) []any {
		r := u.Early.Row(early[i])
		return append(args, t.Keys[early[i].Conversation], early[i].ToolCallID, r.Seq, r.Failed, r.Result, marshal(r.Files))
	})
	return err
}

// newestOf finds the newest access of a path and kind that is not revoked: it is the current one,
// or becomes it.
const newestOf = `(c, seq, rank) = (SELECT c, seq, rank FROM file_access
	WHERE c = ? AND path = ? AND kind = ? AND revoked = 0 ORDER BY seq DESC, rank DESC LIMIT 1)`

const (
	supersede        = "UPDATE file_access SET current = 0 WHERE " + newestOf + " RETURNING count"
	selectAccessesOf = "SELECT rank, path, kind, count, current FROM file_access WHERE c = ? AND seq = ? AND revoked = 0 ORDER BY rank DESC"
	revoke           = "UPDATE file_access SET revoked = ?, current = 0 WHERE c = ? AND seq = ? AND rank = ?"
	countDown        = "UPDATE file_access SET count = iif(?, ?, count) - 1, current = 1 WHERE " + newestOf
)

// place identifies the accesses of which one is current.
type place struct {
	c    int64
	path string
	kind files.Kind
}

// saveAccesses adds accesses. For each path and kind the newest access replaces the current one and
// continues its count.
func (t filesTx) saveAccesses(ctx context.Context, list []projection.Of[graph.FilesState, graph.NewAccess]) error {
	counts, newest := map[place]int{}, map[place]int{}
	at := func(i int) place {
		a := &list[i]
		return place{a.State.Key, a.Row.Path, a.Row.Kind}
	}
	for i := range list {
		if list[i].Row.Revoked == 0 {
			counts[at(i)]++
			newest[at(i)] = i
		}
	}
	for p := range newest {
		before := 0
		rows, err := t.Query(ctx, supersede, p.c, p.path, string(p.kind))
		if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&before) }); err != nil {
			return err
		}
		counts[p] += before
	}
	_, err := t.Insert(ctx, Insertion{Into: "file_access (c, seq, rank, path, kind, tool, turn, count, current, revoked, tenant, base)", Width: 12}, len(list), func(args []any, i int) []any {
		a, p := &list[i].Row, at(i)
		last, ok := newest[p]
		return append(args, p.c, a.Seq, a.Rank, a.Path, string(a.Kind), a.Tool, a.Turn, counts[p], ok && last == i, a.Revoked, list[i].State.ID.Tenant, graph.CodeBase(a.Path))
	})
	return err
}

// revoke ends the accesses of a failed call. If one was current, the newest one that it had hidden
// becomes current again.
func (t filesTx) revoke(ctx context.Context, c int64, r graph.Revocation) error {
	type access struct {
		rank, count int
		path, kind  string
		current     bool
	}
	rows, err := t.Query(ctx, selectAccessesOf, c, r.Call)
	list, err := All(rows, err, func(rows *sql.Rows, a *access) error {
		return rows.Scan(&a.rank, &a.path, &a.kind, &a.count, &a.current)
	})
	if err != nil {
		return err
	}
	for _, a := range list {
		if _, err := t.Exec(ctx, revoke, r.Seq, c, r.Call, a.rank); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, countDown, a.current, a.count, c, a.path, a.kind); err != nil {
			return err
		}
	}
	return nil
}

// The reads of accesses, newest first.
const (
	selectAccessesNow = `SELECT path, kind, tool, turn, seq, count FROM file_access
		WHERE c = ? AND current = 1 ORDER BY seq DESC, rank DESC LIMIT ?`
	// The newest row of each path and kind: SQLite takes the columns from the row with the maximum.
	// No event makes a thousand accesses.
	selectAccessesThen = `SELECT path, kind, tool, turn, seq, count(*) FROM file_access
		WHERE c = ? AND seq <= ? AND (revoked = 0 OR revoked > ?) GROUP BY path, kind ORDER BY max(seq * 1000 + rank) DESC LIMIT ?`
)

// Files implements graph.FilesReader.
func (f *Files) Files(ctx context.Context, id events.ConversationID, query graph.FileQuery) (list []graph.FileAccess, err error) {
	n := query.Limit
	if n <= 0 {
		n = 200
	}
	add := func(rows *sql.Rows) error {
		var a graph.FileAccess
		err := rows.Scan(&a.Path, &a.Kind, &a.Tool, &a.Turn, &a.Seq, &a.Count)
		list = append(list, a)
		return err
	}
	err = f.Snapshot(ctx, func(q Queryer) error {
		s, err := filesStates.read(q, id)
		if err != nil {
			return err
		}
		if query.AsOf == 0 || query.AsOf >= s.LastSeq {
			rows, err := q(selectAccessesNow, s.Key, n)
			return Each(rows, err, add)
		}
		rows, err := q(selectAccessesThen, s.Key, query.AsOf, query.AsOf, n)
		return Each(rows, err, add)
	})
	return list, err
}

// LastSeq implements graph.FilesReader.
func (f *Files) LastSeq(ctx context.Context, id events.ConversationID) (seq, repairs uint64, err error) {
	err = f.Snapshot(ctx, func(q Queryer) error {
		s, err := filesStates.read(q, id)
		if seq = s.LastSeq; err == nil {
			repairs, err = readRepairs(q)
		}
		return err
	})
	return seq, repairs, err
}

func filesHash(q Queryer, id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	s, err := filesStates.read(q, id)
	if err != nil || s.Key == 0 {
		return h, err
	}
	hasher := graph.NewHasher(id)
	hasher.FilesConversation(s)
	rows, err := q("SELECT path, kind, tool, turn, iif(current, count, 0), revoked <> 0 FROM file_access WHERE c = ? ORDER BY seq, rank", s.Key)
	if err := Each(rows, err, func(rows *sql.Rows) error {
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
