package storetest

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// lawCases test laws that hold for every history.
func lawCases[U projection.Unit, S projection.Store[U]](w workshop[U, S]) []namedCase {
	law := func(name string, check func(r *rapid.T)) namedCase {
		return namedCase{"law: " + name, func(t *testing.T) { rapid.Check(t, check) }}
	}
	return []namedCase{
		law("applied twice is applied once", func(r *rapid.T) {
			h := generated(tenants).Draw(r, "history")
			b := w.bench(r)
			b.apply(h.Messages)
			once := b.contents()
			b.apply(h.Messages)
			require.Equal(r, once, b.contents())
			b.acquire()
			b.apply(h.Messages[len(h.Messages)/2:])
			require.Equal(r, once, b.contents())
		}),
		law("every split into batches gives the same", func(r *rapid.T) {
			h := generated(tenants).Draw(r, "history")
			whole, split := w.bench(r), w.bench(r)
			whole.apply(h.Messages)
			for rest := h.Messages; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(r, "batch")
				split.apply(rest[:n])
				rest = rest[n:]
			}
			require.Equal(r, whole.contents(), split.contents())
		}),
		law("every split into batches gives the same, whatever the reducers refuse", func(r *rapid.T) {
			h := generated(tenants).Draw(r, "history")
			salt := rapid.String().Draw(r, "salt")
			whole, split := w.bench(r), w.bench(r)
			whole.projection, split.projection = refusing(w.projection, salt), refusing(w.projection, salt)
			whole.apply(h.Messages)
			for rest := h.Messages; len(rest) > 0; {
				n := rapid.IntRange(1, min(3, len(rest))).Draw(r, "batch")
				split.apply(rest[:n])
				rest = rest[n:]
			}
			require.Equal(r, whole.contents(), split.contents())
		}),
		law("a restart anywhere changes nothing", func(r *rapid.T) {
			h := generated(tenants).Draw(r, "history")
			through, resumed := w.bench(r), w.bench(r)
			through.apply(h.Messages)
			n := rapid.IntRange(0, len(h.Messages)).Draw(r, "applied before")
			resumed.apply(h.Messages[:n])
			resumed.reopen()
			resumed.apply(h.Since(resumed.cp.Seq + 1))
			require.Equal(r, through.contents(), resumed.contents())
		}),
		law("hashes do not depend on sequences", func(r *rapid.T) {
			h := withoutSummaries(generated(tenants).Draw(r, "history")) // because their ranges are sequences
			moved := &History{Messages: append(h.Messages[:0:0], h.Messages...)}
			seq := uint64(0)
			for i := range moved.Messages {
				seq += rapid.Uint64Range(1, 1000).Draw(r, "gap")
				moved.Messages[i].Seq = seq
			}
			a, b := w.bench(r), w.bench(r)
			a.apply(h.Messages)
			b.apply(moved.Messages)
			require.Equal(r, withoutSeqs(a.contents().Hashes), withoutSeqs(b.contents().Hashes))
		}),
		law("tenants do not influence each other", func(r *rapid.T) {
			h := generated(tenants).Draw(r, "history")
			together := w.bench(r)
			together.apply(h.Messages)
			var apart []projection.ConversationHash
			for _, tenant := range tenants {
				var own History
				for _, m := range h.Messages {
					if a, _ := events.ParseSubject(m.Subject); a.Tenant == tenant {
						own.Messages = append(own.Messages, m)
					}
				}
				b := w.bench(r)
				b.apply(own.Messages)
				apart = append(apart, b.contents().Hashes...)
			}
			require.Equal(r, together.contents().Hashes, apart)
		}),
		law("a dropped conversation applied again is as it was", func(r *rapid.T) {
			h := generated(tenants).Draw(r, "history")
			b := w.bench(r)
			b.apply(h.Messages)
			before := b.contents()
			dropped := id("c")
			var own History
			for _, m := range h.Messages {
				if a, _ := events.ParseSubject(m.Subject); a.Tenant == dropped.Tenant && a.Conversation == dropped.ID {
					own.Messages = append(own.Messages, m)
				}
			}
			b.drop(dropped)
			require.Zero(r, b.hash(dropped).Hash)
			b.rewind(0)
			b.apply(own.Messages)
			b.rewind(before.Checkpoint.Seq)
			after := b.contents()
			require.Equal(r, before.Hashes, after.Hashes)
			require.Equal(r, before.Failed, after.Failed)
		}),
	}
}

// refusing is a projection whose reducers refuse half of the events: as invalid, or with an error. The salt says which.
func refusing[U projection.Unit](p projection.Projection[U], salt string) projection.Projection[U] {
	reducers := maps.Clone(p.Reducers)
	for eventType, reduce := range reducers {
		reducers[eventType] = func(u U, e *events.Recorded) error {
			switch chance := events.DigestOf(salt, strconv.FormatUint(e.Seq, 10))[0] % 8; {
			case chance < 3:
				return fmt.Errorf("%w: refused", projection.ErrInvalid)
			case chance == 3:
				return errors.Join(reduce(u, e), errors.New("too late")) // the unit has changed
			}
			return reduce(u, e)
		}
	}
	p.Reducers = reducers
	return p
}

// drop deletes a conversation, like the start of a repair.
func (b *bench[U, S]) drop(id events.ConversationID) {
	b.t.Helper()
	require.NoError(b.t, b.store.Update(b.ctx, 0, func(tx projection.Tx[U]) error { return tx.Drop(b.ctx, id) }))
}

// tombstone returns the sequence that deleted a conversation, as the engine sees it.
func (b *bench[U, S]) tombstone(id events.ConversationID) (seq uint64) {
	b.t.Helper()
	require.NoError(b.t, b.store.Update(b.ctx, 0, func(tx projection.Tx[U]) error {
		u, err := tx.Load(b.ctx, []*events.Recorded{{Tenant: id.Tenant, Event: events.Event{Subject: id.ID}}})
		if err == nil {
			seq = u.Tombstone(id)
		}
		return err
	}))
	return seq
}

// rewind sets the checkpoint to a sequence.
func (b *bench[U, S]) rewind(seq uint64) {
	b.t.Helper()
	b.cp.Seq = seq
	require.NoError(b.t, b.store.Update(b.ctx, 0, func(tx projection.Tx[U]) error { return tx.Advance(b.ctx, b.cp) }))
}

func withoutSeqs(list []projection.ConversationHash) []projection.ConversationHash {
	for i := range list {
		list[i].LastSeq = 0
	}
	return list
}
