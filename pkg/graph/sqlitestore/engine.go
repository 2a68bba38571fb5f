package sqlitestore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Codec is what one read model adds to a file: its tables, and how they are read and written. The
// engine's half is in [Store] and [Tx].
type Codec[U projection.Unit] struct {
	// Projection is the name of the projection.
	Projection string
	// Schema creates the tables of a new file. One of them must be
	//
	//	conversation (c INTEGER PRIMARY KEY, tenant TEXT, id TEXT, deleted_seq INTEGER, …, UNIQUE (tenant, id))
	//
	// where deleted_seq is 0 unless the conversation was deleted. The names checkpoint, failed,
	// identity and came_to_serve are taken. To change the tables, raise projection.Projection.Version: a
	// rebuild then makes a new file.
	Schema string
	// Indexes are statements CREATE INDEX IF NOT EXISTS that run whenever the file is opened for writing, so
	// that a file of an earlier version gets a new index without a rebuild. May be empty.
	Indexes string
	// Delete are the statements that delete the rows of a conversation, except for its row in the
	// table conversation. Their only parameter is its number c. See [DeleteFrom].
	Delete []string
	// Begin returns the read model's part of a transaction.
	Begin func(t *Tx) Work[U]
	// Hash returns the hash of a conversation's rows, or a zero Hash if it has no row. Leave out
	// sequences and numbers of conversations; see projection.ReadStore.
	Hash func(q Queryer, id events.ConversationID) (projection.ConversationHash, error)
}

// Work is the read model's part of a transaction: two methods of projection.Tx.
type Work[U projection.Unit] interface {
	// Load prepares the unit of work for these events. It enters the numbers of conversations that
	// it finds in Tx.Keys.
	Load(ctx context.Context, list []*events.Recorded) (U, error)
	// Save writes the changes of the unit. Every conversation that an event was applied to must have
	// a row, because the claims of its events refer to the row.
	Save(ctx context.Context, u U) error
}

// DeleteFrom returns statements for Codec.Delete: each deletes the rows of a table whose column c is
// the conversation's number.
func DeleteFrom(tables ...string) []string {
	list := make([]string, len(tables))
	for i, table := range tables {
		list[i] = "DELETE FROM " + table + " WHERE c = ?"
	}
	return list
}

// Store is a read model in a file. It implements projection.Store; a read model adds its own reads
// by embedding it and calling Snapshot.
type Store[U projection.Unit] struct {
	store
	codec Codec[U]
}

// Open opens or creates the file of a read model for writing, and locks it; see [Path]. It returns
// [ErrLocked] or projection.ErrRebuild, see the package comment.
func Open[U projection.Unit](ctx context.Context, path string, codec Codec[U]) (*Store[U], error) {
	d, err := openTables(ctx, path, engineSchema+codec.Schema+"SELECT c, tenant, id, deleted_seq FROM conversation LIMIT 0;", schemaVersion)
	if err != nil {
		return nil, err
	}
	if err := d.makeIndexes(ctx, engineIndexes+codec.Indexes); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return &Store[U]{store{d, codec.Projection, codec.Delete}, codec}, nil
}

// OpenReader opens a read model that another process writes. Until that process has made it, the
// error is fs.ErrNotExist.
func OpenReader[U projection.Unit](path string, codec Codec[U]) (*Store[U], error) {
	d, err := openReader(path)
	if err != nil {
		return nil, err
	}
	return &Store[U]{store{d, codec.Projection, codec.Delete}, codec}, nil
}

// Update implements projection.Store.
func (s *Store[U]) Update(ctx context.Context, partition int, fn func(projection.Tx[U]) error) error {
	return s.transact(ctx, func() error {
		t := &Tx{store: &s.store, partition: partition, Keys: map[events.ConversationID]int64{}}
		return fn(struct {
			*Tx
			Work[U]
		}{t, s.codec.Begin(t)})
	})
}

// Hash implements projection.ReadStore.
func (s *Store[U]) Hash(ctx context.Context, id events.ConversationID) (h projection.ConversationHash, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		h, err = s.codec.Hash(q, id)
		return err
	})
	return h, err
}

// hashedTogether is how many conversations are hashed in one snapshot. All of them take minutes in a large store, and
// the WAL grows with all that is written as long as a snapshot is open.
const hashedTogether = 64

// Hashes implements projection.ReadStore. SQLite compares text bytewise, as Go does.
func (s *Store[U]) Hashes(ctx context.Context, yield func(projection.ConversationHash) error) error {
	var ids []events.ConversationID
	if err := s.Snapshot(ctx, func(q Queryer) error {
		rows, err := q("SELECT tenant, id FROM conversation ORDER BY tenant, id")
		ids, err = All(rows, err, func(rows *sql.Rows, id *events.ConversationID) error { return rows.Scan(&id.Tenant, &id.ID) })
		return err
	}); err != nil {
		return err
	}
	for page := range slices.Chunk(ids, hashedTogether) {
		var list []projection.ConversationHash
		if err := s.Snapshot(ctx, func(q Queryer) error {
			for _, id := range page {
				h, err := s.codec.Hash(q, id)
				if err != nil {
					return err
				}
				list = append(list, h)
			}
			return nil
		}); err != nil {
			return err
		}
		for _, h := range list {
			if h.Hash == (events.Digest{}) { // its rows were removed since it was listed
				continue
			}
			if err := yield(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// store is the engine's half of a store, whatever its unit: positions, claims and failed events.
type store struct {
	*db
	projection string
	deletes    []string // Codec.Delete
}

// Close releases the file. The store can't be used afterwards.
func (s *store) Close() error { return s.close() }

// Acquire implements projection.Store.
func (s *store) Acquire(ctx context.Context, partition int, fingerprint string) (cp projection.Checkpoint, err error) {
	err = s.transact(ctx, func() error {
		if cp, err = readCheckpoint(s.inside(ctx), partition); err != nil {
			return err
		}
		if cp.Fingerprint != "" && cp.Fingerprint != fingerprint {
			return projection.OtherBuild(s.projection, cp.Fingerprint, fingerprint)
		}
		cp.Partition, cp.Fingerprint = partition, fingerprint
		cp.Epoch++
		return s.advance(ctx, cp)
	})
	if err != nil {
		return projection.Checkpoint{}, err
	}
	return cp, nil
}

// Halt implements projection.Store.
func (s *store) Halt(ctx context.Context, partition int, epoch uint64, reason string) error {
	return s.transact(ctx, func() error {
		cp, err := readCheckpoint(s.inside(ctx), partition)
		if err != nil {
			return err
		}
		if cp.Epoch != epoch {
			return projection.ErrFenced
		}
		cp.Halted = reason
		return s.advance(ctx, cp)
	})
}

// inside runs queries on the writer's connection, inside its transaction.
func (s *store) inside(ctx context.Context) Queryer {
	return func(query string, args ...any) (*sql.Rows, error) { return s.writer.query(ctx, query, args...) }
}

const checkpointColumns = "partition, epoch, seq, event, fingerprint, applied, duplicates, halted"

func readCheckpoint(q Queryer, partition int) (cp projection.Checkpoint, err error) {
	rows, err := q("SELECT "+checkpointColumns+" FROM checkpoint WHERE partition = ?", partition)
	err = Each(rows, err, func(rows *sql.Rows) error { return scanCheckpoint(rows, &cp) })
	return cp, err
}

func scanCheckpoint(rows *sql.Rows, cp *projection.Checkpoint, more ...any) error {
	return rows.Scan(append([]any{&cp.Partition, &cp.Epoch, &cp.Seq, blob(&cp.Event), &cp.Fingerprint, &cp.Applied, &cp.Duplicates, &cp.Halted}, more...)...)
}

func (s *store) advance(ctx context.Context, cp projection.Checkpoint) error {
	_, err := s.writer.exec(ctx, "INSERT INTO checkpoint ("+checkpointColumns+`) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (partition) DO UPDATE SET
		epoch = excluded.epoch, seq = excluded.seq, event = excluded.event, fingerprint = excluded.fingerprint,
		applied = excluded.applied, duplicates = excluded.duplicates, halted = excluded.halted`,
		cp.Partition, cp.Epoch, cp.Seq, cp.Event[:], cp.Fingerprint, cp.Applied, cp.Duplicates, cp.Halted)
	return err
}

// Checkpoints implements projection.ReadStore.
func (s *store) Checkpoints(ctx context.Context) (list []projection.Checkpoint, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		rows, err := q("SELECT " + checkpointColumns + ", repairs FROM checkpoint ORDER BY partition")
		list, err = All(rows, err, func(rows *sql.Rows, cp *projection.Checkpoint) error { return scanCheckpoint(rows, cp, &cp.Repairs) })
		return err
	})
	return list, err
}

// Failed implements projection.ReadStore. There may be as many failed events as events, if agents go on writing to
// deleted conversations, so those of a conversation or a class are found by an index, which also orders them. A plus
// keeps SQLite from choosing another index.
func (s *store) Failed(ctx context.Context, query projection.FailedQuery) (list []projection.Failed, err error) {
	where, args := "seq > ?", []any{min(query.After, maxSeq)}
	filter := func(column, value string) {
		if value != "" {
			where, args = where+" AND "+column+" = ?", append(args, value)
		}
	}
	if query.Conversation != "" {
		filter("tenant", query.Tenant)
		filter("conversation", query.Conversation)
		filter("+class", string(query.Class))
	} else {
		filter("+tenant", query.Tenant)
		filter("class", string(query.Class))
	}
	err = s.Snapshot(ctx, func(q Queryer) error {
		rows, err := q("SELECT seq, tenant, conversation, event_id, type, class, reason FROM failed WHERE "+where+" ORDER BY seq LIMIT ?", append(args, query.Limit)...)
		return Each(rows, err, func(rows *sql.Rows) error {
			f := projection.Failed{Projection: s.projection}
			err := rows.Scan(&f.Seq, &f.Conversation.Tenant, &f.Conversation.ID, &f.EventID, &f.Type, &f.Class, &f.Reason)
			list = append(list, f)
			return err
		})
	})
	return list, err
}

const countFailed = "SELECT class, count(*) FROM failed GROUP BY class"

// CountFailed implements projection.ReadStore.
func (s *store) CountFailed(ctx context.Context) (count map[projection.Class]int, err error) {
	count = map[projection.Class]int{}
	err = s.Snapshot(ctx, func(q Queryer) error {
		rows, err := q(countFailed)
		return Each(rows, err, func(rows *sql.Rows) error {
			var class projection.Class
			var n int
			err := rows.Scan(&class, &n)
			count[class] = n
			return err
		})
	})
	return count, err
}

// Holders implements projection.ReadStore.
func (s *store) Holders(ctx context.Context, claims []projection.Claim) (held map[int]projection.Claim, err error) {
	err = s.Snapshot(ctx, func(q Queryer) error {
		keys, deleted := map[events.ConversationID]int64{}, map[events.ConversationID]uint64{}
		for _, claim := range claims {
			id := claim.Conversation
			if _, ok := keys[id]; ok {
				continue
			}
			var c int64
			var tombstone uint64
			rows, err := q("SELECT c, deleted_seq FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
			if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&c, &tombstone) }); err != nil {
				return err
			}
			keys[id], deleted[id] = c, tombstone
		}
		if held, err = holders(q, keys, claims); err != nil {
			return err
		}
		for i, claim := range claims {
			if seq := deleted[claim.Conversation]; seq != 0 {
				held[i] = projection.Claim{Conversation: claim.Conversation, Key: claim.Key, Seq: seq}
			}
		}
		return nil
	})
	return held, err
}

// holders looks up who holds the keys of claims.
func holders(q Queryer, keys map[events.ConversationID]int64, claims []projection.Claim) (map[int]projection.Claim, error) {
	held := map[int]projection.Claim{}
	return held, Selection{"seq, content", "identity", []string{"c", "key"}}.lookup(q, len(claims), func(args []any, i int) []any {
		return append(args, keys[claims[i].Conversation], claims[i].Key[:])
	}, func(rows *sql.Rows) error {
		var i int
		var h projection.Claim
		err := rows.Scan(&i, &h.Seq, blob(&h.Content))
		h.Conversation, h.Key = claims[i].Conversation, claims[i].Key
		held[i] = h
		return err
	})
}

// Tx is the engine's half of a transaction, and what a read model's half reads and writes with.
type Tx struct {
	*store
	// Keys are the numbers of the conversations that the transaction has seen.
	Keys      map[events.ConversationID]int64
	partition int
	next      int64 // the next free number, 0 while unknown
}

// Exec runs a statement.
func (t *Tx) Exec(ctx context.Context, statement string, args ...any) (driver.Result, error) {
	return t.writer.exec(ctx, statement, args...)
}

// Query runs a query and returns its rows, for [Each].
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.writer.query(ctx, query, args...)
}

// Insert writes n rows, many per statement, and returns how many it wrote. add appends the values of
// row i.
func (t *Tx) Insert(ctx context.Context, ins Insertion, n int, add func(args []any, i int) []any) (written int64, err error) {
	return t.writer.insert(ctx, ins, n, add)
}

// Lookup finds the rows of n keys, many per query. add appends the values of key i; scan is called
// for the rows that exist, and their first column is i.
func (t *Tx) Lookup(ctx context.Context, sel Selection, n int, add func(args []any, i int) []any, scan func(*sql.Rows) error) error {
	return t.writer.lookup(ctx, sel, n, add, scan)
}

// Clear deletes the rows of a conversation and its claims, for one that was deleted: its row in the
// table conversation stays and holds its tombstone.
func (t *Tx) Clear(ctx context.Context, c int64) error {
	for _, statement := range append(slices.Clip(t.deletes), "DELETE FROM identity WHERE c = ?") {
		if _, err := t.Exec(ctx, statement, c); err != nil {
			return err
		}
	}
	return nil
}

// Drop implements projection.Tx.
func (t *Tx) Drop(ctx context.Context, id events.ConversationID) error {
	var c int64 // 0 if it has no row
	rows, err := t.Query(ctx, "SELECT c FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
	if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&c) }); err != nil {
		return err
	}
	if err := t.Clear(ctx, c); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, "DELETE FROM failed WHERE tenant = ? AND conversation = ?", id.Tenant, id.ID); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, "DELETE FROM conversation WHERE c = ?", c); err != nil {
		return err
	}
	delete(t.Keys, id)
	t.next = 0
	_, err = t.Exec(ctx, "UPDATE checkpoint SET repairs = repairs + 1 WHERE partition = ?", t.partition)
	return err
}

// Checkpoint implements projection.Tx. The transaction already holds SQLite's only write lock.
func (t *Tx) Checkpoint(ctx context.Context) (projection.Checkpoint, error) {
	return readCheckpoint(t.inside(ctx), t.partition)
}

// Advance implements projection.Tx.
func (t *Tx) Advance(ctx context.Context, cp projection.Checkpoint) error { return t.advance(ctx, cp) }

// Key returns the number of a conversation, and assigns one if it has none.
func (t *Tx) Key(ctx context.Context, id events.ConversationID) (int64, error) {
	if c := t.Keys[id]; c != 0 {
		return c, nil
	}
	if t.next == 0 {
		rows, err := t.Query(ctx, "SELECT coalesce(max(c), 0) + 1 FROM conversation")
		if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&t.next) }); err != nil {
			return 0, err
		}
	}
	t.Keys[id] = t.next
	t.next++
	return t.Keys[id], nil
}

// Touch returns the number of a conversation that a unit changed, as Key does. If the unit deleted the conversation, it deletes its
// rows first, as Clear does.
func (t *Tx) Touch(ctx context.Context, id events.ConversationID, dropped bool) (int64, error) {
	c, err := t.Key(ctx, id)
	if err == nil && dropped {
		err = t.Clear(ctx, c)
	}
	return c, err
}

// Claim implements projection.Tx. It takes all keys at once, because they are nearly always free.
// If one is not, it undoes that and goes through the events one by one.
func (t *Tx) Claim(ctx context.Context, claims []projection.Claim) (map[int]projection.Claim, error) {
	for _, c := range claims {
		if _, err := t.Key(ctx, c.Conversation); err != nil {
			return nil, err
		}
	}
	written, err := t.claim(ctx, claims)
	if err != nil || written == int64(len(claims)) {
		return nil, err
	}
	for _, c := range claims {
		if written == 0 {
			break
		}
		if _, err := t.Exec(ctx, "DELETE FROM identity WHERE c = ? AND key = ? AND seq = ?", t.Keys[c.Conversation], c.Key[:], c.Seq); err != nil {
			return nil, err
		}
	}
	held := map[int]projection.Claim{}
	for first, end := 0, 0; first < len(claims); first = end {
		for end = first + 1; end < len(claims) && claims[end].Seq == claims[first].Seq; {
			end++
		}
		others, err := holders(t.inside(ctx), t.Keys, claims[first:end])
		if err != nil {
			return nil, err
		}
		for i, other := range others {
			held[first+i] = other
		}
		if len(others) == 0 {
			if _, err := t.claim(ctx, claims[first:end]); err != nil {
				return nil, err
			}
		}
	}
	return held, nil
}

// claim takes the free keys among these, and returns their number. It writes them in the order of the table: keys are
// hashes, and in the order of the log each would go to another place of the table, which costs a third more. If keys
// are equal, the first in the log also comes first here.
func (t *Tx) claim(ctx context.Context, claims []projection.Claim) (written int64, err error) {
	type row struct {
		c int64
		*projection.Claim
	}
	rows := make([]row, len(claims))
	for i := range claims {
		rows[i] = row{t.Keys[claims[i].Conversation], &claims[i]}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.c, b.c), bytes.Compare(a.Key[:], b.Key[:]))
	})
	return t.Insert(ctx, Insertion{"identity (c, key, seq, content)", 4, "ON CONFLICT DO NOTHING"}, len(rows), func(args []any, i int) []any {
		r := &rows[i]
		return append(args, r.c, r.Key[:], r.Seq, r.Content[:])
	})
}

// Fail implements projection.Tx.
func (t *Tx) Fail(ctx context.Context, failed []projection.Failed) error {
	_, err := t.Insert(ctx, Insertion{"failed (seq, tenant, conversation, event_id, type, class, reason)", 7, "ON CONFLICT DO NOTHING"}, len(failed), func(args []any, i int) []any {
		f := &failed[i]
		return append(args, f.Seq, clean(f.Conversation.Tenant), clean(f.Conversation.ID), clean(f.EventID), clean(f.Type), string(f.Class), clean(f.Reason))
	})
	return err
}

// readRepairs counts the repairs of all partitions; the rows do not say whose they are.
func readRepairs(q Queryer) (n uint64, err error) {
	rows, err := q("SELECT coalesce(sum(repairs), 0) FROM checkpoint")
	err = Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// clean makes the fields of an invalid event fit for a text column.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// blobScanner scans a BLOB of 16 bytes, or an empty one, into a digest.
type blobScanner struct{ dst *events.Digest }

func blob(dst *events.Digest) *blobScanner { return &blobScanner{dst} }

// Scan implements sql.Scanner.
func (b *blobScanner) Scan(value any) error {
	raw, ok := value.([]byte)
	if !ok || (len(raw) != len(b.dst) && len(raw) != 0) {
		return fmt.Errorf("not a digest: %T of %d bytes", value, len(raw))
	}
	*b.dst = events.Digest{}
	copy(b.dst[:], raw)
	return nil
}
