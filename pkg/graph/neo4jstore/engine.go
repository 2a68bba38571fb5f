package neo4jstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sourcegraph/conc/iter"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// store is the common part of the projections' stores: positions and failed events.
type store struct {
	*db
	dialect
	generation int
	reader     bool // it can't write
}

// Close ends the connections. The store can't be used afterwards.
func (s *store) Close() error { return s.close() }

// engine puts the labels of the store's projection into a statement.
func (s *store) engine(statement string) string {
	return labelled(s.Projection, statement)
}

const checkpointFields = "k.partition, k.epoch, k.seq, k.event, k.fingerprint, k.applied, k.duplicates, k.halted"

func scanCheckpoint(list []any) (cp projection.Checkpoint, err error) {
	v := &values{list: list}
	cp = projection.Checkpoint{
		Partition: v.int(), Epoch: v.seq(), Seq: v.seq(), Event: v.digest(), Fingerprint: v.text(),
		Applied: v.seq(), Duplicates: v.seq(), Halted: v.text(),
	}
	return cp, v.err
}

// The checkpoint of a partition. SET takes the write lock before anything is read, because Neo4j
// reads committed data and would miss what another owner is about to commit.
const (
	makeCheckpoint = `MERGE (k:$EngineCheckpoint {key: $key})
		ON CREATE SET k.generation = $generation, k.partition = $partition, k.epoch = 0, k.seq = 0
		SET k.lock = $partition RETURN ` + checkpointFields
	lockCheckpoint = "MATCH (k:$EngineCheckpoint {key: $key}) SET k.lock = k.partition RETURN " + checkpointFields
	saveCheckpoint = `MATCH (k:$EngineCheckpoint {key: $key}) SET k.epoch = $epoch, k.seq = $seq, k.event = $event,
		k.fingerprint = $fingerprint, k.applied = $applied, k.duplicates = $duplicates, k.halted = $halted`
	// Readers may see everything up to this commit.
	settle = "MERGE (s:$EngineSettled {key: $key}) SET s.seq = $seq, s.event = $event, s.event_seq = $seq"
	// Like settle, for a batch: a later batch may have settled first. The first SET takes the lock.
	settleAfter = "MATCH (s:$EngineSettled {key: $key}) SET s.seq = s.seq WITH s WHERE s.seq < $seq SET s.seq = $seq, s.event = $event, s.event_seq = $seq"

	// Repairs are counted in the transaction that makes them and shown after its commit: a reader
	// that knew the new count earlier could still see some of the old rows and cache them as new.
	countRepair = `MATCH (k:$EngineCheckpoint {key: $key}) MATCH (s:$EngineSettled {key: k.key})
		SET k.repairs = coalesce(k.repairs, s.repairs, 0) + 1`
	// The first SET takes the lock, as in settleAfter.
	showRepairs = `MATCH (s:$EngineSettled {key: $key}) SET s.seq = s.seq WITH s MATCH (k:$EngineCheckpoint {key: s.key})
		WHERE k.repairs > coalesce(s.repairs, 0) SET s.repairs = k.repairs`

	// The event must be that of the settled sequence: the checkpoint is a batch ahead until that batch is settled.
	// Older versions settle a sequence only, and leave the event of an earlier one.
	selectCheckpoints = `MATCH (k:$EngineCheckpoint) WHERE k.key STARTS WITH $prefix
		MATCH (s:$EngineSettled {key: k.key}) RETURN [` + checkpointFields + `], s.seq, s.repairs,
		CASE WHEN s.seq = k.seq OR s.event_seq <> s.seq THEN k.event ELSE coalesce(s.event, k.event) END`
)

// settleParams has the parameters of settle and settleAfter.
func settleParams(key string, cp projection.Checkpoint) map[string]any {
	return map[string]any{"key": key, "seq": number(cp.Seq), "event": cp.Event.String()}
}

func checkpointParams(key string, cp projection.Checkpoint) map[string]any {
	return map[string]any{
		"key": key, "epoch": number(cp.Epoch), "seq": number(cp.Seq), "event": cp.Event.String(), "fingerprint": cp.Fingerprint,
		"applied": number(cp.Applied), "duplicates": number(cp.Duplicates), "halted": cp.Halted,
	}
}

// Acquire implements projection.Store. It finishes what an earlier owner left half done: it shows
// everything that was committed, links children, and empties deleted conversations.
func (s *store) Acquire(ctx context.Context, partition int, fingerprint string) (cp projection.Checkpoint, err error) {
	key := s.checkpointKey(partition)
	_, err = s.attempt(ctx, partition, false, func(t *Tx) error {
		rows, err := t.Run(ctx, makeCheckpoint, map[string]any{"key": key, "generation": s.generation, "partition": partition})
		if err != nil {
			return err
		}
		if cp, err = scanCheckpoint(rows[0]); err != nil {
			return err
		}
		if cp.Epoch == 0 {
			if err := t.mayBegin(ctx); err != nil {
				return err
			}
		}
		if cp.Fingerprint != "" && cp.Fingerprint != fingerprint {
			return projection.OtherBuild(s.Projection, cp.Fingerprint, fingerprint)
		}
		cp.Fingerprint = fingerprint
		cp.Epoch++
		if _, err := t.Run(ctx, saveCheckpoint, checkpointParams(key, cp)); err != nil {
			return err
		}
		_, err = t.Run(ctx, settle, settleParams(key, cp))
		return err
	})
	if err != nil {
		return projection.Checkpoint{}, classify(err)
	}
	return cp, s.recover(ctx, key)
}

// mayBegin refuses to recreate a generation that was superseded: a process that was
// suspended may not know yet that it was. The lock makes a process that discards
// generations wait.
func (t *Tx) mayBegin(ctx context.Context) error {
	rows, err := t.Run(ctx, lockServing, map[string]any{"key": t.Projection})
	if err != nil {
		return err
	}
	s, err := scanServing(rows)
	if err == nil && s.superseded(t.generation) {
		err = fmt.Errorf("generation %d of %s: %w, %d serves", t.generation, t.Projection, projection.ErrSuperseded, s.generation)
	}
	return err
}

// recover finishes what may have been left half done after a commit.
func (s *store) recover(ctx context.Context, checkpoint string) error {
	if _, err := s.write(ctx, s.engine(showRepairs), map[string]any{"key": checkpoint}); err != nil {
		return err
	}
	for _, statement := range s.Relink {
		if _, err := s.write(ctx, statement, map[string]any{"prefix": s.prefix()}); err != nil {
			return err
		}
	}
	return s.sweep(ctx, checkpoint)
}

// Halt implements projection.Store.
func (s *store) Halt(ctx context.Context, partition int, epoch uint64, reason string) error {
	_, err := s.attempt(ctx, partition, false, func(t *Tx) error {
		cp, err := t.Checkpoint(ctx)
		if err != nil {
			return err
		}
		if cp.Epoch != epoch {
			return projection.ErrFenced
		}
		cp.Halted = reason
		_, err = t.Run(ctx, saveCheckpoint, checkpointParams(s.checkpointKey(partition), cp))
		return err
	})
	return classify(err)
}

// Checkpoints implements projection.ReadStore. It returns the sequences that readers see, and their events.
func (s *store) Checkpoints(ctx context.Context) (list []projection.Checkpoint, err error) {
	rows, err := s.Read(ctx, s.engine(selectCheckpoints), map[string]any{"prefix": s.prefix()})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		fields, _ := row[0].([]any)
		cp, err := scanCheckpoint(fields)
		if err != nil {
			return nil, err
		}
		settled := valuesOf(row[1:])
		if cp.Seq, cp.Repairs, cp.Event = settled.seq(), settled.seq(), settled.digest(); settled.err != nil {
			return nil, settled.err
		}
		list = append(list, cp)
	}
	slices.SortFunc(list, func(a, b projection.Checkpoint) int { return a.Partition - b.Partition })
	return list, nil
}

const (
	selectFailed = `MATCH (f:$EngineFailedEvent) WHERE f.generation = $generation AND f.seq > $after AND CASE $tenant WHEN '' THEN true ELSE f.tenant = $tenant END
		AND CASE $class WHEN '' THEN true ELSE f.class = $class END
		RETURN f.seq, f.tenant, f.id, f.event_id, f.type, f.class, f.reason ORDER BY f.generation, f.seq LIMIT $limit`
	// A conversation's failed events are few, and no index orders them, so sort them here.
	selectFailedOf = `MATCH (f:$EngineFailedEvent {conversation: $key}) WHERE f.seq > $after AND CASE $class WHEN '' THEN true ELSE f.class = $class END
		RETURN f.seq, f.tenant, f.id, f.event_id, f.type, f.class, f.reason`
	countFailed = "MATCH (f:$EngineFailedEvent) WHERE f.generation = $generation AND f.seq >= 0 RETURN f.class, count(*)"
)

// Failed implements projection.ReadStore.
func (s *store) Failed(ctx context.Context, q projection.FailedQuery) (list []projection.Failed, err error) {
	statement := selectFailed
	params := map[string]any{"generation": s.generation, "after": number(q.After), "tenant": q.Tenant, "class": string(q.Class), "limit": q.Limit}
	if q.Conversation != "" {
		statement, params["key"] = selectFailedOf, s.Key(events.ConversationID{Tenant: q.Tenant, ID: q.Conversation})
	}
	err = s.scan(ctx, s.engine(statement), params, func(v *values) {
		f := projection.Failed{Projection: s.Projection, Seq: v.seq()}
		f.Conversation = events.ConversationID{Tenant: v.text(), ID: v.text()}
		f.EventID, f.Type, f.Class, f.Reason = v.text(), v.text(), projection.Class(v.text()), v.text()
		list = append(list, f)
	})
	slices.SortFunc(list, func(a, b projection.Failed) int { return cmp.Compare(a.Seq, b.Seq) })
	return list[:min(len(list), q.Limit)], err
}

// CountFailed implements projection.ReadStore.
func (s *store) CountFailed(ctx context.Context) (map[projection.Class]int, error) {
	count := map[projection.Class]int{}
	err := s.scan(ctx, s.engine(countFailed), map[string]any{"generation": s.generation}, func(v *values) {
		class := projection.Class(v.text())
		count[class] = v.int()
	})
	return count, err
}

// Holders implements projection.ReadStore.
func (s *store) Holders(ctx context.Context, claims []projection.Claim) (map[int]projection.Claim, error) {
	var conversations, keys []string
	for _, c := range claims {
		conversations, keys = append(conversations, s.Key(c.Conversation)), append(keys, s.digestKey(c.Key))
	}
	slices.Sort(conversations)
	rows, err := s.Read(ctx, s.holders, holdersOf(slices.Compact(conversations), keys))
	if err != nil {
		return nil, err
	}
	held, err := scanHolders(rows)
	found := map[int]projection.Claim{}
	for i, c := range claims {
		conversation := s.Key(c.Conversation)
		h, ok := held[holder{conversation, s.digestKey(c.Key)}]
		if tombstone, deleted := held[holder{conversation, ""}]; deleted {
			h, ok = tombstone, true
		}
		if ok {
			h.Conversation, h.Key = c.Conversation, c.Key
			found[i] = h
		}
	}
	return found, err
}

// holdersOf returns the parameters of a lookup of holders.
func holdersOf(conversations, keys []string) map[string]any {
	if conversations == nil {
		conversations = []string{}
	}
	return map[string]any{"in": map[string]any{"conversations": conversations, "keys": keys}}
}

// holder is a key in a conversation; without a key it is the conversation's tombstone.
type holder struct{ conversation, key string }

func scanHolders(rows [][]any) (map[holder]projection.Claim, error) {
	held := map[holder]projection.Claim{}
	err := scanRows(rows, func(v *values) {
		h := holder{v.text(), v.text()}
		held[h] = projection.Claim{Seq: v.seq(), Content: v.digest()}
	})
	return held, err
}

// hashedTogether is how many conversations are hashed at the same time. Each takes at least one round trip to the server,
// and most conversations are short; a long one takes tens of megabytes of memory.
const hashedTogether = 4

// hashes yields the hash of each conversation, by tenant and id.
func (s *store) hashes(ctx context.Context, hash func(context.Context, events.ConversationID) (projection.ConversationHash, error), yield func(projection.ConversationHash) error) error {
	var ids []events.ConversationID
	err := s.scan(ctx, "MATCH (c:"+s.Conversation+") WHERE c.key STARTS WITH $prefix RETURN c.tenant, c.id", map[string]any{"prefix": s.prefix()}, func(v *values) {
		ids = append(ids, events.ConversationID{Tenant: v.text(), ID: v.text()})
	})
	if err != nil {
		return err
	}
	slices.SortFunc(ids, func(a, b events.ConversationID) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.ID, b.ID))
	})
	several := iter.Mapper[events.ConversationID, projection.ConversationHash]{MaxGoroutines: hashedTogether}
	for page := range slices.Chunk(ids, 8*hashedTogether) {
		list, err := several.MapErr(page, func(id *events.ConversationID) (projection.ConversationHash, error) {
			return hash(ctx, *id)
		})
		if err != nil {
			return err
		}
		for _, h := range list {
			if h.Hash == (events.Digest{}) { // not visible to readers yet
				continue
			}
			if err := yield(h); err != nil {
				return err
			}
		}
	}
	return nil
}
