package view

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/sourcegraph/conc/iter"
	"golang.org/x/sync/semaphore"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
	"mneme.dev/mneme/pkg/window"
)

// page is how many bags are read at a time.
const page = 1000

// maxLoading is how many indexes are loaded at once. Further loads wait.
const maxLoading = 4

// Cache has one entry for each edition of a conversation, see [Source]. One rule says what in
// it is valid: within an edition nothing up to a sequence changes, so everything cached up to
// a sequence stays as it is, and only what comes after is read. A new generation and a repair
// make another edition; a deletion is final.
//
// A Cache is safe for concurrent use. Two searches of one conversation block each other only
// while one of them reads new messages.
type Cache struct {
	// Reranker orders the best results of searches in a conversation, nil for none: those that ask for
	// it, or with RerankAlways all that do not decline. Set them before the first use.
	Reranker     window.Reranker
	RerankAlways bool

	budget   int
	embedder Embedder
	loading  *semaphore.Weighted // places for loading indexes

	indexes indexes

	mu       sync.Mutex
	entries  map[key]*entry
	list     []*entry // the same, in no order
	searches uint64   // so far
	figures  Figures
}

// Figures counts what a cache did since it was made.
type Figures struct {
	Indexes int // indexes held now
	Bytes   int // approximate memory held now
	Hits    int // searches that found the index of their conversation
	Loads   int // searches that had to load it
	Evicted int // indexes evicted to make room
}

// key identifies an entry, see [Source].
type key struct {
	id      events.ConversationID
	edition string
}

type entry struct {
	key        key
	at         int    // in Cache.list
	searched   uint64 // number of the last search
	bytes      int    // of the index; these five and earlier.bytes add up in Figures.Bytes
	textsBytes int    // of the texts
	codeBytes  int    // of the code
	rowBytes   int    // of the rows
	toolBytes  int    // of the tool results

	// refreshing is held by the search that reads from the store to bring the index up to
	// date. Others wait for it as long as their clients do, which no mutex allows. It guards
	// the fields below; changing the index needs mu as well, which is never held during a read.
	refreshing *semaphore.Weighted
	loaded     bool   // load has read all of it once
	last       uint64 // sequence of the last message added
	// From the read model "embeddings": the sequence of the last message that has vectors, the earlier messages that have
	// none, and up to which sequence these were looked for again.
	embeddedUpTo uint64
	unembedded   []uint64
	retriedUpTo  uint64

	mu         sync.RWMutex
	index      *recall.Index
	otherTable bool // some built-in vectors are of another table, so they are not in the index

	texts   texts
	code    seenCode
	rows    rows
	tools   *tools
	earlier earlier
}

// NewCache returns an empty cache for about budget bytes. It always holds the most recently
// searched conversation, even if that is larger. With a nil embedder nothing is ranked by
// meaning.
func NewCache(budget int, embedder Embedder) *Cache {
	return &Cache{budget: budget, embedder: embedder, loading: semaphore.NewWeighted(maxLoading), entries: map[key]*entry{}}
}

// Figures returns the counts.
func (c *Cache) Figures() Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.figures
}

// of returns the entry of a conversation and makes it if needed.
func (c *Cache) of(k key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.searches++
	e := c.entries[k]
	if e != nil {
		c.figures.Hits++
	} else {
		e = &entry{key: k, at: len(c.list), index: &recall.Index{}, refreshing: semaphore.NewWeighted(1), tools: newTools()}
		c.entries[k], c.list = e, append(c.list, e)
		c.figures.Loads++
		c.figures.Indexes++
	}
	e.searched = c.searches
	return e
}

// held returns the entry of a conversation, or nil if it was never searched or was evicted.
func (c *Cache) held(k key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[k]
}

// resize updates the size of a part of an entry and evicts others if the cache is over
// budget.
func (c *Cache) resize(e *entry, part *int, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[e.key] != e {
		return // evicted since
	}
	c.figures.Bytes += bytes - *part
	*part = bytes
	for c.figures.Bytes > c.budget && len(c.list) > 1 {
		c.remove(c.victim())
		c.figures.Evicted++
	}
}

// sampled is how many entries are compared to find one to evict.
const sampled = 3

// victim returns the entry that was searched longest ago, of all or of a random few. If it always were the oldest of
// all, slightly more conversations than fit into the cache, searched in turn, would never be found in it.
func (c *Cache) victim() *entry {
	from := c.list
	if len(from) > sampled {
		from = nil
		at := rand.IntN(len(c.list))
		for n := range sampled { // different ones
			from = append(from, c.list[(at+n*len(c.list)/sampled)%len(c.list)])
		}
	}
	return slices.MinFunc(from, func(a, b *entry) int { return cmp.Compare(a.searched, b.searched) })
}

func (c *Cache) remove(e *entry) {
	last := c.list[len(c.list)-1]
	c.list[e.at], last.at = last, e.at
	c.list[len(c.list)-1] = nil
	c.list = c.list[:len(c.list)-1]
	delete(c.entries, e.key)
	c.figures.Bytes -= e.bytes + e.textsBytes + e.codeBytes + e.rowBytes + e.toolBytes + e.earlier.bytes
	c.figures.Indexes--
}

// forget removes an unusable entry, unless it is gone already.
func (c *Cache) forget(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[e.key] == e {
		c.remove(e)
	}
}

// refresh adds the messages stored since the last search. If ctx ends first, what was read
// stays, and the next search continues from there.
func (e *entry) refresh(ctx context.Context, r graph.RecallReader, builtIn bool) error {
	if err := e.refreshing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.refreshing.Release(1)
	return e.read(ctx, r, builtIn)
}

// load is refresh for an index that may not be in memory. It does nothing if the index is
// there; otherwise it waits for a place among those that load, for at most maxQueued. whole
// says that r reads the conversation to its end, not as of an earlier sequence.
func (e *entry) load(ctx context.Context, loading *semaphore.Weighted, r graph.RecallReader, builtIn, whole bool) error {
	if err := e.refreshing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.refreshing.Release(1)
	if e.loaded {
		return nil
	}
	if err := place(ctx, loading); err != nil {
		return err
	}
	defer loading.Release(1)
	if err := e.read(ctx, r, builtIn); err != nil {
		return err
	}
	e.loaded = whole
	return nil
}

// place waits for a place among those that load, for at most maxQueued. The caller releases it.
func place(ctx context.Context, loading *semaphore.Weighted) error {
	queued, cancel := context.WithTimeout(ctx, maxQueued)
	err := loading.Acquire(queued, 1)
	cancel()
	switch {
	case ctx.Err() != nil:
		if err == nil {
			loading.Release(1)
		}
		return ctx.Err()
	case err != nil:
		return ErrBusy
	}
	return nil
}

// read reads the messages after the last known one. Those before never change within an edition.
// A page is decoded and added while the next one is read.
func (e *entry) read(ctx context.Context, r graph.RecallReader, builtIn bool) (err error) {
	adding := func() error { return nil } // waits for the page before
	defer func() {
		if before := adding(); before != nil {
			err = before
		}
	}()
	for from := e.last + 1; ; {
		list, err := r.Bags(ctx, e.key.id, graph.BagQuery{From: from, Limit: page})
		if err != nil {
			return err
		}
		if err := adding(); err != nil || len(list) == 0 {
			return err
		}
		if len(list) < page { // nothing to read while that goes on
			adding = func() error { return nil }
			return e.add(list, builtIn)
		}
		from = list[len(list)-1].Seq + 1
		adding = sync.OnceValue(start(func() error { return e.add(list, builtIn) }))
	}
}

// start runs f in a goroutine. wait returns its result.
func start(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}

// decoded is a bag to be added to an index.
type decoded struct {
	bag     recall.Bag
	vectors []recall.Vector
	table   byte // that made the vectors
	err     error
}

// add adds bags to the index, with their built-in vectors if these are used. It decodes them in parallel first, and
// locks searches out of the index only while it adds them.
func (e *entry) add(list []graph.Bag, builtIn bool) error {
	bags := iter.Map(list, func(b *graph.Bag) (d decoded) {
		d.bag, d.vectors, d.table, d.err = b.Decode()
		return d
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, d := range bags {
		err := d.err
		if err == nil {
			err = e.index.Add(list[i].Seq, d.bag)
		}
		if err == nil && builtIn {
			err = e.index.SetVectors(list[i].Seq, d.vectors)
			e.otherTable = e.otherTable || d.table != static.Table
		}
		if err != nil {
			return fmt.Errorf("index of conversation %q, message with sequence %d: %w", e.key.id.ID, list[i].Seq, err)
		}
		e.last = list[i].Seq
	}
	return nil
}

// embed adds the vectors stored since its last call, skipping those of other dimensions.
func (e *entry) embed(ctx context.Context, r graph.EmbeddingsReader, dimensions int) (embedded, error) {
	if err := e.refreshing.Acquire(ctx, 1); err != nil {
		return embedded{}, err
	}
	defer e.refreshing.Release(1)
	read := func(from, upTo uint64) (n int, last uint64, err error) {
		list, err := r.Embeddings(ctx, e.key.id, graph.BagQuery{From: from, Before: upTo + 1, Limit: page})
		e.mu.Lock()
		defer e.mu.Unlock()
		for i := range list {
			vectors, err := list[i].Decode()
			if err == nil && list[i].Dimensions == dimensions {
				_ = e.index.SetVectors(list[i].Seq, vectors) // fails only for a message that is not in the index
			}
			last = list[i].Seq
			e.embeddedUpTo = max(e.embeddedUpTo, last)
		}
		return len(list), last, err
	}
	// A message without vectors may have some now: embedding was retried, or the message
	// comes from a parent in another partition. One page of messages is enough for one search;
	// the next one goes on where it ended, because some messages never get vectors.
	if len(e.unembedded) > 0 {
		first, last := e.unembedded[0], e.unembedded[len(e.unembedded)-1]
		from := first
		if i, _ := slices.BinarySearch(e.unembedded, e.retriedUpTo+1); i < len(e.unembedded) {
			from = e.unembedded[i]
		}
		n, upTo, err := read(from, last)
		if err != nil {
			return embedded{}, err
		}
		if e.retriedUpTo = upTo; n < page {
			e.retriedUpTo = 0
		}
		e.unembedded = e.index.Unembedded(first-1, last)
	}
	before := e.embeddedUpTo
	for e.embeddedUpTo < e.last {
		n, _, err := read(e.embeddedUpTo+1, e.last)
		if err != nil {
			return embedded{}, err
		}
		if n < page {
			break
		}
	}
	e.unembedded = append(e.unembedded, e.index.Unembedded(before, e.embeddedUpTo)...)
	return embedded{
		upTo: e.embeddedUpTo, without: len(e.unembedded) + len(e.index.Unembedded(e.embeddedUpTo, e.last)), all: e.index.Len(),
	}, nil
}

// embedded says how many messages of an index have vectors.
type embedded struct {
	upTo         uint64 // sequence of the last message with vectors
	without, all int    // numbers of messages
}

// unnamed returns the query without the names of the conversation's speakers.
func (e *entry) unnamed(q recall.Query) string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.index.Unnamed(q.Text, q.AsOf)
}

// builtIn reports whether the vectors stored with the bags are the ones in use.
func (c *Cache) builtIn() bool {
	_, ok := c.embedder.(BuiltIn)
	return ok
}

// Model returns the name of the embedding model, "" if there is none.
func (c *Cache) Model() string {
	if c.embedder == nil {
		return ""
	}
	return c.embedder.Model()
}

// Remote reports whether vectors come from the read model "embeddings" and queries are
// embedded by a server. A nil cache searches nothing.
func (c *Cache) Remote() bool { return c != nil && c.embedder != nil && !c.builtIn() }
