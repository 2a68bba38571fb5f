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

// piece is a part of the writing of a batch: a statement for the rows that are collected
// under a name.
type piece struct {
	name      string
	statement string
	columns   []string // what of a row it uses, as a list; none: its rows are values
}

// fieldOfRow is what a statement uses of its row r.
var fieldOfRow = regexp.MustCompile(`\br\.(\w+)`)

// newPiece makes a piece of a statement that begins with UNWIND $in.rows AS r and names
// the fields of r. They go to the server as lists, which it reads in half the time that
// it takes for maps.
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

// params are those of the statement for rows.
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

// in are the parameters of a statement that takes a list, $in.<name>. The list is in a
// map since Neo4j plans a statement anew for each length, 1, 10, 100 or more, of a list
// among its parameters.
func in(name string, list any) map[string]any {
	return map[string]any{"in": map[string]any{name: list}}
}

// tx is the part of a transaction that the projections share. What is to be written is
// collected and goes to the server at the end.
type tx struct {
	*store
	ctx       neo4j.ManagedTransaction
	partition int
	look      bool // look for the holders of keys; else take them all for free
	assumed   bool // some were taken so
	claims    map[uint64][]projection.Claim
	rows      map[string][]any
	after     map[string][]any // for after the commit
	advanced  *projection.Checkpoint
	sweeping  bool // a conversation was deleted
	repairing bool // a conversation was dropped: its rows come batch after batch
}

// attempt runs fn in one transaction, again if it was disturbed.
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

// errUnwritten says that an event leaves no row, because its conversation was deleted
// later in the batch: nothing would tell that its keys are taken.
var errUnwritten = errors.New("a claim is not written")

// errAssumed says that the engine could not use what it was told of claims, without a
// look: an event that a reducer refuses may be a repeat.
var errAssumed = errors.New("keys were taken for free")

// transact runs fn in one transaction and shows what it did once it is committed. Keys
// are taken for free at first: almost always they are.
func (s *store) transact(ctx context.Context, partition int, fn func(*tx) error) error {
	t, err := s.attempt(ctx, partition, false, fn)
	if codeOf(err) == constraintViolated || errors.Is(err, errUnwritten) || errors.Is(err, errAssumed) {
		t, err = s.attempt(ctx, partition, true, fn)
	}
	if err != nil {
		return classify(err)
	}
	if err := s.finish(ctx, t); err != nil {
		// Not the batch's fault, which is stored: the next owner does the rest.
		return fmt.Errorf("%w after a commit: %v", projection.ErrUnavailable, err)
	}
	return nil
}

// finish does what comes after the commit of a batch: it links what other partitions may
// have made meanwhile, and says that everything is settled. [store.Acquire] does it too.
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

// linkAndSettle is link and, if it succeeds, settleAfter.
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

// add is a row for a piece.
func (t *tx) add(name string, r any) { t.rows[name] = append(t.rows[name], r) }

// flush writes what was collected, and the checkpoint.
func (t *tx) flush(ctx context.Context) error {
	if err := t.flushRows(ctx); err != nil || t.advanced == nil {
		return err
	}
	_, err := t.run(ctx, saveCheckpoint, checkpointParams(t.checkpointKey(t.partition), *t.advanced))
	return err
}

// flushRows writes what was collected, a statement for each piece.
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

// errNotAcquired says that a partition has no checkpoint.
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

// Claim implements projection.Tx. The keys are written with the rows of their events.
// Without a look a violated constraint tells that a key was not free, but only of events
// that are written: if one is refused because of another of the list, a look says who
// holds its other key.
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

// take gives each event its keys if nobody has taken one of them, and returns who has.
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

// lookForHolders is the look of a dialect for the holders of keys: its conversations that
// were deleted, the label of all its events, and those of events whose payloads have ids.
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

// tombstone is the piece that makes a conversation a tombstone, and what else that takes.
func tombstone(conversation, more string) piece {
	return newPiece("deleted", "UNWIND $in.rows AS r MATCH (c:"+conversation+" {key: r.key}) SET c.deleted_seq = r.seq, c.sweep = c.checkpoint"+more)
}

// addEvents keeps what events have claimed that no other row of theirs has. In a
// conversation that is not there any more the tombstone holds every key.
func (t *tx) addEvents(isThere func(events.ConversationID) bool) {
	for _, seq := range slices.Sorted(maps.Keys(t.claims)) {
		if id := t.claims[seq][0].Conversation; isThere(id) {
			t.add("events", t.claimed(id, seq))
		}
	}
}

// claimed is the row of an event, with what it has claimed.
func (t *tx) claimed(id events.ConversationID, seq uint64) row {
	r := row{"conversation": t.key(id), "seq": number(seq)}
	t.claim(r, seq)
	return r
}

// claim gives the row of an event what the event has claimed.
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

// Fail implements projection.Tx. It is the last of a batch: where others follow in the
// same transaction they must find its rows.
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

// fail is the piece that lists failed events.
func fail(prefixed string) piece {
	return newPiece("failed", "UNWIND $in.rows AS r MERGE (f:"+prefixed+`FailedEvent {generation: r.generation, seq: r.seq})
		ON CREATE SET f.conversation = r.conversation, f.tenant = r.tenant, f.id = r.id, f.event_id = r.event_id, f.type = r.type, f.class = r.class, f.reason = r.reason`)
}

// clean makes what an invalid event said of itself fit for a text.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// pace says how much is deleted at once.
type pace struct {
	rows int64 // nodes in one transaction
	rest int   // for how many times as long as that took the server is left to others behind it
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

// drain runs a statement of a sweep until it finds no more. Where its rows are more than
// the server's memory has room for, each time by half as many.
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

// empty deletes the nodes of a label that belong to a conversation, by the index on it
// and these properties.
func empty(label string, by ...string) string {
	return "MATCH (n:" + label + ") WHERE n.conversation = $key" + areThere(by) + " WITH n LIMIT $limit DETACH DELETE n RETURN count(*)"
}

// areThere says that a node has properties, for an index is used only if a statement
// speaks of all that it is on.
func areThere(properties []string) (where string) {
	for _, name := range properties {
		where += " AND n." + name + " IS NOT NULL"
	}
	return where
}
