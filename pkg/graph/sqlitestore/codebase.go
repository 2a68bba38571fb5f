package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/projection"
)

// Codebase is the read model "code" in SQLite.
type Codebase struct{ *Store[*codebase.Unit] }

var _ codebase.Store = (*Codebase)(nil)

// CodebaseCodec is the read model "code".
var CodebaseCodec = Codec[*codebase.Unit]{
	Projection: codebase.Name,
	Schema:     codebaseSchema,
	Delete:     DeleteFrom("version", "scan"),
	Begin:      func(t *Tx) Work[*codebase.Unit] { return codebaseTx{t} },
	Hash:       codebaseHash,
}

// codebaseSchema: project is that of the newest scan, "" before the first. Other rows never change.
const codebaseSchema = `
CREATE TABLE conversation (
  c INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, last_seq INTEGER NOT NULL, deleted_seq INTEGER NOT NULL,
  project TEXT NOT NULL, UNIQUE (tenant, id)
);
CREATE INDEX conversation_listed ON conversation (tenant, project) WHERE project <> '';
CREATE TABLE version (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, event_id TEXT NOT NULL, path TEXT NOT NULL, hash TEXT NOT NULL, removed INTEGER NOT NULL,
  language TEXT NOT NULL, lines INTEGER NOT NULL, left_out INTEGER NOT NULL, scopes TEXT NOT NULL, bags BLOB NOT NULL, texts TEXT NOT NULL
);
CREATE INDEX version_by_conversation ON version (c, seq);
CREATE TABLE scan (
  c INTEGER NOT NULL, seq INTEGER NOT NULL, event_id TEXT NOT NULL, project TEXT NOT NULL, root TEXT NOT NULL, done INTEGER NOT NULL, files INTEGER NOT NULL,
  PRIMARY KEY (c, seq)
) WITHOUT ROWID;
`

type codebaseTx struct{ *Tx }

var codeStates = stateTable[codebase.State, *codebase.State]{
	columns: []string{"project"},
	scan:    func(s *codebase.State, scan func(...any) error) error { return scan(&s.Project) },
	values:  func(s *codebase.State) []any { return []any{s.Project} },
}

// Load implements Work.
func (t codebaseTx) Load(ctx context.Context, list []*events.Recorded) (*codebase.Unit, error) {
	u := codebase.NewUnit()
	return u, codeStates.load(ctx, t.Tx, u.States, list)
}

// Save implements Work.
func (t codebaseTx) Save(ctx context.Context, u *codebase.Unit) error {
	if _, err := codeStates.save(ctx, t.Tx, u.States); err != nil {
		return err
	}
	if _, err := t.Insert(ctx, Insertion{Into: "version (seq, c, event_id, path, hash, removed, language, lines, left_out, scopes, bags, texts)", Width: 12}, len(u.Versions), func(args []any, i int) []any {
		v := &u.Versions[i].Row
		return append(args, v.Seq, u.Versions[i].State.Key, v.EventID, v.Path, v.Hash, v.Removed, v.Language, v.Lines, v.Left, codebase.Encode(v.Scopes), append([]byte{}, v.Bags...), codebase.Encode(v.Texts))
	}); err != nil {
		return err
	}
	_, err := t.Insert(ctx, Insertion{Into: "scan (c, seq, event_id, project, root, done, files)", Width: 7}, len(u.Scans), func(args []any, i int) []any {
		s := &u.Scans[i].Row
		return append(args, u.Scans[i].State.Key, s.Seq, s.EventID, s.Project, s.Root, s.Done, s.Files)
	})
	return err
}

const (
	scanColumns    = "s.seq, s.event_id, s.project, s.root, s.done, s.files"
	selectIndexes  = "SELECT " + scanColumns + " FROM conversation AS k INDEXED BY conversation_listed JOIN scan AS s ON s.c = k.c AND s.seq = (SELECT max(seq) FROM scan WHERE c = k.c AND seq <= ?) WHERE k.tenant = ? AND k.project <> '' ORDER BY s.seq DESC LIMIT ?"
	selectScan     = "SELECT " + scanColumns + " FROM scan AS s WHERE s.c = ? AND s.seq <= ? ORDER BY s.seq DESC LIMIT 1"
	selectVersions = "SELECT seq, event_id, path, hash, removed, language, lines, left_out, scopes, CASE WHEN ? THEN bags END FROM version INDEXED BY version_by_conversation WHERE c = ? AND seq >= ? AND seq <= ? ORDER BY seq LIMIT ?"
	selectBags     = "SELECT v.seq, v.bags FROM json_each(?) AS k CROSS JOIN version AS v ON v.seq = k.value WHERE v.c = ?"
	selectTexts    = "SELECT v.seq, v.texts FROM json_each(?) AS k CROSS JOIN version AS v ON v.seq = k.value WHERE v.c = ?"
)

func scanScan(rows *sql.Rows, s *codebase.Scan) error {
	return rows.Scan(&s.Seq, &s.EventID, &s.Project, &s.Root, &s.Done, &s.Files)
}

// Indexes implements codebase.Reader.
func (s *Codebase) Indexes(ctx context.Context, tenant string, asOf uint64) (list []codebase.Scan, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		rows, err := q(selectIndexes, min(asOf, maxSeq), tenant, codebase.MaxIndexes)
		list, err = All(rows, err, scanScan)
		return err
	})
	slices.SortFunc(list, func(a, b codebase.Scan) int {
		return cmp.Or(strings.Compare(a.Project, b.Project), cmp.Compare(a.Seq, b.Seq))
	})
	return list, err
}

// Scanned implements codebase.Reader.
func (s *Codebase) Scanned(ctx context.Context, id events.ConversationID, asOf uint64) (found *codebase.Scan, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		index, err := codeStates.read(q, id)
		if err != nil {
			return err
		}
		rows, err := q(selectScan, index.Key, min(asOf, maxSeq))
		return Each(rows, err, func(rows *sql.Rows) error {
			found = &codebase.Scan{}
			return scanScan(rows, found)
		})
	})
	return found, err
}

// Versions implements codebase.Reader.
func (s *Codebase) Versions(ctx context.Context, id events.ConversationID, query codebase.VersionQuery) (list []codebase.Version, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		index, err := codeStates.read(q, id)
		if err != nil {
			return err
		}
		list, err = versions(q, index.Key, query, false)
		return err
	})
	return list, err
}

func versions(q Queryer, c int64, query codebase.VersionQuery, bags bool) (list []codebase.Version, err error) {
	rows, err := q(selectVersions, bags, c, min(query.From, maxSeq), min(query.AsOf, maxSeq), query.Limit)
	err = Each(rows, err, func(rows *sql.Rows) error {
		var v codebase.Version
		var scopes string
		err := rows.Scan(&v.Seq, &v.EventID, &v.Path, &v.Hash, &v.Removed, &v.Language, &v.Lines, &v.Left, &scopes, &v.Bags)
		if err == nil {
			v.Scopes, err = codebase.Decode[[]codebase.Scope](scopes)
		}
		list = append(list, v)
		return err
	})
	return list, err
}

// Bags implements codebase.Reader.
func (s *Codebase) Bags(ctx context.Context, id events.ConversationID, seqs []uint64) (map[uint64][]byte, error) {
	bags := map[uint64][]byte{}
	err := s.ofVersions(ctx, id, selectBags, seqs, func(rows *sql.Rows) error {
		var seq uint64
		var of []byte
		err := rows.Scan(&seq, &of)
		bags[seq] = of
		return err
	})
	return bags, err
}

// Texts implements codebase.Reader.
func (s *Codebase) Texts(ctx context.Context, id events.ConversationID, seqs []uint64) (map[uint64][]string, error) {
	texts := map[uint64][]string{}
	err := s.ofVersions(ctx, id, selectTexts, seqs, func(rows *sql.Rows) error {
		var seq uint64
		var list string
		err := rows.Scan(&seq, &list)
		if err == nil {
			texts[seq], err = codebase.Decode[[]string](list)
		}
		return err
	})
	return texts, err
}

// ofVersions reads rows of versions by their sequences.
func (s *Codebase) ofVersions(ctx context.Context, id events.ConversationID, query string, seqs []uint64, read func(*sql.Rows) error) error {
	return s.Snapshot(ctx, func(q Queryer) error {
		index, err := codeStates.read(q, id)
		if err != nil {
			return err
		}
		rows, err := q(query, marshal(seqs), index.Key)
		return Each(rows, err, read)
	})
}

// hashedAtOnce is how many versions a hash reads at once.
const hashedAtOnce = 256

func codebaseHash(q Queryer, id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	index, err := codeStates.read(q, id)
	if err != nil || index.Key == 0 {
		return h, err
	}
	hasher := codebase.NewHasher(id, index.DeletedSeq != 0)
	for from := uint64(0); ; {
		list, err := versions(q, index.Key, codebase.VersionQuery{From: from, AsOf: maxSeq, Limit: hashedAtOnce}, true)
		if err != nil {
			return h, err
		}
		for i := range list {
			hasher.Version(&list[i])
		}
		if len(list) < hashedAtOnce {
			break
		}
		from = list[len(list)-1].Seq + 1
	}
	rows, err := q("SELECT "+scanColumns+" FROM scan AS s WHERE s.c = ? ORDER BY s.seq", index.Key)
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var s codebase.Scan
		err := scanScan(rows, &s)
		hasher.Scan(&s)
		return err
	}); err != nil {
		return h, err
	}
	h.LastSeq, h.Hash = index.LastSeq, hasher.Sum()
	return h, nil
}
