package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Difference is a conversation whose rows differ from what its events make.
type Difference struct {
	Conversation events.ConversationID
	Stored       events.Digest // zero: the read model has no such conversation
	Replayed     events.Digest // zero: the log has no such conversation
	MissingIn    Side
}

// Verification is the result of [Verify].
type Verification struct {
	Projection    string
	Hash          events.Digest // of the hashes of all replayed conversations, in order
	Conversations int
	Events        uint64 // events replayed
	UpTo          uint64 // the last sequence replayed: the read model's position
	Behind        uint64 // events of the log above the read model's checkpoints at the end: not applied yet, so not compared
	Later         uint64 // events of the log that were not replayed: Behind, and those that were applied meanwhile
	Differences   []Difference
}

// Equal reports whether the read model matches the log.
func (v *Verification) Equal() bool { return len(v.Differences) == 0 }

// Verify replays the log into an empty scratch store, up to the checkpoints of the read model, and
// compares conversation by conversation. The replay leaves out events that the read model lists as
// failed with class error. Conversations that change during the replay are read again, each at its
// new position. A repair that runs at the same time can show as a difference: if so, verify again.
//
// progress, if not nil, is called with the number of sequences replayed and the total.
func Verify[U Unit](ctx context.Context, p Projection[U], log *eventlog.Log, model ReadStore, scratch Store[U], progress func(done, total uint64)) (Verification, error) {
	v := Verification{Projection: p.Name}
	replays := make([]*replay[U], log.Partitions())
	for n := range replays {
		cp, err := scratch.Acquire(ctx, n, p.Fingerprint())
		if err != nil {
			return v, err
		}
		replays[n] = &replay[U]{projection: p, log: log, store: scratch, cp: cp}
	}
	cps, err := checkpoints(ctx, log, model)
	if err != nil {
		return v, err
	}
	for _, cp := range cps {
		if err := replays[cp.Partition].upTo(ctx, cp.Seq, model, progress); err != nil {
			return v, err
		}
	}
	suspects, err := compareAll(ctx, model, scratch)
	if err != nil {
		return v, err
	}
	family := func(id events.ConversationID) (list []*replay[U]) {
		for partition, ok := log.PartitionOf(id.Tenant, id.ID), true; ok; partition, _, ok = log.Parent(partition) {
			list = append(list, replays[partition])
		}
		slices.Reverse(list) // the oldest partition first
		return list
	}
	for _, id := range suspects {
		d, err := compareOne(ctx, id, model, family(id))
		if err != nil {
			return v, err
		}
		if d.Stored != d.Replayed {
			v.Differences = append(v.Differences, d)
		}
	}
	upTo := func(id events.ConversationID) (seq uint64) {
		for _, r := range family(id) {
			seq = max(seq, r.cp.Seq)
		}
		return seq
	}
	if err := sides(ctx, log, model, scratch, v.Differences, upTo); err != nil {
		return v, err
	}
	replayed := make([]uint64, len(replays))
	for n, r := range replays {
		v.Events += r.applied
		v.UpTo = max(v.UpTo, r.cp.Seq)
		replayed[n] = r.cp.Seq
	}
	if v.Hash, v.Conversations, err = total(ctx, scratch); err != nil {
		return v, err
	}
	if v.Behind, err = behind(ctx, log, model); err != nil {
		return v, err
	}
	v.Later, err = countAfter(ctx, log, replayed)
	v.Later = max(v.Later, v.Behind)
	return v, err
}

// checkpoints reads the checkpoints of a read model. If one is of a partition that the log does not have, the error is
// [eventlog.ErrPartitions]: the log was split since it was opened.
func checkpoints(ctx context.Context, log *eventlog.Log, model ReadStore) ([]Checkpoint, error) {
	cps, err := model.Checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	for _, cp := range cps {
		if cp.Partition >= log.Partitions() {
			return nil, fmt.Errorf("the read model has a partition %d: %w", cp.Partition, eventlog.ErrPartitions)
		}
	}
	return cps, nil
}

// behind counts the events of the log that a read model has not applied.
func behind(ctx context.Context, log *eventlog.Log, model ReadStore) (uint64, error) {
	cps, err := checkpoints(ctx, log, model)
	if err != nil {
		return 0, err
	}
	applied := make([]uint64, log.Partitions())
	for _, cp := range cps {
		applied[cp.Partition] = cp.Seq
	}
	return countAfter(ctx, log, applied)
}

// countAfter counts the events of the log after a sequence of each partition.
func countAfter(ctx context.Context, log *eventlog.Log, positions []uint64) (total uint64, err error) {
	for n, seq := range positions {
		count, err := log.CountAfter(ctx, n, seq)
		if err != nil {
			return 0, err
		}
		total += count
	}
	return total, nil
}

// compareOne compares a conversation at its position in the read model. A hash covers the
// conversation up to its LastSeq, so two hashes with the same LastSeq can be compared even if the
// stores are at different positions.
func compareOne[U Unit](ctx context.Context, id events.ConversationID, model ReadStore, family []*replay[U]) (Difference, error) {
	for again := false; ; again = true {
		stored, err := model.Hash(ctx, id)
		if err != nil {
			return Difference{}, err
		}
		for _, r := range family {
			if err := r.upTo(ctx, stored.LastSeq, model, nil); err != nil {
				return Difference{}, err
			}
		}
		replayed, err := family[0].store.Hash(ctx, id)
		if err != nil {
			return Difference{}, err
		}
		// The replay is ahead of the row just read, but never of the read model. So the second read
		// finds the read model there too, or the read model is wrong.
		if again || replayed.LastSeq <= stored.LastSeq {
			return Difference{Conversation: id, Stored: stored.Hash, Replayed: replayed.Hash}, nil
		}
	}
}

// replay applies one partition to a scratch store.
type replay[U Unit] struct {
	projection Projection[U]
	log        *eventlog.Log
	store      Store[U]
	cp         Checkpoint
	applied    uint64
}

// upTo replays up to and including a sequence that the read model has applied.
func (r *replay[U]) upTo(ctx context.Context, goal uint64, model ReadStore, progress func(done, total uint64)) error {
	if r.cp.Seq >= goal {
		return nil
	}
	skip, err := skipped(ctx, model)
	if err != nil {
		return err
	}
	for {
		last, err := r.log.LastOf(ctx, r.cp.Partition)
		if err != nil {
			return err
		}
		goal = min(goal, last) // the events after it were purged
		if r.cp.Seq >= goal {
			return nil
		}
		err = r.follow(ctx, goal, skip, progress)
		if err == nil || !errors.Is(err, eventlog.ErrInterrupted) {
			return err
		}
	}
}

// lookAgain is how often a replay asks whether there is still an event to wait for.
const lookAgain = time.Second

// follow replays until the goal is reached or passed, or nothing is left up to it.
func (r *replay[U]) follow(ctx context.Context, goal uint64, skip map[uint64]error, progress func(done, total uint64)) error {
	feed := NewFeed(r.log)
	feed.serve(r.projection.Types(), r.projection.deriver())
	in, err := feed.join(ctx, r.cp.Partition, r.cp.Seq)
	if err != nil {
		return err
	}
	defer in.leave()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for r.cp.Seq < goal {
		select {
		case <-in.C():
		case <-look.C:
			// What is left up to the goal may have been erased. If the log does not answer, the intake waits for it.
			if next, err := r.log.NextOf(ctx, r.cp.Partition, r.cp.Seq+1); err == nil && (next == 0 || next > goal) {
				return nil
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		taken, err := in.take(maxBatchEvents)
		if err != nil {
			return err
		}
		batch := r.projection.entries(taken)
		if len(batch) == 0 {
			continue
		}
		passed := slices.IndexFunc(batch, func(e *entry) bool { return e.seq > goal })
		if passed == 0 {
			return nil
		}
		if passed > 0 {
			batch = batch[:passed]
		}
		out, err := r.projection.apply(ctx, r.store, r.cp, batch, skip)
		if err != nil {
			return err
		}
		r.cp = out.checkpoint
		r.applied += uint64(out.applied)
		if progress != nil {
			progress(r.cp.Seq, goal)
		}
		if passed > 0 {
			return nil
		}
	}
	return nil
}

// skipped returns the events that the read model could not apply.
func skipped(ctx context.Context, model ReadStore) (map[uint64]error, error) {
	skip := map[uint64]error{}
	for after := uint64(0); ; {
		page, err := model.Failed(ctx, FailedQuery{After: after, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for _, f := range page {
			if f.Class == ClassError {
				skip[f.Seq] = errors.New(f.Reason)
			}
			after = f.Seq
		}
		if len(page) < 1000 {
			return skip, nil
		}
	}
}

// compareAll returns the conversations whose hashes differ, sorted.
func compareAll(ctx context.Context, model, scratch ReadStore) ([]events.ConversationID, error) {
	stored := map[events.ConversationID]events.Digest{}
	err := model.Hashes(ctx, func(h ConversationHash) error {
		stored[h.Conversation] = h.Hash
		return nil
	})
	if err != nil {
		return nil, err
	}
	var differ []events.ConversationID
	err = scratch.Hashes(ctx, func(h ConversationHash) error {
		if stored[h.Conversation] != h.Hash {
			differ = append(differ, h.Conversation)
		}
		delete(stored, h.Conversation)
		return nil
	})
	differ = slices.AppendSeq(differ, maps.Keys(stored))
	sortIDs(differ)
	return differ, err
}

// total is one hash over all conversations of a store.
func total(ctx context.Context, s ReadStore) (events.Digest, int, error) {
	var parts []string
	err := s.Hashes(ctx, func(h ConversationHash) error {
		parts = append(parts, h.Conversation.Tenant, h.Conversation.ID, h.Hash.String())
		return nil
	})
	return events.DigestOf(parts...), len(parts) / 3, err
}
