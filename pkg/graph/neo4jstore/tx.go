package neo4jstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// piece is a part of a batch's writes: a statement and the rows collected for it under a name.
type piece struct {
	name      string
	statement string
	columns   []string // the fields of a row that it uses, sent as a list; none: its rows are values
}

// fieldOfRow matches a field that a statement uses of its row r.
var fieldOfRow = regexp.MustCompile(`\br\.(\w+)`)

// newPiece makes a piece of a statement that begins with UNWIND $in.rows AS r and names the fields
// of r. Rows go to the server as lists, which it reads in half the time of maps.
func newPiece(name, statement string) piece {
	p := piece{name: name}
	p.statement = fieldOfRow.ReplaceAllStringFunc(statement, func(field string) string {
		column := strings.TrimPrefix(field, "r.")
		i := slices.Index(p.columns, column)
		if i < 0 {
			i = len(p.columns)
			p.columns = append(p.columns, column)
		}
		return fmt.Sprintf("r[%d]", i)
	})
	return p
}

// params returns the statement's parameters for rows.
func (p piece) params(rows []any) map[string]any {
	if len(p.columns) == 0 {
		return in("rows", rows)
	}
	lists := make([]any, len(rows))
	for i, r := range rows {
		list, r := make([]any, len(p.columns)), r.(row)
		for j, column := range p.columns {
			list[j] = r[column]
		}
		lists[i] = list
	}
	return in("rows", lists)
}

// in returns the parameters of a statement that takes a list, $in.<name>. The list is inside a map
// because Neo4j plans a statement again for each order of magnitude of a list parameter's length.
func in(name string, list any) map[string]any {
	return map[string]any{"in": map[string]any{name: list}}
}

// tx is the common part of the projections' transactions. It collects writes and sends them to the
// server at the end.
type tx struct {
	*store
	ctx       neo4j.ManagedTransaction
	partition int
	look      bool // look up the holders of keys; otherwise assume that all are free
	assumed   bool // some keys were assumed free
	claims    map[uint64][]projection.Claim
	rows      map[string][]any
	after     map[string][]any // to do after the commit
	advanced  *projection.Checkpoint
	sweeping  bool // a conversation was deleted
	repairing bool // a conversation was dropped; its rows follow batch by batch
}

// attempt runs fn in one transaction, and again if it was disturbed.
func (s *store) attempt(ctx context.Context, partition int, look bool, fn func(*tx) error) (t *tx, err error) {
	err = s.inTransaction(ctx, s.WriteTimeout, func(managed neo4j.ManagedTransaction) error {
		t = &tx{store: s, ctx: managed, partition: partition, look: look, claims: map[uint64][]projection.Claim{}, rows: map[string][]any{}, after: map[string][]any{}}
		if err := fn(t); err != nil {
			if t.assumed && codeOf(err) == "" && !errors.Is(err, projection.ErrFenced) {
				return errAssumed
			}
			return err
		}
		if !t.look && len(t.claims) > 0 {
			return errUnwritten
		}
		return t.flush(ctx)
	})
	return t, err
}

// errUnwritten means that an event leaves no row, because its conversation was deleted later in the
// batch. Then no constraint would show that its keys are taken.
var errUnwritten = errors.New("a claim is not written")

// errAssumed means that the engine needs a lookup of the claims: an event that a reducer refuses
// may be a repeat.
var errAssumed = errors.New("keys were taken for free")

// transact runs fn in one transaction and shows the result after the commit. It first assumes that
// all keys are free, as they nearly always are.
func (s *store) transact(ctx context.Context, partition int, fn func(*tx) error) error {
	t, err := s.attempt(ctx, partition, false, fn)
	if codeOf(err) == constraintViolated || errors.Is(err, errUnwritten) || errors.Is(err, errAssumed) {
		t, err = s.attempt(ctx, partition, true, fn)
	}
	if err != nil {
		return classify(err)
	}
	if err := s.finish(ctx, t); err != nil {
		// The batch is stored, so its events are not at fault; the next owner does the rest.
		return fmt.Errorf("%w after a commit: %v", projection.ErrUnavailable, err)
	}
	return nil
}

// finish does the work after the commit of a batch: it links what other partitions may have made
// meanwhile, and marks everything as settled. [store.Acquire] does it too.
func (s *store) finish(ctx context.Context, t *tx) error {
	key := s.checkpointKey(t.partition)
	if t.advanced != nil {
		statement, params := settleAfter, map[string]any{"key": key, "seq": number(t.advanced.Seq)}
		if s.link != "" && len(t.after) > 0 {
			statement, params["in"] = s.linkAndSettle(), t.after
		}
		if _, err := s.write(ctx, s.engine(statement), params); err != nil {
			return err
		}
	}
	if t.repairing {
		if _, err := s.write(ctx, s.engine(showRepairs), map[string]any{"key": key}); err != nil {
			return err
		}
	}
	for _, p := range s.tidy {
		if rows := t.after[p.name]; len(rows) > 0 {
			if _, err := s.write(ctx, p.statement, p.params(rows)); err != nil {
				return err
			}
		}
	}
	if t.sweeping {
		return s.sweep(ctx, key)
	}
	return nil
}

// linkAndSettle runs link and, if it succeeds, settleAfter.
func (d dialect) linkAndSettle() string {
	if d.link == "" {
		return settleAfter
	}
	return d.link + " WITH 1 AS linked " + settleAfter
}

// run runs a statement of the transaction.
func (t *tx) run(ctx context.Context, statement string, params map[string]any) ([][]any, error) {
	return run(ctx, t.engine(statement), func(query string) (neo4j.ResultWithContext, error) { return t.ctx.Run(ctx, query, params) })
}

// add collects a row for a piece.
func (t *tx) add(name string, r any) { t.rows[name] = append(t.rows[name], r) }

// flush writes the collected rows and the checkpoint.
func (t *tx) flush(ctx context.Context) error {
	if err := t.flushRows(ctx); err != nil || t.advanced == nil {
		return err
	}
	_, err := t.run(ctx, saveCheckpoint, checkpointParams(t.checkpointKey(t.partition), *t.advanced))
	return err
}

// flushRows writes the collected rows, one statement for each piece.
func (t *tx) flushRows(ctx context.Context) error {
	for _, p := range t.writes {
		if rows := t.rows[p.name]; len(rows) > 0 {
			if _, err := t.run(ctx, p.statement, p.params(rows)); err != nil {
				return err
			}
		}
	}
	clear(t.rows)
	return nil
}

// errNotAcquired means that a partition has no checkpoint.
var errNotAcquired = errors.New("the partition was never acquired")

// Checkpoint implements projection.Tx.
func (t *tx) Checkpoint(ctx context.Context) (projection.Checkpoint, error) {
	rows, err := t.run(ctx, lockCheckpoint, map[string]any{"key": t.checkpointKey(t.partition)})
	if err != nil {
		return projection.Checkpoint{}, err
	}
	if len(rows) == 0 {
		return projection.Checkpoint{}, errNotAcquired
	}
	return scanCheckpoint(rows[0])
}

// Advance implements projection.Tx.
func (t *tx) Advance(_ context.Context, cp projection.Checkpoint) error {
	t.advanced = &cp
	return nil
}

// Claim implements projection.Tx. The keys are written with the rows of their events. Without a
// lookup, a violated constraint shows that a key was taken, but only for events that are written.
// If an event is refused because of another one in the list, a lookup finds the holder of its other
// key.
func (t *tx) Claim(ctx context.Context, claims []projection.Claim) (map[int]projection.Claim, error) {
	if !t.look {
		if held := t.take(claims, map[events.Digest]projection.Claim{}); len(held) == 0 {
			t.assumed = t.assumed || len(claims) > 0
			return held, nil
		}
		t.look = true
		clear(t.claims)
	}
	stored, err := t.stored(ctx, claims)
	if err != nil {
		return nil, err
	}
	return t.take(claims, stored), nil
}

// take gives each event its keys if all of them are free, and returns the holders of the rest.
func (t *tx) take(claims []projection.Claim, taken map[events.Digest]projection.Claim) map[int]projection.Claim {
	held := map[int]projection.Claim{}
	for first, end := 0, 0; first < len(claims); first = end {
		free := true
		for end = first; end < len(claims) && claims[end].Seq == claims[first].Seq; end++ {
			if other, ok := taken[claims[end].Key]; ok && other.Seq != claims[end].Seq {
				held[end], free = other, false
			}
		}
		if !free {
			continue
		}
		for _, c := range claims[first:end] {
			taken[c.Key] = c
		}
		t.claims[claims[first].Seq] = claims[first:end]
	}
	return held
}

// stored looks up who holds the keys of claims.
func (t *tx) stored(ctx context.Context, claims []projection.Claim) (map[events.Digest]projection.Claim, error) {
	held := map[events.Digest]projection.Claim{}
	if len(claims) == 0 {
		return held, nil
	}
	keys := make([]string, len(claims))
	for i := range claims {
		keys[i] = t.digestKey(claims[i].Key)
	}
	rows, err := t.run(ctx, t.holders, holdersOf(nil, keys))
	if err != nil {
		return nil, err
	}
	found, err := scanHolders(rows)
	for i, c := range claims {
		if h, ok := found[holder{t.key(c.Conversation), keys[i]}]; ok {
			held[c.Key] = h
		}
	}
	return held, err
}

// lookForHolders returns a dialect's lookup of the holders of keys: its deleted conversations, the
// label of all its events, and the labels of events whose payloads have ids.
func lookForHolders(conversation, event string, payloads ...string) string {
	const of = " RETURN e.conversation AS conversation, key AS claimed, e.seq AS seq, e.content_digest AS content"
	parts := []string{
		"UNWIND $in.conversations AS key MATCH (c:" + conversation + " {key: key}) WHERE c.deleted_seq > 0 RETURN key AS conversation, '' AS claimed, c.deleted_seq AS seq, '' AS content",
		"UNWIND $in.keys AS key MATCH (e:" + event + " {identity: key})" + of,
	}
	for _, label := range payloads {
		parts = append(parts, "UNWIND $in.keys AS key MATCH (e:"+label+" {payload_key: key})"+of)
	}
	return "CALL () { " + strings.Join(parts, " UNION ALL ") + " } RETURN conversation, claimed, seq, content"
}

// tombstone returns the piece that turns a conversation into a tombstone, and any related pieces.
func tombstone(conversation, more string) piece {
	return newPiece("deleted", "UNWIND $in.rows AS r MATCH (c:"+conversation+" {key: r.key}) SET c.deleted_seq = r.seq, c.sweep = c.checkpoint"+more)
}

// addEvents stores the claims of events that no other row of theirs holds. In a deleted
// conversation the tombstone holds every key.
func (t *tx) addEvents(isThere func(events.ConversationID) bool) {
	for _, seq := range slices.Sorted(maps.Keys(t.claims)) {
		if id := t.claims[seq][0].Conversation; isThere(id) {
			t.add("events", t.claimed(id, seq))
		}
	}
}

// claimed returns the row of an event with its claims.
func (t *tx) claimed(id events.ConversationID, seq uint64) row {
	r := row{"conversation": t.key(id), "seq": number(seq)}
	t.claim(r, seq)
	return r
}

// claim adds the claims of an event to its row.
func (t *tx) claim(r row, seq uint64) {
	for i, c := range t.claims[seq] {
		r["content_digest"] = c.Content.String()
		if i == 0 {
			r["identity"] = t.digestKey(c.Key)
		} else {
			r["payload_key"] = t.digestKey(c.Key)
		}
	}
	delete(t.claims, seq)
}

// Fail implements projection.Tx. It is the last call of a batch: if another batch follows in the
// same transaction, it must find these rows.
func (t *tx) Fail(ctx context.Context, failed []projection.Failed) error {
	for i := range failed {
		f := &failed[i]
		id := events.ConversationID{Tenant: clean(f.Conversation.Tenant), ID: clean(f.Conversation.ID)}
		t.add("failed", row{
			"generation": t.generation, "seq": number(f.Seq), "conversation": t.key(id), "tenant": id.Tenant, "id": id.ID,
			"event_id": clean(f.EventID), "type": clean(f.Type), "class": string(f.Class), "reason": clean(f.Reason),
		})
	}
	if t.repairing {
		return classify(t.flushRows(ctx))
	}
	return nil
}

// fail returns the piece that records failed events.
func fail(prefixed string) piece {
	return newPiece("failed", "UNWIND $in.rows AS r MERGE (f:"+prefixed+`FailedEvent {generation: r.generation, seq: r.seq})
		ON CREATE SET f.conversation = r.conversation, f.tenant = r.tenant, f.id = r.id, f.event_id = r.event_id, f.type = r.type, f.class = r.class, f.reason = r.reason`)
}

// clean makes the fields of an invalid event valid text.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// pace limits how much is deleted at once.
type pace struct {
	rows int64 // nodes in one transaction
	rest int   // after each, leave the server alone for this many times as long as it took
}

var (
	fast   = pace{rows: 5000}
	gentle = pace{rows: 500, rest: 2} // while others read and write
)

// sweep deletes the rows of the deleted conversations of a partition.
func (s *store) sweep(ctx context.Context, checkpoint string) error {
	rows, err := s.read(ctx, "MATCH (c:"+s.conversation+" {sweep: $checkpoint}) RETURN c.key", map[string]any{"checkpoint": checkpoint})
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, statement := range s.sweeps {
			if err := s.drain(ctx, statement, map[string]any{"key": row[0]}, fast); err != nil {
				return err
			}
		}
		if _, err := s.write(ctx, "MATCH (c:"+s.conversation+" {key: $key}) REMOVE c.sweep", map[string]any{"key": row[0]}); err != nil {
			return err
		}
	}
	return nil
}

// drain runs a statement of a sweep until it finds no more rows. If they exceed the server's
// memory, it halves the number of rows each time.
func (s *store) drain(ctx context.Context, statement string, params map[string]any, by pace) error {
	for limit := by.rows; ; {
		params["limit"] = limit
		began := time.Now()
		deleted, err := s.write(ctx, statement, params)
		if errors.Is(err, projection.ErrTooLarge) && limit > 1 {
			limit /= 2
			continue
		}
		if err != nil {
			return err
		}
		if n, _ := deleted[0][0].(int64); n < limit {
			return nil
		}
		select {
		case <-time.After(time.Duration(by.rest) * time.Since(began)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Drop implements projection.Tx.
func (t *tx) Drop(ctx context.Context, id events.ConversationID) error {
	t.repairing = true
	params := map[string]any{"key": t.key(id), "limit": number(maxSeq)}
	for _, statement := range slices.Concat(t.sweeps, []string{"MATCH (f:$EngineFailedEvent {conversation: $key}) DELETE f", "MATCH (c:" + t.conversation + " {key: $key}) DETACH DELETE c"}) {
		if _, err := t.run(ctx, statement, params); err != nil {
			return err
		}
	}
	_, err := t.run(ctx, countRepair, map[string]any{"key": t.checkpointKey(t.partition)})
	return err
}

// empty returns a statement that deletes the nodes of a label that belong to a conversation, by the
// index on it and these properties.
func empty(label string, by ...string) string {
	return "MATCH (n:" + label + ") WHERE n.conversation = $key" + areThere(by) + " WITH n LIMIT $limit DETACH DELETE n RETURN count(*)"
}

// areThere states that a node has properties: Neo4j uses an index only if the statement mentions
// all of its properties.
func areThere(properties []string) (where string) {
	for _, name := range properties {
		where += " AND n." + name + " IS NOT NULL"
	}
	return where
}
