package view

import (
	"context"
	"errors"
	"sync"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Models opens the read models in the generations that serve. Each method returns an error
// while its read model does not exist, and ends with its context.
type Models interface {
	Graph(ctx context.Context) (Pinned[graph.Reader], error)
	Files(ctx context.Context) (Pinned[graph.FilesReader], error)
	Summaries(ctx context.Context) (Pinned[summary.Reader], error)
	Projects(ctx context.Context) (Pinned[project.Reader], error)
	Insight(ctx context.Context) (Pinned[insight.Reader], error)
	Code(ctx context.Context) (Pinned[codebase.Reader], error)
	// Embeddings is called only if searches need them.
	Embeddings(ctx context.Context) (Pinned[graph.EmbeddingsReader], error)
}

// Pinned is a read model in the generation that served when it was opened. It stays
// readable until Release is called, exactly once.
type Pinned[R any] struct {
	Model      R
	Generation int
	Release    func()
}

// Lend opens a read model for the duration of a call.
func Lend[R any](ctx context.Context, open func(context.Context) (Pinned[R], error), read func(R) error) error {
	pinned, err := open(ctx)
	if err != nil {
		return err
	}
	defer pinned.Release()
	return read(pinned.Model)
}

// Model is a read model with the name of its projection.
type Model struct {
	Name       string
	Generation int
	Store      projection.ReadStore
	Err        error // why there is no Store

	hold *hold
}

// hold keeps one pinned read model readable for its users: the caller that pinned it, and
// the goroutines that read on behalf of several callers and may outlive this one.
type hold struct {
	mu      sync.Mutex
	users   int
	release func()
}

// retain adds a user. It returns false if the read model has been released.
func (h *hold) retain() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == 0 {
		return false
	}
	h.users++
	return true
}

func (h *hold) drop() {
	h.mu.Lock()
	h.users--
	last := h.users == 0
	h.mu.Unlock()
	if last {
		h.release()
	}
}

// Pins are the read models of one caller, such as a request. It reads one generation of each,
// which stays readable until Release. Pins are not safe for concurrent use.
type Pins struct {
	views      *Views
	graph      opened[graph.Reader]
	files      opened[graph.FilesReader]
	summaries  opened[summary.Reader]
	projects   opened[project.Reader]
	insight    opened[insight.Reader]
	code       opened[codebase.Reader]
	embeddings opened[graph.EmbeddingsReader]
	open       []*View
}

// opened is a read model that is open if its model has a store.
type opened[R projection.ReadStore] struct {
	reader R
	model  Model
}

func (o *opened[R]) get(ctx context.Context, name string, open func(context.Context) (Pinned[R], error)) (R, Model, error) {
	if o.model.hold == nil {
		p, err := open(ctx)
		if err != nil {
			return o.reader, Model{Name: name, Err: err}, err
		}
		o.reader = p.Model
		o.model = Model{Name: name, Generation: p.Generation, Store: p.Model, hold: &hold{users: 1, release: p.Release}}
	}
	return o.reader, o.model, nil
}

// Pin returns Pins that hold nothing yet. The caller releases them.
func (v *Views) Pin() *Pins { return &Pins{views: v} }

// Graph returns the read model "graph".
func (p *Pins) Graph(ctx context.Context) (graph.Reader, Model, error) {
	return p.graph.get(ctx, "graph", p.views.Models.Graph)
}

// Files returns the read model "files".
func (p *Pins) Files(ctx context.Context) (graph.FilesReader, Model, error) {
	return p.files.get(ctx, "files", p.views.Models.Files)
}

// Summaries returns the read model "summaries".
func (p *Pins) Summaries(ctx context.Context) (summary.Reader, Model, error) {
	return p.summaries.get(ctx, "summaries", p.views.Models.Summaries)
}

// Projects returns the read model "projects".
func (p *Pins) Projects(ctx context.Context) (project.Reader, Model, error) {
	return p.projects.get(ctx, "projects", p.views.Models.Projects)
}

// Insight returns the read model "insight".
func (p *Pins) Insight(ctx context.Context) (insight.Reader, Model, error) {
	return p.insight.get(ctx, "insight", p.views.Models.Insight)
}

// Code returns the read model "code".
func (p *Pins) Code(ctx context.Context) (codebase.Reader, Model, error) {
	return p.code.get(ctx, codebase.Name, p.views.Models.Code)
}

// Embeddings returns the read model "embeddings".
func (p *Pins) Embeddings(ctx context.Context) (graph.EmbeddingsReader, Model, error) {
	return p.embeddings.get(ctx, "embeddings", p.views.Models.Embeddings)
}

// All returns all read models in use; those that cannot be opened have an Err. It opens them at the same time, because a
// store that hangs is silent for seconds.
func (p *Pins) All(ctx context.Context) []Model {
	opens := []func() Model{
		func() Model { _, m, _ := p.Graph(ctx); return m },
		func() Model { _, m, _ := p.Files(ctx); return m },
		func() Model { _, m, _ := p.Summaries(ctx); return m },
		func() Model { _, m, _ := p.Projects(ctx); return m },
		func() Model { _, m, _ := p.Insight(ctx); return m },
		func() Model { _, m, _ := p.Code(ctx); return m },
	}
	if p.views.Cache.Remote() {
		opens = append(opens, func() Model { _, m, _ := p.Embeddings(ctx); return m })
	}
	list := make([]Model, len(opens))
	var all sync.WaitGroup
	for i, open := range opens {
		all.Go(func() { list[i] = open() })
	}
	all.Wait()
	return list
}

// Position returns the sequence of the newest event that the graph has applied to a conversation, 0 if there is no such
// conversation.
func (p *Pins) Position(ctx context.Context, id events.ConversationID) (uint64, error) {
	g, _, err := p.Graph(ctx)
	if err != nil {
		return 0, err
	}
	c, err := g.Conversation(ctx, id, graph.Latest)
	if errors.Is(err, graph.ErrNotFound) {
		return 0, nil
	}
	return c.LastSeq, err
}

// Release releases the read models and the views opened with them. A second call does
// nothing.
func (p *Pins) Release() {
	for _, v := range p.open {
		v.Release()
	}
	for _, h := range []*hold{p.graph.model.hold, p.files.model.hold, p.summaries.model.hold, p.projects.model.hold, p.insight.model.hold, p.code.model.hold, p.embeddings.model.hold} {
		if h != nil {
			h.drop()
		}
	}
	*p = Pins{views: p.views}
}
