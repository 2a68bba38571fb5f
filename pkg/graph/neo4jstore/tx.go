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

// Piece is a part of a batch's writes: a statement and the rows collected for it under a name.
type Piece struct {
	name      string
	statement string
	columns   []string // the fields of a row that it uses, sent as a list; none: its rows are values
}

// fieldOfRow matches a field that a statement uses of its row r.
var fieldOfRow = regexp.MustCompile(`\br\.(\w+)`)

// NewPiece makes a piece of a statement that begins with UNWIND $in.rows AS r and names the fields of
// r, such as r.key. Rows go to the server as lists, which it reads in half the time of maps.
func NewPiece(name, statement string) Piece {
	p := Piece{name: name}
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
func (p Piece) params(rows []any) map[string]any {
	if len(p.columns) == 0 {
		return In("rows", rows)
	}
	lists := make([]any, len(rows))
	for i, r := range rows {
		list, r := make([]any, len(p.columns)), r.(Row)
		for j, column := range p.columns {
			list[j] = r[column]
		}
		lists[i] = list
	}
	return In("rows", lists)
}

// In returns the parameters of a statement that takes a list, $in.<name>. The list is inside a map
// because Neo4j plans a statement again for each order of magnitude of a list parameter's length.
func In(name string, list any) map[string]any {
	return map[string]any{"in": map[string]any{name: list}}
}

// Tx is the engine's half of a transaction, and what a read model's half reads and writes with. It
// collects writes and sends them to the server at the end.
type Tx struct {
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
func (s *store) attempt(ctx context.Context, partition int, look bool, fn func(*Tx) error) (t *Tx, err error) {
	err = s.inTransaction(ctx, s.WriteTimeout, func(managed neo4j.ManagedTransaction) error {
		t = &Tx{store: s, ctx: managed, partition: partition, look: look, claims: map[uint64][]projection.Claim{}, rows: map[string][]any{}, after: map[string][]any{}}
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
func (s *store) transact(ctx context.Context, partition int, fn func(*Tx) error) error {
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

// finish does the work after the commit of a batch or a repair: it links what other partitions may have
// written during the transaction, and marks everything as settled. [store.Acquire] does it too.
func (s *store) finish(ctx context.Context, t *Tx) error {
	key := s.checkpointKey(t.partition)
	link := s.Link != "" && len(t.after) > 0
	if t.advanced != nil || link {
		statement, params := settleAfter, settleParams(key, projection.Checkpoint{}) // a repair settles nothing
		if t.advanced != nil {
			params = settleParams(key, *t.advanced)
		}
		if link {
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
	for _, p := range s.Tidy {
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
	if d.Link == "" {
		return settleAfter
	}
	return d.Link + " WITH 1 AS linked " + settleAfter
}

// Run runs a statement of the transaction, at once: it does not see rows that were only added.
func (t *Tx) Run(ctx context.Context, statement string, params map[string]any) ([][]any, error) {
	return run(ctx, t.engine(statement), func(query string) (neo4j.ResultWithContext, error) { return t.ctx.Run(ctx, query, params) })
}

// Add collects a row for a piece of Layout.Writes: a [Row], or a value if the piece's statement names no
// fields.
func (t *Tx) Add(name string, r any) { t.rows[name] = append(t.rows[name], r) }

// NewConversation returns the row of a conversation that has none yet, for the piece of
// [NewConversations].
func (t *Tx) NewConversation(id events.ConversationID) Row {
	return Row{"key": t.Key(id), "generation": t.generation, "checkpoint": t.checkpointKey(t.partition), "tenant": id.Tenant, "id": id.ID}
}

// Delete turns a conversation into a tombstone, by the piece of [Tombstone]. Its rows are swept after
// the commit.
func (t *Tx) Delete(id events.ConversationID, seq uint64) {
	t.Add("deleted", Row{"key": t.Key(id), "seq": number(seq)})
	t.sweeping = true
}

// flush writes the collected rows and the checkpoint.
func (t *Tx) flush(ctx context.Context) error {
	if err := t.flushRows(ctx); err != nil || t.advanced == nil {
		return err
	}
	_, err := t.Run(ctx, saveCheckpoint, checkpointParams(t.checkpointKey(t.partition), *t.advanced))
	return err
}

// flushRows writes the collected rows, one statement for each piece.
func (t *Tx) flushRows(ctx context.Context) error {
	for _, p := range t.Writes {
		if rows := t.rows[p.name]; len(rows) > 0 {
			if _, err := t.Run(ctx, p.statement, p.params(rows)); err != nil {
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
func (t *Tx) Checkpoint(ctx context.Context) (projection.Checkpoint, error) {
	rows, err := t.Run(ctx, lockCheckpoint, map[string]any{"key": t.checkpointKey(t.partition)})
	if err != nil {
		return projection.Checkpoint{}, err
	}
	if len(rows) == 0 {
		return projection.Checkpoint{}, errNotAcquired
	}
	return scanCheckpoint(rows[0])
}

// Advance implements projection.Tx.
func (t *Tx) Advance(_ context.Context, cp projection.Checkpoint) error {
	t.advanced = &cp
	return nil
}

// Claim implements projection.Tx. The keys are written with the rows of their events. Without a
// lookup, a violated constraint shows that a key was taken, but only for events that are written.
// If an event is refused because of another one in the list, a lookup finds the holder of its other
// key.
func (t *Tx) Claim(ctx context.Context, claims []projection.Claim) (map[int]projection.Claim, error) {
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
func (t *Tx) take(claims []projection.Claim, taken map[events.Digest]projection.Claim) map[int]projection.Claim {
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
func (t *Tx) stored(ctx context.Context, claims []projection.Claim) (map[events.Digest]projection.Claim, error) {
	held := map[events.Digest]projection.Claim{}
	if len(claims) == 0 {
		return held, nil
	}
	keys := make([]string, len(claims))
	for i := range claims {
		keys[i] = t.digestKey(claims[i].Key)
	}
	rows, err := t.Run(ctx, t.holders, holdersOf(nil, keys))
	if err != nil {
		return nil, err
	}
	found, err := scanHolders(rows)
	for i, c := range claims {
		if h, ok := found[holder{t.Key(c.Conversation), keys[i]}]; ok {
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

// NewConversations returns the piece that makes conversations, of rows of [Tx.NewConversation] and
// further properties.
func NewConversations(label string, further ...string) Piece {
	return NewPiece("conversations", "UNWIND $in.rows AS r CREATE (:"+label+" "+append(props{"key", "generation", "checkpoint", "tenant", "id"}, further...).create()+")")
}

// Events returns the piece of the events that [Tx.AddEvents] adds.
func Events(label string) Piece {
	return NewPiece("events", "UNWIND $in.rows AS r CREATE (:"+label+" "+append(slices.Clip(claimedProps), "seq").create()+")")
}

// Tombstone returns the piece that turns a conversation into a tombstone, see [Tx.Delete]. more
// continues its statement, whose conversation is c.
func Tombstone(conversation, more string) Piece {
	return NewPiece("deleted", "UNWIND $in.rows AS r MATCH (c:"+conversation+" {key: r.key}) SET c.deleted_seq = r.seq, c.sweep = c.checkpoint"+more)
}

// AddEvents stores the claims of events that no other row of theirs holds. In a deleted
// conversation the tombstone holds every key.
func (t *Tx) AddEvents(isThere func(events.ConversationID) bool) {
	for _, seq := range slices.Sorted(maps.Keys(t.claims)) {
		if id := t.claims[seq][0].Conversation; isThere(id) {
			t.Add("events", t.Claimed(id, seq))
		}
	}
}

// Claimed returns the row of an event with its claims: conversation, seq, identity, payload_key and
// content_digest.
func (t *Tx) Claimed(id events.ConversationID, seq uint64) Row {
	r := Row{"conversation": t.Key(id), "seq": number(seq)}
	t.claim(r, seq)
	return r
}

// claim adds the claims of an event to its row.
func (t *Tx) claim(r Row, seq uint64) {
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
func (t *Tx) Fail(ctx context.Context, failed []projection.Failed) error {
	for i := range failed {
		f := &failed[i]
		id := events.ConversationID{Tenant: clean(f.Conversation.Tenant), ID: clean(f.Conversation.ID)}
		t.Add("failed", Row{
			"generation": t.generation, "seq": number(f.Seq), "conversation": t.Key(id), "tenant": id.Tenant, "id": id.ID,
			"event_id": clean(f.EventID), "type": clean(f.Type), "class": string(f.Class), "reason": clean(f.Reason),
		})
	}
	if t.repairing {
		return classify(t.flushRows(ctx))
	}
	return nil
}

// fail returns the piece that records failed events, for a prefix of labels.
func fail(prefixed string) Piece {
	return NewPiece("failed", "UNWIND $in.rows AS r MERGE (f:"+prefixed+`FailedEvent {generation: r.generation, seq: r.seq})
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
	rows, err := s.Read(ctx, "MATCH (c:"+s.Conversation+" {sweep: $checkpoint}) RETURN c.key", map[string]any{"checkpoint": checkpoint})
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, statement := range s.Sweeps {
			if err := s.drain(ctx, statement, map[string]any{"key": row[0]}, fast); err != nil {
				return err
			}
		}
		if _, err := s.write(ctx, "MATCH (c:"+s.Conversation+" {key: $key}) REMOVE c.sweep", map[string]any{"key": row[0]}); err != nil {
			return err
		}
	}
	return nil
}

// drain runs a statement of a sweep until it finds no more rows. If they exceed the server's
// memory or time, it halves the number of rows each time.
func (s *store) drain(ctx context.Context, statement string, params map[string]any, by pace) error {
	for limit := by.rows; ; {
		params["limit"] = limit
		began := time.Now()
		deleted, err := s.write(ctx, statement, params)
		if (errors.Is(err, projection.ErrTooLarge) || tookTooLong(err)) && limit > 1 {
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
func (t *Tx) Drop(ctx context.Context, id events.ConversationID) error {
	t.repairing = true
	params := map[string]any{"key": t.Key(id), "limit": number(maxSeq)}
	for _, statement := range slices.Concat(t.Unlink, t.Sweeps, []string{"MATCH (f:$EngineFailedEvent {conversation: $key}) DELETE f", "MATCH (c:" + t.dialect.Conversation + " {key: $key}) DETACH DELETE c"}) {
		if _, err := t.Run(ctx, statement, params); err != nil {
			return err
		}
	}
	_, err := t.Run(ctx, countRepair, map[string]any{"key": t.checkpointKey(t.partition)})
	return err
}

// Empty returns a statement for Layout.Sweeps: one that deletes the nodes of a label that belong to a conversation, by the
// index on it and these properties.
func Empty(label string, by ...string) string {
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
