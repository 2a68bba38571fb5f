// Package indexes keeps the recall indexes of the conversations that were searched last,
// as many as a budget of memory allows, with the rows that their last contexts have read and
// what contexts keep of the code that tools have shown there. An index is loaded from what is stored with the messages when its
// conversation is searched for the first time, and each search reads what has come since.
package indexes

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"mneme/events"
	"mneme/pkg/graph"
	"mneme/pkg/recall"
	"mneme/pkg/recall/static"
	"mneme/pkg/window"
)

// page is how many bags are read at once.
const page = 1000

// Cache holds indexes. Many may search it at once; two searches of one conversation wait
// for each other only while one of them reads what is new.
type Cache struct {
	budget   int
	embedder Embedder

	mu      sync.Mutex
	entries map[key]*list.Element // of *entry
	recent  list.List             // the one searched last in front
	figures Figures
}

// Figures are those of a cache since it was made.
type Figures struct {
	Indexes int // that it holds
	Bytes   int // that they take, about
	Hits    int // searches that found the index of their conversation
	Loads   int // that did not
	Evicted int // indexes that had to make room
}

// key tells indexes apart, see [Source].
type key struct {
	id      events.ConversationID
	edition string
}

type entry struct {
	key        key
	bytes      int // of the index, as counted in the cache
	textsBytes int // of the texts
	codeBytes  int // of the code
	rowBytes   int // of the rows

	mu    sync.RWMutex
	index *recall.Index
	n     int // of the last message that was added, see graph.Position
	last  uint64

	// Of the read model "embeddings": the sequence of the last message that has vectors,
	// and those before it that have none.
	embeddedUpTo uint64
	unembedded   []uint64

	texts texts
	code  *window.CodeCache
	rows  rows
}

// New makes an empty cache that holds about so many bytes of indexes, and at least the one
// searched last. Embedder may be nil: then nothing is ranked by meaning.
func New(budget int, embedder Embedder) *Cache {
	return &Cache{budget: budget, embedder: embedder, entries: map[key]*list.Element{}}
}

// Figures are what the cache has done.
func (c *Cache) Figures() Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.figures
}

// of finds or begins the entry of a conversation.
func (c *Cache) of(k key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[k]; ok {
		c.recent.MoveToFront(e)
		c.figures.Hits++
		return e.Value.(*entry)
	}
	e := &entry{key: k, index: &recall.Index{}}
	e.code = c.code()
	e.code.Resized = func(bytes int) { c.resize(e, &e.codeBytes, bytes) }
	c.entries[k] = c.recent.PushFront(e)
	c.figures.Loads++
	c.figures.Indexes++
	return e
}

// code is an empty cache of code, which is ranked by built-in embeddings if by any: there
// are no others of it.
func (c *Cache) code() *window.CodeCache {
	if c.embedder == nil {
		return &window.CodeCache{}
	}
	return &window.CodeCache{Embed: embed, Model: static.Model}
}

// held is the entry of a conversation that was searched, nil if it had to go.
func (c *Cache) held(k key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.entries[k]; at != nil {
		return at.Value.(*entry)
	}
	return nil
}

// resize counts what a part of an entry takes now, and makes room for it.
func (c *Cache) resize(e *entry, part *int, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.entries[e.key]; at == nil || at.Value != e {
		return // it had to go meanwhile
	}
	c.figures.Bytes += bytes - *part
	*part = bytes
	for c.figures.Bytes > c.budget && c.recent.Len() > 1 {
		c.remove(c.recent.Back())
		c.figures.Evicted++
	}
}

func (c *Cache) remove(at *list.Element) {
	e := c.recent.Remove(at).(*entry)
	delete(c.entries, e.key)
	c.figures.Bytes -= e.bytes + e.textsBytes + e.codeBytes + e.rowBytes
	c.figures.Indexes--
}

// forget removes an entry that can't be used, unless it is gone already.
func (c *Cache) forget(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.entries[e.key]; at != nil && at.Value == e {
		c.remove(at)
	}
}

// refresh adds what was stored since the entry was searched last. It reads the last
// message that it knows once more: if that is gone or has another number, the store was
// repaired or is an older one, and the index is made anew.
func (e *entry) refresh(ctx context.Context, r graph.RecallReader, builtIn bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	list, err := r.Bags(ctx, e.key.id, graph.BagQuery{From: e.last, Limit: page})
	if err != nil {
		return err
	}
	if e.last != 0 {
		if len(list) > 0 && list[0].Seq == e.last && list[0].N == e.n {
			list = list[1:]
			if len(list) < page-1 {
				return e.add(list, builtIn)
			}
		} else {
			e.index, e.last, e.n = &recall.Index{}, 0, 0
			e.embeddedUpTo, e.unembedded = 0, nil
			if list, err = r.Bags(ctx, e.key.id, graph.BagQuery{Limit: page}); err != nil {
				return err
			}
		}
	}
	for {
		if err := e.add(list, builtIn); err != nil {
			return err
		}
		if len(list) < page-1 {
			return nil
		}
		if list, err = r.Bags(ctx, e.key.id, graph.BagQuery{From: e.last + 1, Limit: page}); err != nil {
			return err
		}
	}
}

// add adds bags to the index, with their own vectors if they count.
func (e *entry) add(list []graph.Bag, builtIn bool) error {
	for i := range list {
		bag, vectors, err := list[i].Decode()
		if err == nil {
			err = e.index.Add(list[i].Seq, bag)
		}
		if err == nil && builtIn {
			err = e.index.SetVectors(list[i].Seq, vectors)
		}
		if err != nil {
			return fmt.Errorf("index of conversation %q, message with sequence %d: %w", e.key.id.ID, list[i].Seq, err)
		}
		e.last, e.n = list[i].Seq, list[i].N
	}
	return nil
}

// embed adds the vectors that were stored since it was asked last, those of so many
// dimensions.
func (e *entry) embed(ctx context.Context, r graph.EmbeddingsReader, dimensions int) (embedded, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	read := func(from, upTo uint64) (n int, err error) {
		list, err := r.Embeddings(ctx, e.key.id, graph.BagQuery{From: from, Before: upTo + 1, Limit: page})
		for i := range list {
			vectors, err := list[i].Decode()
			if err == nil && list[i].Dimensions == dimensions {
				_ = e.index.SetVectors(list[i].Seq, vectors) // a message that has failed here is not in the index
			}
			e.embeddedUpTo = max(e.embeddedUpTo, list[i].Seq)
		}
		return len(list), err
	}
	// What had none may have some now: it was tried again, or is inherited from another
	// partition. A page of that is enough.
	if len(e.unembedded) > 0 {
		first, last := e.unembedded[0], e.unembedded[len(e.unembedded)-1]
		if _, err := read(first, last); err != nil {
			return embedded{}, err
		}
		e.unembedded = e.index.Unembedded(first-1, last)
	}
	before := e.embeddedUpTo
	for e.embeddedUpTo < e.last {
		n, err := read(e.embeddedUpTo+1, e.last)
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

// embedded is how far the messages of an index are embedded.
type embedded struct {
	upTo         uint64 // the sequence of the last one that is
	without, all int    // messages
}

// unnamed is a query without the names of who speaks in the conversation.
func (e *entry) unnamed(q recall.Query) string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.index.Unnamed(q.Text, q.AsOf)
}

// builtIn tells whether the vectors that count are those that bags have.
func (c *Cache) builtIn() bool {
	_, ok := c.embedder.(BuiltIn)
	return ok
}

// Model names the embeddings, "" if there are none.
func (c *Cache) Model() string {
	if c.embedder == nil {
		return ""
	}
	return c.embedder.Model()
}

// Remote tells whether vectors come from the read model "embeddings", and those of queries
// from a server.
func (c *Cache) Remote() bool { return c.embedder != nil && !c.builtIn() }
