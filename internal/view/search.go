package view

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/code"
)

// Embedder embeds queries with the model that the stored vectors come from.
type Embedder interface {
	// Model names the model in manifests.
	Model() string
	// Query returns the vector of a query, nil if it has none.
	Query(ctx context.Context, text string) (recall.Vector, error)
	// MinCosine is a cosine that unrelated texts rarely reach.
	MinCosine() float64
}

// BuiltIn is the embedder of package static, whose vectors are stored with the messages.
type BuiltIn struct{}

// Model implements Embedder.
func (BuiltIn) Model() string { return static.Model }

// Query implements Embedder. It never fails.
func (BuiltIn) Query(_ context.Context, text string) (recall.Vector, error) {
	return embed(text), nil
}

// MinCosine implements Embedder.
func (BuiltIn) MinCosine() float64 { return static.MinCosine }

func embed(text string) recall.Vector { return recall.Quantize(static.Embed(text)) }

// Source says where a conversation's index is loaded from.
type Source struct {
	Messages graph.RecallReader // may read a lineage
	Rows     RowReader          // the same conversation, to search its tool results; nil for none
	// Edition changes whenever stored rows of the conversation or its lineage may have
	// changed, by a new generation or a repair: see [graph.Lineage.Descent].
	Edition string
	// Embeddings reads the vectors of passages for embedders other than [BuiltIn]. If it is
	// nil, Absent says why.
	Embeddings graph.EmbeddingsReader
	Absent     error
}

// Of returns a search over the conversations of a source.
func (c *Cache) Of(s Source) window.Recall { return &search{cache: c, source: s} }

type search struct {
	cache  *Cache
	source Source
	loaded *entry // counted by Cache.of already; nil if load did nothing
}

// load loads the index of a conversation unless it is in memory.
func (s *search) load(ctx context.Context, id events.ConversationID, whole bool) error {
	e := s.cache.of(key{id, s.source.Edition})
	s.loaded = e
	return s.done(ctx, e, e.load(ctx, s.cache.loading, s.source.Messages, s.cache.builtIn(), whole))
}

// done removes an entry that could not be read. If the client went away or found no place, the entry stays: the next
// search needs what was read.
func (s *search) done(ctx context.Context, e *entry, err error) error {
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrBusy) {
		s.cache.forget(e)
	}
	return err
}

// entry returns the entry of a conversation, which counts as a search unless it was just loaded.
func (s *search) entry(id events.ConversationID) *entry {
	e := s.loaded
	if s.loaded = nil; e == nil || e.key.id != id {
		e = s.cache.of(key{id, s.source.Edition})
	}
	return e
}

// Search implements window.Recall.
func (s *search) Search(ctx context.Context, id events.ConversationID, q recall.Query) (window.Found, error) {
	e := s.entry(id)
	if err := s.done(ctx, e, e.refresh(ctx, s.source.Messages, s.cache.builtIn())); err != nil {
		return window.Found{}, err
	}
	var found window.Found
	q.Vector, found = s.meaning(ctx, e, q)
	e.mu.RLock()
	found.Hits, found.Further = e.index.SearchFurther(q)
	bytes := e.index.Bytes()
	e.mu.RUnlock()
	s.cache.resize(e, &e.bytes, bytes)
	return found, nil
}

// meaning embeds the query and loads the vectors to compare it with. If either is missing,
// that is not an error: the search ranks by words alone and Found.Missing says why.
func (s *search) meaning(ctx context.Context, e *entry, q recall.Query) (recall.Vector, window.Found) {
	embedder := s.cache.embedder
	if embedder == nil {
		return nil, window.Found{}
	}
	found := window.Found{Model: embedder.Model(), MinCosine: embedder.MinCosine()}
	vector, err := embedder.Query(ctx, e.unnamed(q))
	switch {
	case err != nil:
		return nil, window.Found{Missing: "the query could not be embedded: " + err.Error()}
	case vector == nil: // as of a query that only names a speaker
		return nil, window.Found{}
	case s.cache.builtIn():
		if e.lacks() {
			found.Missing = "the stored embeddings are of an earlier version: run mneme rebuild graph"
		}
		return vector, found
	case s.source.Embeddings == nil:
		return nil, window.Found{Missing: fmt.Sprintf("no messages are embedded: %v", s.source.Absent)}
	}
	state, err := e.embed(ctx, s.source.Embeddings, len(vector))
	found.EmbeddedUpTo = state.upTo
	if q.EmbeddedUpTo != 0 {
		found.EmbeddedUpTo = min(state.upTo, q.EmbeddedUpTo)
	}
	switch {
	case err != nil:
		found.Missing = "cannot read the embeddings of messages: " + err.Error()
	case state.without > 0:
		found.Missing = fmt.Sprintf("%d of %d messages have no vectors", state.without, state.all)
	}
	return vector, found
}

// lacks reports whether messages were embedded by another table than the query.
func (e *entry) lacks() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.otherTable
}

// Rank implements window.Recall.
func (s *search) Rank(id events.ConversationID, q recall.Query, list []string) (found window.Found) {
	e := s.cache.held(key{id, s.source.Edition})
	if e == nil {
		e = &entry{index: &recall.Index{}}
	}
	byMeaning := s.cache.embedder != nil
	if byMeaning {
		q.Vector = embed(e.unnamed(q))
		found.Model, found.MinCosine = static.Model, static.MinCosine
	}
	index, bytes := e.texts.of(list, byMeaning)
	s.cache.resize(e, &e.textsBytes, bytes)
	q.AsOf = 0
	found.Hits = index.Search(q)
	return found
}

// Embedding implements window.Recall. Code is ranked by built-in embeddings or not at all; no other
// embeddings of it exist.
func (s *search) Embedding() (func(text string) recall.Vector, string) {
	if s.cache.embedder == nil {
		return nil, ""
	}
	return embed, static.Model
}

// seenCode is the code that the contexts of a conversation have read.
type seenCode struct {
	mu   sync.Mutex
	kept *code.Seen
}

// SeenCode implements window.Recall. Nothing is kept of a conversation that was never searched.
func (s *search) SeenCode(id events.ConversationID) *code.Seen {
	e := s.cache.held(key{id, s.source.Edition})
	if e == nil {
		return nil
	}
	e.code.mu.Lock()
	defer e.code.mu.Unlock()
	return e.code.kept
}

// KeepCode implements window.Recall. It does not replace code that was read up to a later sequence.
func (s *search) KeepCode(id events.ConversationID, c *code.Seen) {
	e := s.cache.held(key{id, s.source.Edition})
	if e == nil {
		return
	}
	e.code.mu.Lock()
	defer e.code.mu.Unlock()
	if c.Newest() >= e.code.kept.Newest() {
		e.code.kept = c
		s.cache.resize(e, &e.codeBytes, c.Bytes())
	}
}
