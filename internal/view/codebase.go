package view

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/projection"
)

// indexes are the indexes of code that searches used most recently. The one in use always stays.
type indexes struct {
	mu   sync.Mutex
	list []*heldIndex // the last one used first
}

type heldIndex struct {
	id         events.ConversationID
	generation int
	repairs    uint64
	*codebase.Index
}

// codeDivisor sets how much memory indexes of code may take in addition to a cache's budget: the budget divided by this.
const codeDivisor = 2

// Code brings the index of a project's code in memory up to date with the store and returns it.
func (c *Cache) Code(ctx context.Context, r codebase.Reader, generation int, id events.ConversationID) (*codebase.Index, error) {
	return c.index(ctx, r, generation, id, func(x *codebase.Index) error { return x.Follow(ctx, r, id) })
}

// epoch does the same and returns what searches as of a sequence look at.
func (c *Cache) epoch(ctx context.Context, r codebase.Reader, generation int, id events.ConversationID, asOf uint64) (e *codebase.Epoch, err error) {
	_, err = c.index(ctx, r, generation, id, func(x *codebase.Index) (err error) {
		e, err = x.Epoch(ctx, r, id, asOf)
		return err
	})
	return e, err
}

// index returns an index after it has read.
func (c *Cache) index(ctx context.Context, r codebase.Reader, generation int, id events.ConversationID, read func(*codebase.Index) error) (*codebase.Index, error) {
	for again := true; ; again = false {
		repairs, err := repairsOf(ctx, r)
		if err != nil {
			return nil, err
		}
		x := c.indexes.of(id, generation, repairs)
		if err = read(x.Index); err == nil {
			c.indexes.evict(c.budget / codeDivisor)
			return x.Index, nil
		}
		if ctx.Err() == nil && !errors.Is(err, projection.ErrUnavailable) {
			c.indexes.forget(x)
		}
		if !again || !errors.Is(err, codebase.ErrChanged) {
			return nil, err
		}
	}
}

// repairsOf counts the repairs of a read model: each may have changed stored rows.
func repairsOf(ctx context.Context, r projection.ReadStore) (n uint64, err error) {
	list, err := r.Checkpoints(ctx)
	for _, cp := range list {
		n += uint64(cp.Repairs)
	}
	return n, err
}

func (l *indexes) of(id events.ConversationID, generation int, repairs uint64) *heldIndex {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range l.list {
		if x.id == id && x.generation == generation && x.repairs == repairs {
			copy(l.list[1:i+1], l.list[:i])
			l.list[0] = x
			return x
		}
	}
	x := &heldIndex{id: id, generation: generation, repairs: repairs, Index: &codebase.Index{}}
	l.list = slices.Insert(slices.DeleteFunc(l.list, func(old *heldIndex) bool { return old.id == id }), 0, x)
	return x
}

func (l *indexes) forget(x *heldIndex) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(old *heldIndex) bool { return old == x })
}

func (l *indexes) evict(budget int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := 0
	for i, x := range l.list {
		if total += x.Bytes(); i > 0 && total > budget {
			l.list = slices.Delete(l.list, i, len(l.list))
			return
		}
	}
}

// FoundCode is what a search in the code of a project found.
type FoundCode struct {
	Indexes   []codebase.Scan // that were searched
	Hits      []codebase.Hit
	Of        []int // for each hit, the number of its index in Indexes
	ByMeaning bool  // the search also compared meaning
	Left      int   // scopes that were not searched, because an index is too large
}

// SearchCode searches the indexes of some conversations together, best first, and reads the texts of the best ones.
func (c *Cache) SearchCode(ctx context.Context, r codebase.Reader, generation int, ids []events.ConversationID, q codebase.Query, texts int) (found FoundCode, err error) {
	if c.embedder != nil && q.Vector == nil && !q.WordsOnly {
		q.Vector = embed(q.Text)
	}
	found.ByMeaning = q.Vector != nil
	type hit struct {
		codebase.Hit
		of int // index in found.Indexes
	}
	var all []hit
	var searched []events.ConversationID
	for _, id := range ids {
		scan, err := r.Scanned(ctx, id, q.AsOf)
		if err != nil {
			return found, err
		}
		if scan == nil {
			continue
		}
		x, err := c.epoch(ctx, r, generation, id, q.AsOf)
		if err != nil {
			return found, err
		}
		for _, h := range x.Search(q) {
			all = append(all, hit{h, len(searched)})
		}
		searched = append(searched, id)
		found.Indexes, found.Left = append(found.Indexes, *scan), found.Left+x.Left(q.AsOf)
	}
	slices.SortStableFunc(all, func(a, b hit) int { return cmp.Compare(b.Score, a.Score) })
	if name := strings.TrimSpace(q.Text); name != "" { // words are compared in any case: Retry is what has this name, before retry
		named := func(h hit) int {
			if h.IsNamed(name) {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(all, func(a, b hit) int { return named(a) - named(b) })
	}
	all = all[:min(len(all), q.Limit)]
	for of, id := range searched {
		var list []codebase.Hit
		var at []int
		for i, h := range all[:min(len(all), texts)] {
			if h.of == of {
				list, at = append(list, h.Hit), append(at, i)
			}
		}
		if err := codebase.Fill(ctx, r, id, list); err != nil {
			return found, err
		}
		for k, i := range at {
			all[i].Hit = list[k]
		}
	}
	for _, h := range all {
		found.Hits, found.Of = append(found.Hits, h.Hit), append(found.Of, h.of)
	}
	return found, nil
}
