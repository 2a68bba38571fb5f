package indexes

import (
	"context"

	"mneme/events"
	"mneme/pkg/graph"
	"mneme/pkg/recall"
	"mneme/pkg/recall/static"
	"mneme/pkg/window"
)

// Embedder makes the vectors of queries, by the model that the stored ones are from.
type Embedder interface {
	// Model names the model in manifests.
	Model() string
	// Embed is the vector of a text, nil if it has none.
	Embed(text string) recall.Vector
	// MinCosine is what an unrelated text seldom reaches.
	MinCosine() float64
}

// BuiltIn is the embedder of package static, whose vectors are stored with messages.
type BuiltIn struct{}

// Model implements Embedder.
func (BuiltIn) Model() string { return static.Model }

// Embed implements Embedder.
func (BuiltIn) Embed(text string) recall.Vector { return recall.Quantize(static.Embed(text)) }

// MinCosine implements Embedder.
func (BuiltIn) MinCosine() float64 { return static.MinCosine }

// Of is the search in the conversations of a reader, which may be one of a lineage; descent
// is that of the lineage.
func (c *Cache) Of(r graph.RecallReader, descent string) window.Recall {
	return &search{c, r, descent}
}

type search struct {
	cache   *Cache
	reader  graph.RecallReader
	descent string
}

// Search implements window.Recall.
func (s *search) Search(ctx context.Context, id events.ConversationID, q recall.Query) (window.Found, error) {
	e := s.cache.of(key{id, s.descent})
	if err := e.refresh(ctx, s.reader); err != nil {
		s.cache.forget(e)
		return window.Found{}, err
	}
	e.mu.RLock()
	found := window.Found{}
	if s.cache.embedder != nil {
		q.Vector = s.cache.embedder.Embed(e.index.Unnamed(q.Text, q.AsOf))
		found.Model, found.MinCosine = s.cache.embedder.Model(), s.cache.embedder.MinCosine()
	}
	found.Vector = q.Vector
	found.Hits = e.index.Search(q)
	bytes := e.index.Bytes()
	e.mu.RUnlock()
	s.cache.resize(e, &e.bytes, bytes)
	return found, nil
}

// Rank implements window.Recall.
func (s *search) Rank(id events.ConversationID, q recall.Query, list []string) []recall.Hit {
	e := s.cache.held(key{id, s.descent})
	if e == nil {
		e = &entry{}
	}
	index, bytes := e.texts.of(list, s.cache.embedder)
	s.cache.resize(e, &e.textsBytes, bytes)
	return index.Search(q)
}
