package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// Projects is the read model "projects" in SQLite.
type Projects struct {
	*Store[*project.Unit]
	replayer *project.Replayer
}

// NewProjects returns the reads of a store of [ProjectsCodec].
func NewProjects(s *Store[*project.Unit]) *Projects { return &Projects{s, project.NewReplayer()} }

var _ project.Store = (*Projects)(nil)

// ProjectsCodec is the read model "projects".
var ProjectsCodec = Codec[*project.Unit]{
	Projection: "projects",
	Schema:     projectsSchema,
	Indexes:    projectsIndexes,
	Delete:     DeleteFrom("step", "member"),
	Begin:      func(t *Tx) Work[*project.Unit] { return projectsTx{t} },
	Hash:       projectsHash,
}

// projectsSchema: digest is the conversation's newest state, for the writer. Readers replay steps, of which those with
// a base are where to begin.
const projectsSchema = `
CREATE TABLE conversation (
  c INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, last_seq INTEGER NOT NULL, deleted_seq INTEGER NOT NULL,
  digest TEXT NOT NULL, since INTEGER NOT NULL, UNIQUE (tenant, id)
);
CREATE TABLE step (
  c INTEGER NOT NULL, seq INTEGER NOT NULL, change TEXT NOT NULL, base TEXT NOT NULL, PRIMARY KEY (c, seq)
) WITHOUT ROWID;
CREATE INDEX step_with_base ON step (c, seq) WHERE base <> '';
CREATE TABLE member (
  tenant TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL, c INTEGER NOT NULL, words TEXT NOT NULL,
  PRIMARY KEY (tenant, kind, name, seq)
) WITHOUT ROWID;
CREATE INDEX member_by_conversation ON member (c);
`

const projectsIndexes = `
CREATE INDEX IF NOT EXISTS conversation_by_deletion ON conversation (tenant, deleted_seq) WHERE deleted_seq <> 0;
`

type projectsTx struct{ *Tx }

var projectsStates = stateTable[project.State, *project.State]{
	columns: []string{"digest", "since"},
	scan: func(s *project.State, scan func(...any) error) (err error) {
		var digest string
		if err := scan(&digest, &s.Since); err != nil {
			return err
		}
		s.Digest, err = project.DecodeDigest(digest)
		return err
	},
	values: func(s *project.State) []any { return []any{project.Encode(&s.Digest), s.Since} },
}

// Load implements Work.
func (t projectsTx) Load(ctx context.Context, list []*events.Recorded) (*project.Unit, error) {
	u := project.NewUnit()
	return u, projectsStates.load(ctx, t.Tx, u.States, list)
}

// Save implements Work.
func (t projectsTx) Save(ctx context.Context, u *project.Unit) error {
	if _, err := projectsStates.save(ctx, t.Tx, u.States); err != nil {
		return err
	}
	if _, err := t.Insert(ctx, Insertion{Into: "step (c, seq, change, base)", Width: 4}, len(u.Steps), func(args []any, i int) []any {
		s := &u.Steps[i]
		return append(args, s.State.Key, s.Row.Seq, s.Row.Change, s.Row.Base)
	}); err != nil {
		return err
	}
	_, err := t.Insert(ctx, Insertion{Into: "member (tenant, kind, name, seq, c, words)", Width: 6}, len(u.Members), func(args []any, i int) []any {
		m := &u.Members[i].Row
		return append(args, m.Conversation.Tenant, m.Kind, m.Name, m.Seq, u.Members[i].State.Key, m.Words)
	})
	return err
}

const selectMembers = `SELECT m.seq, c.id, m.words FROM member m JOIN conversation c ON c.c = m.c
	WHERE m.tenant = ? AND m.kind = ? AND m.name = ? AND m.seq <= ? ORDER BY m.seq DESC LIMIT ?`

// Members implements project.Reader.
func (p *Projects) Members(ctx context.Context, tenant string, query project.MemberQuery) (list []project.Member, err error) {
	err = p.Snapshot(ctx, func(q Queryer) error {
		for _, name := range query.Names {
			rows, err := q(selectMembers, tenant, query.Kind, name, min(query.AsOf, maxSeq), cmp.Or(query.Each, query.Limit))
			if err := Each(rows, err, func(rows *sql.Rows) error {
				m := project.Member{Kind: query.Kind, Name: name, Conversation: events.ConversationID{Tenant: tenant}}
				err := rows.Scan(&m.Seq, &m.Conversation.ID, &m.Words)
				list = append(list, m)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortStableFunc(list, func(a, b project.Member) int { return cmp.Compare(b.Seq, a.Seq) })
	return list[:min(len(list), query.Limit)], err
}

const (
	selectNextName = `SELECT name FROM member WHERE tenant = ? AND kind = ? AND name > ? AND name >= ? AND seq <= ? ORDER BY name LIMIT 1`
	selectOneName  = `SELECT name FROM member WHERE tenant = ? AND kind = ? AND name = ? AND seq <= ? LIMIT 1`
)

// Names implements project.Reader. Each name is one seek, however many entries it has.
func (p *Projects) Names(ctx context.Context, tenant string, query project.NameQuery) (list []string, err error) {
	one := func(q Queryer, statement string, args ...any) (found bool, err error) {
		rows, err := q(statement, args...)
		err = Each(rows, err, func(rows *sql.Rows) error {
			var name string
			found = true
			err := rows.Scan(&name)
			list = append(list, name)
			return err
		})
		return found, err
	}
	err = p.Snapshot(ctx, func(q Queryer) error {
		if query.Only != nil {
			for _, name := range slices.Compact(slices.Sorted(slices.Values(query.Only))) {
				if _, err := one(q, selectOneName, tenant, query.Kind, name, min(query.AsOf, maxSeq)); err != nil {
					return err
				}
			}
			return nil
		}
		after := query.After
		for len(list) < query.Limit {
			found, err := one(q, selectNextName, tenant, query.Kind, after, query.Below, min(query.AsOf, maxSeq))
			if err != nil || !found {
				return err
			}
			after = list[len(list)-1]
			if len(after) < len(query.Below) || after[:len(query.Below)] != query.Below {
				list = list[:len(list)-1]
				return nil
			}
		}
		return nil
	})
	return list, err
}

const (
	selectHeads = `SELECT i.key, c.c, coalesce((SELECT max(seq) FROM step WHERE c = c.c AND seq <= ?2), 0)
		FROM json_each(?1) i CROSS JOIN conversation c ON c.tenant = i.value ->> 0 AND c.id = i.value ->> 1 WHERE c.deleted_seq = 0`
	selectSteps = `SELECT i.key, s.seq, s.change, s.base FROM json_each(?) i CROSS JOIN step s ON s.c = i.value ->> 0 AND s.seq <= i.value ->> 1
		AND s.seq >= (SELECT max(seq) FROM step WHERE c = i.value ->> 0 AND base <> '' AND seq <= i.value ->> 1)`
)

// Digests implements project.Reader. Each conversation is two seeks, and two more and fewer than 16 rows if
// its digest is not known.
func (p *Projects) Digests(ctx context.Context, ids []events.ConversationID, asOf uint64) (list []*project.Digest, err error) {
	heads, wanted := make([]project.Head, len(ids)), make([][2]string, len(ids))
	for i, id := range ids {
		heads[i], wanted[i] = project.Head{ID: id}, [2]string{id.Tenant, id.ID}
	}
	err = p.Snapshot(ctx, func(q Queryer) error {
		repairs, err := readRepairs(q)
		if err != nil {
			return err
		}
		rowOf := map[events.ConversationID]int64{}
		if err := each(q, selectHeads, wanted, func(rows *sql.Rows) error {
			var i int
			var row int64
			var seq uint64
			err := rows.Scan(&i, &row, &seq)
			heads[i].Seq, heads[i].Repairs, rowOf[ids[i]] = seq, repairs, row
			return err
		}, min(asOf, maxSeq)); err != nil {
			return err
		}
		list, err = p.replayer.Digests(heads, func(unknown []project.Head) ([][]project.Step, error) {
			steps, ends := make([][]project.Step, len(unknown)), make([][2]int64, len(unknown))
			for i, h := range unknown {
				ends[i] = [2]int64{rowOf[h.ID], int64(h.Seq)}
			}
			err := each(q, selectSteps, ends, func(rows *sql.Rows) error {
				var i int
				var s project.Step
				err := rows.Scan(&i, &s.Seq, &s.Change, &s.Base)
				steps[i] = append(steps[i], s)
				return err
			})
			for _, list := range steps {
				slices.SortFunc(list, func(a, b project.Step) int { return cmp.Compare(a.Seq, b.Seq) })
			}
			return steps, err
		})
		return err
	})
	return list, err
}

const selectLastDeletion = `SELECT coalesce(max(deleted_seq), 0) FROM conversation WHERE tenant = ? AND deleted_seq <> 0`

// LastDeletion implements project.Reader.
func (p *Projects) LastDeletion(ctx context.Context, tenant string) (seq uint64, err error) {
	err = p.Snapshot(ctx, func(q Queryer) error {
		rows, err := q(selectLastDeletion, tenant)
		return Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&seq) })
	})
	return seq, err
}

// each runs a query whose first argument is a list in JSON.
func each(q Queryer, query string, list any, scan func(*sql.Rows) error, args ...any) error {
	encoded, err := json.Marshal(list)
	if err != nil {
		return err
	}
	rows, err := q(query, append([]any{string(encoded)}, args...)...)
	return Each(rows, err, scan)
}

const selectDeleted = `SELECT id FROM conversation WHERE tenant = ?2 AND deleted_seq <> 0 AND id IN (SELECT value FROM json_each(?1))`

// Deleted implements project.Reader. Each conversation is one seek.
func (p *Projects) Deleted(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	deleted := map[string]bool{}
	err := p.Snapshot(ctx, func(q Queryer) error {
		return each(q, selectDeleted, ids, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			deleted[id] = true
			return err
		}, tenant)
	})
	return deleted, err
}

func projectsHash(q Queryer, id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	var c int64
	var deleted uint64
	rows, err := q("SELECT c, last_seq, deleted_seq FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
	if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&c, &h.LastSeq, &deleted) }); err != nil || c == 0 {
		return h, err
	}
	rows, err = q("SELECT change FROM step WHERE c = ? ORDER BY seq", c)
	changes, err := All(rows, err, func(rows *sql.Rows, change *string) error { return rows.Scan(change) })
	if err != nil {
		return h, err
	}
	h.Hash, err = project.Hash(id, deleted != 0, changes)
	return h, err
}
