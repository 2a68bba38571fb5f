package httpapi

import (
	"context"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Models returns the read models, or an error while one does not exist yet.
type Models interface {
	Graph() (Pinned[graph.Reader], error)
	Files() (Pinned[graph.FilesReader], error)
	Summaries() (Pinned[summary.Reader], error)
	// Embeddings is called only if searches need them.
	Embeddings() (Pinned[graph.EmbeddingsReader], error)
	// Verify replays the log into temporary read models and compares.
	Verify(ctx context.Context, log *eventlog.Log, progress func(projection string, done, total uint64)) ([]projection.Verification, error)
}

// Pinned is a read model in the generation that served when it was requested. It stays
// readable until Release is called.
type Pinned[R any] struct {
	Model      R
	Generation int
	Release    func()
}

// model is a read model with the name of its projection.
type model struct {
	name       string
	generation int
	store      projection.ReadStore
	err        error // why there is no store
}

// buildOf identifies a model to other processes.
func (a *api) buildOf(m model) projection.Build {
	return projection.Build{Store: a.Store, Projection: m.name, Generation: m.generation}
}

// pins holds the read models of one request, which reads one generation of each.
type pins struct {
	graph      *Pinned[graph.Reader]
	files      *Pinned[graph.FilesReader]
	summaries  *Pinned[summary.Reader]
	embeddings *Pinned[graph.EmbeddingsReader]
}

func (p *pins) release() {
	if p.graph != nil {
		p.graph.Release()
	}
	if p.files != nil {
		p.files.Release()
	}
	if p.summaries != nil {
		p.summaries.Release()
	}
	if p.embeddings != nil {
		p.embeddings.Release()
	}
}

// pinnedGraph returns the read model "graph", pinned for the rest of the request.
func (a *api) pinnedGraph(ctx context.Context) (graph.Reader, model, error) {
	p := &exchangeOf(ctx).pins
	if p.graph == nil {
		g, err := a.Models.Graph()
		if err != nil {
			return nil, model{}, err
		}
		p.graph = &g
	}
	return p.graph.Model, model{name: "graph", generation: p.graph.Generation, store: p.graph.Model}, nil
}

// pinnedFiles returns the read model "files", pinned for the rest of the request.
func (a *api) pinnedFiles(ctx context.Context) (graph.FilesReader, model, error) {
	p := &exchangeOf(ctx).pins
	if p.files == nil {
		f, err := a.Models.Files()
		if err != nil {
			return nil, model{}, err
		}
		p.files = &f
	}
	return p.files.Model, model{name: "files", generation: p.files.Generation, store: p.files.Model}, nil
}

// pinnedSummaries returns the read model "summaries", pinned for the rest of the request.
func (a *api) pinnedSummaries(ctx context.Context) (summary.Reader, model, error) {
	p := &exchangeOf(ctx).pins
	if p.summaries == nil {
		s, err := a.Models.Summaries()
		if err != nil {
			return nil, model{}, err
		}
		p.summaries = &s
	}
	return p.summaries.Model, model{name: "summaries", generation: p.summaries.Generation, store: p.summaries.Model}, nil
}

// pinnedEmbeddings returns the read model "embeddings", pinned for the rest of the request.
func (a *api) pinnedEmbeddings(ctx context.Context) (graph.EmbeddingsReader, model, error) {
	p := &exchangeOf(ctx).pins
	if p.embeddings == nil {
		e, err := a.Models.Embeddings()
		if err != nil {
			return nil, model{}, err
		}
		p.embeddings = &e
	}
	return p.embeddings.Model, model{name: "embeddings", generation: p.embeddings.Generation, store: p.embeddings.Model}, nil
}

// models returns all read models, pinned for the rest of the request.
func (a *api) models(ctx context.Context) []model {
	_, g, err := a.pinnedGraph(ctx)
	if err != nil {
		g = model{name: "graph", err: err}
	}
	_, f, err := a.pinnedFiles(ctx)
	if err != nil {
		f = model{name: "files", err: err}
	}
	_, s, err := a.pinnedSummaries(ctx)
	if err != nil {
		s = model{name: "summaries", err: err}
	}
	list := []model{g, f, s}
	if a.searchesRemotely() {
		_, e, err := a.pinnedEmbeddings(ctx)
		if err != nil {
			e = model{name: "embeddings", err: err}
		}
		list = append(list, e)
	}
	return list
}
