package main

import (
	"context"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// findings collects violations.
type findings func(format string, args ...any)

// checkLedger checks that every acknowledged event is in the log as it was sent, that a
// conversation's events are there in the order of publishing, and that none of them must be
// refused. It returns how many events it checked.
func (o *oracle) checkLedger(entries func(func(entry) error) error, found findings) (n int, err error) {
	type place struct {
		index int
		seq   uint64
	}
	last := map[int]place{}
	err = entries(func(e entry) error {
		m, there := o.at(e.seq)
		switch {
		case !there:
			found("lost: the event %s (number %d of conversation %d) was acknowledged at sequence %d, which the log does not have", e.identity, e.index, e.conversation, e.seq)
			return nil
		case m.identity != e.identity:
			found("lost: the event %s (number %d of conversation %d) was acknowledged at sequence %d, where the log has %s", e.identity, e.index, e.conversation, e.seq, m.identity)
			return nil
		case m.message != e.message:
			found("changed: the event %s at sequence %d differs from what was sent", e.identity, e.seq)
		}
		if e.trap {
			if !o.graph.failed[e.seq] {
				found("the event %s at sequence %d is invalid, but would not be refused", e.identity, e.seq)
			}
			return nil
		}
		n++
		first, applied := o.first[e.identity]
		if !applied {
			found("lost: the event %s at sequence %d would be refused, but is valid", e.identity, e.seq)
			return nil
		}
		before := last[e.conversation]
		if e.index < before.index || e.index == before.index && e.index > 0 || first <= before.seq {
			found("out of order: number %d of conversation %d is at sequence %d, number %d at %d", e.index, e.conversation, first, before.index, before.seq)
		}
		last[e.conversation] = place{e.index, first}
		return nil
	})
	return n, err
}

// maxRows is how many rows of a conversation are read at once.
const maxRows = 1000

// checkGraph checks that a read model "graph" has each event of the log exactly once,
// in order, and nothing else.
func (o *oracle) checkGraph(ctx context.Context, name string, g graph.Reader, found findings) error {
	for id, want := range o.rows {
		if o.graph.deleted[id] {
			continue
		}
		got, err := readRows(ctx, g, events.ConversationID{Tenant: tenant, ID: id})
		if err != nil {
			return err
		}
		compareRows(want, got, func(format string, args ...any) { found("%s: %s: %s", name, id, fmt.Sprintf(format, args...)) })
	}
	return nil
}

func readRows(ctx context.Context, g graph.Reader, id events.ConversationID) (rows []row, err error) {
	for from := uint64(0); ; {
		list, err := g.Transcript(ctx, id, graph.TranscriptQuery{From: from, Limit: maxRows, OldestFirst: true})
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			r := row{seq: e.Position().Seq}
			var origin graph.Origin
			switch {
			case e.Message != nil:
				r.kind, origin = kindMessage, e.Message.Origin
			case e.Call != nil:
				r.kind, origin = kindCall, e.Call.Origin
			default:
				r.kind, origin = kindResult, e.Result.Origin
			}
			event := events.Event{Subject: id.ID, Source: origin.Source, ID: origin.EventID}
			r.identity = event.Identity(id.Tenant)
			rows = append(rows, r)
			from = r.seq + 1
		}
		if len(list) < maxRows {
			return rows, nil
		}
	}
}

// compareRows names the lost, doubled, foreign and misplaced events.
func compareRows(want, got []row, found findings) {
	there, times := map[events.Digest]row{}, map[events.Digest]int{}
	for _, r := range got {
		if times[r.identity]++; times[r.identity] == 2 {
			found("doubled: the event %s, at sequences %d and %d", r.identity, there[r.identity].seq, r.seq)
		}
		there[r.identity] = r
	}
	expected := map[events.Digest]bool{}
	for _, w := range want {
		expected[w.identity] = true
		if g, ok := there[w.identity]; !ok {
			found("lost: the event %s of sequence %d", w.identity, w.seq)
		} else if times[w.identity] == 1 && g != w {
			found("changed: the event %s of sequence %d is at %d", w.identity, w.seq, g.seq)
		}
	}
	for i, g := range got {
		if !expected[g.identity] {
			found("foreign: the event %s at sequence %d, which the log does not have", g.identity, g.seq)
		}
		if i > 0 && g.seq <= got[i-1].seq {
			found("out of order: sequence %d after %d", g.seq, got[i-1].seq)
		}
	}
}

// checkModel checks the engine's records: how many events were applied, how many were dropped (each
// once), and which are listed as failed.
func (want *expected) checkModel(ctx context.Context, store string, model projection.ReadStore, found findings) error {
	checkpoints, err := model.Checkpoints(ctx)
	if err != nil {
		return err
	}
	var applied, duplicates uint64
	for _, cp := range checkpoints {
		applied, duplicates = applied+cp.Applied, duplicates+cp.Duplicates
		if cp.Halted != "" {
			found("%s: %s: partition %d is halted: %s", store, want.name, cp.Partition, cp.Halted)
		}
	}
	if applied != want.applied || duplicates != want.duplicates {
		found("%s: %s: %d events applied and %d duplicates dropped, not %d and %d", store, want.name, applied, duplicates, want.applied, want.duplicates)
	}
	seen := map[uint64]bool{}
	for after := uint64(0); ; {
		list, err := model.Failed(ctx, projection.FailedQuery{After: after, Limit: maxRows})
		if err != nil {
			return err
		}
		for _, f := range list {
			after, seen[f.Seq] = f.Seq, true
			if !want.failed[f.Seq] || f.Class != projection.ClassInvalid {
				found("%s: %s: sequence %d is listed as failed (%s): %s", store, want.name, f.Seq, f.Class, f.Reason)
			}
		}
		if len(list) < maxRows {
			break
		}
	}
	for seq := range want.failed {
		if !seen[seq] {
			found("%s: %s: sequence %d is invalid but is not listed as failed", store, want.name, seq)
		}
	}
	return nil
}

// hashes returns the hashes of all conversations of a read model.
func hashes(ctx context.Context, model projection.ReadStore) (map[string]events.Digest, error) {
	list := map[string]events.Digest{}
	err := model.Hashes(ctx, func(h projection.ConversationHash) error {
		list[h.Conversation.ID] = h.Hash
		return nil
	})
	return list, err
}

// checkHashes checks that two stores have the same conversations with the same hashes, and that the
// log has these conversations.
func (o *oracle) checkHashes(name string, one, other map[string]events.Digest, found findings) {
	for id, hash := range one {
		switch second, there := other[id]; {
		case !there:
			found("%s: %s is in Neo4j and not in SQLite", name, id)
		case hash != second:
			found("%s: %s is not the same in Neo4j and SQLite", name, id)
		}
	}
	for id := range other {
		if _, there := one[id]; !there {
			found("%s: %s is in SQLite and not in Neo4j", name, id)
		}
	}
	if name == o.files.name {
		return // not every conversation has rows there
	}
	for id := range o.rows {
		if _, there := one[id]; !there {
			found("%s: %s is in the log and not in Neo4j", name, id)
		}
	}
}
