package neo4jstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"mneme/events"
	"mneme/pkg/projection"
)

// piece is a part of the writing of a batch: what is done with each row of a parameter.
type piece struct {
	param     string
	statement string // begins with UNWIND $param AS r
}

// smallBatch is how many rows are written in one statement, at most: below it the round
// trips cost more than the work, above it the Eager operators that the planner puts
// between the parts of one statement.
const smallBatch = 50

// together is all pieces in one statement, and the checkpoint. Its rows are in one
// parameter, a map: Neo4j plans a statement anew for every combination of how long the
// lists among its parameters are, and this one takes it a second.
func together(pieces []piece) string {
	parts := make([]string, len(pieces))
	for i, p := range pieces {
		parts[i] = "CALL () {\n" + strings.Replace(p.statement, "$"+p.param, "$rows."+p.param, 1) + "\n}"
	}
	return strings.Join(parts, "\n") + "\nWITH 1 AS written\n" + saveCheckpoint
}

// tx is the part of a transaction that both projections share. What is to be written is
// collected and goes to the server at the end.
type tx struct {
	*store
	ctx       neo4j.ManagedTransaction
	partition int
	look      bool // look for the holders of keys; else take them all for free
	claims    map[uint64][]projection.Claim
	rows      map[string][]any
	after     map[string][]any // of the pieces after the commit
	advanced  *projection.Checkpoint
	sweeping  bool // a conversation was deleted
	repairing bool // a conversation was dropped: its rows come batch after batch
}

// attempt runs fn in one transaction, again if it was disturbed.
func (s *store) attempt(ctx context.Context, partition int, look bool, fn func(*tx) error) (t *tx, err error) {
	err = s.inTransaction(ctx, neo4j.AccessModeWrite, s.WriteTimeout, func(managed neo4j.ManagedTransaction) error {
		t = &tx{store: s, ctx: managed, partition: partition, look: look, claims: map[uint64][]projection.Claim{}, rows: map[string][]any{}, after: map[string][]any{}}
		if err := fn(t); err != nil {
			return err
		}
		if !look && len(t.claims) > 0 {
			return errUnwritten
		}
		return t.flush(ctx)
	})
	return t, err
}

// errUnwritten says that an event leaves no row, because its conversation was deleted
// later in the batch: nothing would tell that its keys are taken.
var errUnwritten = errors.New("a claim is not written")

// transact runs fn in one transaction and shows what it did once it is committed. Keys
// are taken for free at first: almost always they are.
func (s *store) transact(ctx context.Context, partition int, fn func(*tx) error) error {
	t, err := s.attempt(ctx, partition, false, fn)
	if codeOf(err) == constraintViolated || errors.Is(err, errUnwritten) {
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

// finish does what comes after the commit of a batch. [store.Acquire] does it too.
func (s *store) finish(ctx context.Context, t *tx) error {
	if err := t.follow(ctx, s.link); err != nil {
		return err
	}
	key := s.checkpointKey(t.partition)
	if t.advanced != nil {
		if _, err := s.write(ctx, s.engine(settleAfter), map[string]any{"key": key, "seq": number(t.advanced.Seq)}); err != nil {
			return err
		}
	}
	if err := t.follow(ctx, s.tidy); err != nil {
		return err
	}
	if t.sweeping {
		return s.sweep(ctx, key)
	}
	return nil
}

// follow writes what comes after the commit, each piece in a transaction of its own.
func (t *tx) follow(ctx context.Context, pieces []piece) error {
	for _, p := range pieces {
		if rows := t.after[p.param]; len(rows) > 0 {
			if _, err := t.write(ctx, p.statement, map[string]any{p.param: rows}); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs a statement of the transaction.
func (t *tx) run(ctx context.Context, statement string, params map[string]any) ([][]any, error) {
	return run(ctx, t.ctx, t.engine(statement), params)
}

// add is a row for a piece.
func (t *tx) add(param string, r any) { t.rows[param] = append(t.rows[param], r) }

// flush writes what was collected: in one statement if it is little.
func (t *tx) flush(ctx context.Context) error {
	n := 0
	for _, rows := range t.rows {
		n += len(rows)
	}
	save := map[string]any{}
	if t.advanced != nil {
		save = checkpointParams(t.checkpointKey(t.partition), *t.advanced)
	}
	if n > 0 && n <= smallBatch && t.advanced != nil {
		save["rows"] = t.rows
		_, err := t.run(ctx, together(t.writes), save)
		return err
	}
	if err := t.flushRows(ctx); err != nil || t.advanced == nil {
		return err
	}
	_, err := t.run(ctx, saveCheckpoint, save)
	return err
}

// flushRows writes what was collected, a statement for each piece.
func (t *tx) flushRows(ctx context.Context) error {
	for _, p := range t.writes {
		if rows := t.rows[p.param]; len(rows) > 0 {
			if _, err := t.run(ctx, p.statement, map[string]any{p.param: rows}); err != nil {
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
func (t *tx) Claim(ctx context.Context, claims []projection.Claim) (map[int]projection.Claim, error) {
	taken := map[events.Digest]projection.Claim{}
	if t.look {
		stored, err := t.stored(ctx, claims)
		if err != nil {
			return nil, err
		}
		taken = stored
	}
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
	return held, nil
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
	rows, err := t.run(ctx, t.holders, map[string]any{"conversations": []string{}, "keys": keys})
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
	return piece{"failed", "UNWIND $failed AS r MERGE (f:" + prefixed + `FailedEvent {generation: r.generation, seq: r.seq})
		ON CREATE SET f.conversation = r.conversation, f.tenant = r.tenant, f.id = r.id, f.event_id = r.event_id, f.type = r.type, f.class = r.class, f.reason = r.reason`}
}

// clean makes what an invalid event said of itself fit for a text.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// sweepRows is how many nodes one transaction of a sweep deletes.
const sweepRows = 5000

// sweep deletes the rows of the deleted conversations of a partition.
func (s *store) sweep(ctx context.Context, checkpoint string) error {
	rows, err := s.read(ctx, "MATCH (c:"+s.conversation+" {sweep: $checkpoint}) RETURN c.key", map[string]any{"checkpoint": checkpoint})
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, statement := range s.sweeps {
			if err := s.drain(ctx, statement, map[string]any{"key": row[0]}); err != nil {
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
func (s *store) drain(ctx context.Context, statement string, params map[string]any) error {
	for limit := int64(sweepRows); ; {
		params["limit"] = limit
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
	return nil
}

// empty deletes the nodes of a label that belong to a conversation, in order of one of
// their properties.
func empty(label, by string) string {
	return "MATCH (n:" + label + ") WHERE n.conversation = $key AND n." + by + " IS NOT NULL WITH n LIMIT $limit DETACH DELETE n RETURN count(*)"
}
