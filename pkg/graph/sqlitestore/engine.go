package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// store is the common part of the projections' stores: positions, claims and failed events.
type store struct {
	*db
	projection string
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
func (s *store) inside(ctx context.Context) queryer {
	return func(query string, args ...any) (*sql.Rows, error) { return s.writer.query(ctx, query, args...) }
}

const checkpointColumns = "partition, epoch, seq, event, fingerprint, applied, duplicates, halted"

func readCheckpoint(q queryer, partition int) (cp projection.Checkpoint, err error) {
	rows, err := q("SELECT "+checkpointColumns+" FROM checkpoint WHERE partition = ?", partition)
	err = each(rows, err, func(rows *sql.Rows) error { return scanCheckpoint(rows, &cp) })
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
	err = s.snapshot(ctx, func(q queryer) error {
		rows, err := q("SELECT " + checkpointColumns + ", repairs FROM checkpoint ORDER BY partition")
		return each(rows, err, func(rows *sql.Rows) error {
			var cp projection.Checkpoint
			err := scanCheckpoint(rows, &cp, &cp.Repairs)
			list = append(list, cp)
			return err
		})
	})
	return list, err
}

// Failed implements projection.ReadStore.
func (s *store) Failed(ctx context.Context, query projection.FailedQuery) (list []projection.Failed, err error) {
	err = s.snapshot(ctx, func(q queryer) error {
		rows, err := q("SELECT seq, tenant, conversation, event_id, type, class, reason FROM failed WHERE seq > ? AND (? = '' OR tenant = ?) AND (? = '' OR conversation = ?) AND (? = '' OR class = ?) ORDER BY seq LIMIT ?",
			query.After, query.Tenant, query.Tenant, query.Conversation, query.Conversation, query.Class, query.Class, query.Limit)
		return each(rows, err, func(rows *sql.Rows) error {
			f := projection.Failed{Projection: s.projection}
			err := rows.Scan(&f.Seq, &f.Conversation.Tenant, &f.Conversation.ID, &f.EventID, &f.Type, &f.Class, &f.Reason)
			list = append(list, f)
			return err
		})
	})
	return list, err
}

// CountFailed implements projection.ReadStore.
func (s *store) CountFailed(ctx context.Context) (count map[projection.Class]int, err error) {
	count = map[projection.Class]int{}
	err = s.snapshot(ctx, func(q queryer) error {
		rows, err := q("SELECT class, count(*) FROM failed GROUP BY class")
		return each(rows, err, func(rows *sql.Rows) error {
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
	err = s.snapshot(ctx, func(q queryer) error {
		keys, deleted := map[events.ConversationID]int64{}, map[events.ConversationID]uint64{}
		for _, claim := range claims {
			id := claim.Conversation
			if _, ok := keys[id]; ok {
				continue
			}
			var c int64
			var tombstone uint64
			rows, err := q("SELECT c, deleted_seq FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
			if err := each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&c, &tombstone) }); err != nil {
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
func holders(q queryer, keys map[events.ConversationID]int64, claims []projection.Claim) (map[int]projection.Claim, error) {
	held := map[int]projection.Claim{}
	for i, claim := range claims {
		rows, err := q("SELECT seq, content FROM identity WHERE c = ? AND key = ?", keys[claim.Conversation], claim.Key[:])
		err = each(rows, err, func(rows *sql.Rows) error {
			h := projection.Claim{Conversation: claim.Conversation, Key: claim.Key}
			err := rows.Scan(&h.Seq, blob(&h.Content))
			held[i] = h
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return held, nil
}

// tx is the common part of the projections' transactions. It remembers the numbers of conversations
// it has seen, and assigns new ones.
type tx struct {
	*store
	partition int
	keys      map[events.ConversationID]int64
	next      int64 // the next free number, 0 while unknown
}

func (s *store) newTx(partition int) tx {
	return tx{store: s, partition: partition, keys: map[events.ConversationID]int64{}}
}

// Checkpoint implements projection.Tx. The transaction already holds SQLite's only write lock.
func (t *tx) Checkpoint(ctx context.Context) (projection.Checkpoint, error) {
	return readCheckpoint(t.inside(ctx), t.partition)
}

// Advance implements projection.Tx.
func (t *tx) Advance(ctx context.Context, cp projection.Checkpoint) error { return t.advance(ctx, cp) }

// key returns the number of a conversation, and assigns one if it has none.
func (t *tx) key(ctx context.Context, id events.ConversationID) (int64, error) {
	if c := t.keys[id]; c != 0 {
		return c, nil
	}
	if t.next == 0 {
		rows, err := t.writer.query(ctx, "SELECT coalesce(max(c), 0) + 1 FROM conversation")
		if err := each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&t.next) }); err != nil {
			return 0, err
		}
	}
	t.keys[id] = t.next
	t.next++
	return t.keys[id], nil
}

// Claim implements projection.Tx. It takes all keys at once, because they are nearly always free.
// If one is not, it undoes that and goes through the events one by one.
func (t *tx) Claim(ctx context.Context, claims []projection.Claim) (map[int]projection.Claim, error) {
	for _, c := range claims {
		if _, err := t.key(ctx, c.Conversation); err != nil {
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
		if _, err := t.writer.exec(ctx, "DELETE FROM identity WHERE c = ? AND key = ? AND seq = ?", t.keys[c.Conversation], c.Key[:], c.Seq); err != nil {
			return nil, err
		}
	}
	held := map[int]projection.Claim{}
	for first, end := 0, 0; first < len(claims); first = end {
		for end = first + 1; end < len(claims) && claims[end].Seq == claims[first].Seq; {
			end++
		}
		others, err := holders(t.inside(ctx), t.keys, claims[first:end])
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

func (t *tx) claim(ctx context.Context, claims []projection.Claim) (written int64, err error) {
	return t.writer.insert(ctx, insertion{"identity (c, key, seq, content)", 4, "ON CONFLICT DO NOTHING"}, len(claims), func(args []any, i int) []any {
		c := &claims[i]
		return append(args, t.keys[c.Conversation], c.Key[:], c.Seq, c.Content[:])
	})
}

// Fail implements projection.Tx.
func (t *tx) Fail(ctx context.Context, failed []projection.Failed) error {
	_, err := t.writer.insert(ctx, insertion{"failed (seq, tenant, conversation, event_id, type, class, reason)", 7, "ON CONFLICT DO NOTHING"}, len(failed), func(args []any, i int) []any {
		f := &failed[i]
		return append(args, f.Seq, clean(f.Conversation.Tenant), clean(f.Conversation.ID), clean(f.EventID), clean(f.Type), string(f.Class), clean(f.Reason))
	})
	return err
}

// drop deletes a conversation's rows from tables, its claims and, with all, its failed events and
// its own row.
func (t *tx) drop(ctx context.Context, id events.ConversationID, c int64, all bool, tables ...string) error {
	for _, table := range append(tables, "identity") {
		if _, err := t.writer.exec(ctx, "DELETE FROM "+table+" WHERE c = ?", c); err != nil {
			return err
		}
	}
	if !all {
		return nil
	}
	if _, err := t.writer.exec(ctx, "DELETE FROM failed WHERE tenant = ? AND conversation = ?", id.Tenant, id.ID); err != nil {
		return err
	}
	if _, err := t.writer.exec(ctx, "DELETE FROM conversation WHERE c = ?", c); err != nil {
		return err
	}
	delete(t.keys, id)
	t.next = 0
	_, err := t.writer.exec(ctx, "UPDATE checkpoint SET repairs = repairs + 1 WHERE partition = ?", t.partition)
	return err
}

// find returns the number of a conversation, 0 if it has none.
func (t *tx) find(ctx context.Context, id events.ConversationID) (c int64, err error) {
	rows, err := t.writer.query(ctx, "SELECT c FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
	err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&c) })
	return c, err
}

// readRepairs counts the repairs of all partitions; the rows do not say whose they are.
func readRepairs(q queryer) (n uint64, err error) {
	rows, err := q("SELECT coalesce(sum(repairs), 0) FROM checkpoint")
	err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&n) })
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
