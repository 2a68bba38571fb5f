package view

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// Config is what views need.
type Config struct {
	Log    *eventlog.Log
	Models Models
	Cache  *Cache // nil disables searches
	// Waits says that reads spend most of their time waiting for other servers, such as Neo4j
	// or a model, so that more of them may run at once.
	Waits bool
	// Awaiting, if not nil, is called when a read begins to wait for a projection. It
	// returns the context to wait with, and what to call when the wait ends.
	Awaiting func(ctx context.Context, projection string, goal uint64) (context.Context, func(error))
}

// Views opens views of conversations. Use [New]; it is safe for concurrent use.
type Views struct {
	Config
	reads         *places
	head          head
	watchers      watchers
	announcements announcements

	comparing singleflight.Group
	compared  struct {
		sync.Mutex
		at map[string]time.Time // when a partition was last found to follow the log
	}
}

// New returns views that read through the models of a configuration.
func New(c Config) *Views {
	v := &Views{Config: c, reads: newPlaces(c.Waits)}
	v.watchers.running = map[partition]*watcher{}
	v.compared.at = map[string]time.Time{}
	return v
}

// View is a conversation with what it inherited, as of one position. Everything is read from
// the generations that its Pins hold.
type View struct {
	ID events.ConversationID
	At At

	pins    *Pins
	lineage *graph.Lineage
	graph   graph.Reader
	files   graph.FilesReader // nil without files
	models  []Model
	search  *search
	leave   func() // returns the place for reads; nil if the view holds none
}

// Open opens a conversation in the graph. It waits as at says, see the package for errors.
func (p *Pins) Open(ctx context.Context, id events.ConversationID, at At) (*View, error) {
	g, inGraph, err := p.Graph(ctx)
	if err != nil {
		return nil, err
	}
	return p.view(ctx, &View{ID: id, At: at, graph: g, models: []Model{inGraph}})
}

// OpenWithFiles is [Pins.Open] for a conversation with the files that it touched.
func (p *Pins) OpenWithFiles(ctx context.Context, id events.ConversationID, at At) (*View, error) {
	g, inGraph, err := p.Graph(ctx)
	if err != nil {
		return nil, err
	}
	f, inFiles, err := p.Files(ctx)
	if err != nil {
		return nil, err
	}
	return p.view(ctx, &View{ID: id, At: at, graph: g, files: f, models: []Model{inGraph, inFiles}})
}

func (p *Pins) view(ctx context.Context, v *View) (*View, error) {
	var err error
	if v.lineage, err = p.views.lineage(ctx, v); err != nil {
		return nil, err
	}
	v.pins = p
	p.open = append(p.open, v)
	return v, nil
}

// lineage returns the lineage of a conversation once the models have applied the requested
// sequences of the conversation and of its ancestors.
func (vs *Views) lineage(ctx context.Context, v *View) (*graph.Lineage, error) {
	if v.At.AtLeast == 0 && v.At.AsOf == 0 {
		return graph.LineageOf(ctx, v.graph, v.ID, graph.Latest)
	}
	if err := vs.inLog(ctx, v.At); err != nil {
		return nil, err
	}
	w := v.At.begin()
	awaited := map[events.ConversationID]bool{}
	for unknown := []events.ConversationID{v.ID}; ; {
		for _, id := range unknown {
			if err := vs.awaitConversation(ctx, w, id, v.At, v.models); err != nil {
				return nil, err
			}
			awaited[id] = true
		}
		lineage, err := graph.LineageOf(ctx, v.graph, v.ID, v.At.seq())
		if err != nil {
			return nil, err
		}
		unknown = slices.DeleteFunc(slices.Clone(lineage.Ancestors()), func(id events.ConversationID) bool { return awaited[id] })
		if len(unknown) == 0 {
			return lineage, nil
		}
	}
}

// Lineage returns the conversation and what it inherited.
func (v *View) Lineage() *graph.Lineage { return v.lineage }

// Graph reads the conversation with what it inherited.
func (v *View) Graph() graph.Reader { return v.lineage.Graph(v.graph) }

// Files reads the touched files of the conversation with what it inherited. The view must
// have been opened with files.
func (v *View) Files() window.Files { return v.lineage.Files(v.files) }

// Positions identifies what can be read through this view: if they are equal, so are the
// answers. Read them before the answer: if the conversation moves on in between, the
// answer is newer than its positions, which costs a caller only one needless read.
//
// In the graph the conversation's own row serves as the position, because it holds the
// sequence of its newest event. Inherited rows change only if an ancestor is deleted or
// repaired, which changes its counts or the lineage.
func (v *View) Positions(ctx context.Context) ([]string, error) {
	own, inherited := v.lineage.Own(), v.lineage.Inherited()
	shown, err := json.Marshal([]any{own, inherited})
	if err != nil {
		return nil, err
	}
	positions := []string{string(shown), v.lineage.Descent()}
	ids := []events.ConversationID{own.ID}
	if inherited != nil {
		ids = append(ids, v.lineage.Ancestors()...)
	}
	for _, m := range v.models {
		positions = append(positions, strconv.Itoa(m.Generation))
		files, ok := m.Store.(graph.FilesReader)
		if !ok {
			continue
		}
		for i, id := range ids {
			last, repairs, err := files.LastSeq(ctx, id)
			if err != nil {
				return nil, err
			}
			upTo := v.At.seq()
			if i > 0 {
				upTo = inherited.LastSeq
			}
			positions = append(positions, fmt.Sprintf("%d %d", min(last, upTo), repairs))
		}
	}
	return positions, nil
}

// ListPositions identifies the contents of whole read models, for answers about several
// conversations, which any event can change.
func ListPositions(ctx context.Context, models ...Model) (positions []string, err error) {
	for _, m := range models {
		cps, err := m.Store.Checkpoints(ctx)
		if err != nil {
			return nil, err
		}
		for _, cp := range cps {
			positions = append(positions, fmt.Sprintf("%s %d %d %d %d", m.Name, m.Generation, cp.Partition, cp.Seq, cp.Repairs))
		}
	}
	return positions, nil
}

// edition identifies the rows of the conversation and its lineage, see [Cache].
func (v *View) edition() string {
	return fmt.Sprint(v.models[0].Generation, " ", v.lineage.Descent())
}

// Source returns what a context of this view is built from. It answers from the cache where
// it can. The view must have been opened with files.
func (v *View) Source(ctx context.Context) window.Source {
	read := v.Graph()
	s := window.Source{Graph: read, Files: v.Files()}
	if cache := v.pins.views.Cache; cache != nil {
		s.Recall, s.Reranker = v.recall(ctx), cache.Reranker
		s.Graph = cache.Graph(read, v.edition())
	}
	return s
}

// recall returns the search in this view.
func (v *View) recall(ctx context.Context) *search {
	if v.search == nil {
		cache := v.pins.views.Cache
		read := v.Graph()
		source := Source{Messages: read, Rows: read, Edition: v.edition()}
		if cache.Remote() {
			source.Embeddings, source.Absent = v.embeddings(ctx)
		}
		v.search = &search{cache: cache, source: source}
	}
	return v.search
}

// embeddings returns the vectors of a lineage, or an error if there are none to use.
func (v *View) embeddings(ctx context.Context) (graph.EmbeddingsReader, error) {
	e, _, err := v.pins.Embeddings(ctx)
	if err == nil {
		err = graph.CheckEmbeddings(ctx, e, v.pins.views.Cache.Model())
	}
	if err != nil {
		return nil, err
	}
	return v.lineage.Embeddings(e), nil
}

// Load loads the conversation's search index unless it is in memory. Call it before
// [View.Begin] if the read will search: loading a long conversation takes long, and must not
// occupy a place for reads. Callers that need the same index wait for one of them to load
// it.
func (v *View) Load(ctx context.Context) error {
	if v.pins.views.Cache == nil {
		return nil
	}
	return v.recall(ctx).load(ctx, v.ID, v.At.AsOf == 0)
}

// LoadTools is [View.Load] for a read that searches tool results.
func (v *View) LoadTools(ctx context.Context) error {
	if v.pins.views.Cache == nil {
		return nil
	}
	return v.recall(ctx).loadTools(ctx, v.ID, v.At.AsOf == 0)
}

// Begin waits for one of the places for reads, which the view holds until Release. It returns
// [ErrBusy] if none becomes free in time.
func (v *View) Begin(ctx context.Context) (err error) {
	if v.leave == nil {
		v.leave, err = v.pins.views.Enter(ctx, v.ID.Tenant)
	}
	return err
}

// Release gives back the place for reads. It does not release the Pins, which other views may
// use. A second call does nothing.
func (v *View) Release() {
	if v.leave != nil {
		v.leave()
		v.leave = nil
	}
}

// Enter waits for one of the places for reads, for a read of a tenant that is not of one
// conversation. The caller calls leave once. It returns [ErrBusy] if no place becomes free in time.
func (vs *Views) Enter(ctx context.Context, tenant string) (leave func(), err error) {
	return vs.reads.take(ctx, tenant)
}
