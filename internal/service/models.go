package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/service/scratch"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Models are the read models as a reader sees them, each in the generation that serves.
// In a single process they are the writers' own stores. A separate context-api opens them
// on first use, because other programs create them.
type Models struct {
	data    string            // directory for the scratch stores of a verification
	sources map[string]source // by name of the read model
}

// source opens a read model in the generation that serves; the caller releases it.
type source interface {
	take(ctx context.Context) (view.Pinned[readmodel.Reader], error)
	again()
	stop() // ends what is in progress; it has no effect on what is open
	close() error
}

// NewModels returns read models that other processes write.
func NewModels(data string, stores worker.Stores) *Models {
	m := OwnModels(data)
	for _, info := range readmodel.Ours() {
		m.sources[info.Name] = newLibrary(info, stores)
	}
	return m
}

// OwnModels returns read models that this process writes: those that are added with [Own].
func OwnModels(data string) *Models { return &Models{data: data, sources: map[string]source{}} }

// Own adds a read model that a consumer of this process writes. Call it before the first read.
func Own[U projection.Unit, S projection.Store[U]](m *Models, c *worker.Consumer[U, S]) {
	m.sources[c.Name()] = written[S]{c.Current()}
}

// Open returns a read model by its name, or worker.ErrNotThere. The caller releases it.
func (m *Models) Open(ctx context.Context, name string) (view.Pinned[readmodel.Reader], error) {
	from, ok := m.sources[name]
	if !ok {
		return view.Pinned[readmodel.Reader]{}, worker.ErrStopping
	}
	return from.take(ctx)
}

// open is [Models.Open] with the queries of R.
func open[R any](ctx context.Context, m *Models, name string) (view.Pinned[R], error) {
	p, err := m.Open(ctx, name)
	if err != nil {
		return view.Pinned[R]{}, err
	}
	return view.Pinned[R]{Model: p.Model.(R), Generation: p.Generation, Release: p.Release}, nil
}

// Graph returns the read model "graph", or worker.ErrNotThere. The caller releases it.
func (m *Models) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	return open[graph.Reader](ctx, m, "graph")
}

// Files returns the read model "files", or worker.ErrNotThere. The caller releases it.
func (m *Models) Files(ctx context.Context) (view.Pinned[graph.FilesReader], error) {
	return open[graph.FilesReader](ctx, m, "files")
}

// Summaries returns the read model "summaries", or worker.ErrNotThere. The caller releases it.
func (m *Models) Summaries(ctx context.Context) (view.Pinned[summary.Reader], error) {
	return open[summary.Reader](ctx, m, "summaries")
}

// Projects returns the read model "projects", or worker.ErrNotThere. The caller releases it.
func (m *Models) Projects(ctx context.Context) (view.Pinned[project.Reader], error) {
	return open[project.Reader](ctx, m, "projects")
}

// Insight returns the read model "insight", or worker.ErrNotThere. The caller releases it.
func (m *Models) Insight(ctx context.Context) (view.Pinned[insight.Reader], error) {
	return open[insight.Reader](ctx, m, "insight")
}

// Code returns the read model "code", or worker.ErrNotThere. The caller releases it.
func (m *Models) Code(ctx context.Context) (view.Pinned[codebase.Reader], error) {
	return open[codebase.Reader](ctx, m, codebase.Name)
}

// Embeddings returns the read model "embeddings", or worker.ErrNotThere. The caller releases it.
func (m *Models) Embeddings(ctx context.Context) (view.Pinned[graph.EmbeddingsReader], error) {
	return open[graph.EmbeddingsReader](ctx, m, "embeddings")
}

// Again makes the next use of each read model check which generation serves.
func (m *Models) Again() {
	for _, from := range m.sources {
		from.again()
	}
}

// Close closes the stores that were opened here.
func (m *Models) Close() error {
	for _, from := range m.sources { // stop all first: an attempt of one source to reach a server keeps the others from closing what they share
		from.stop()
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m.sources)) {
		errs = append(errs, m.sources[name].close())
	}
	return errors.Join(errs...)
}

// pinned returns a generation for a reader.
func pinned[S readmodel.Reader](v *worker.Generation[S]) (view.Pinned[readmodel.Reader], error) {
	if v == nil {
		return view.Pinned[readmodel.Reader]{}, worker.ErrStopping
	}
	return view.Pinned[readmodel.Reader]{Model: v.Store, Generation: v.Number, Release: v.Release}, nil
}

// written are the stores that this process writes.
type written[S readmodel.Reader] struct{ shelf *worker.Current[S] }

func (w written[S]) take(context.Context) (view.Pinned[readmodel.Reader], error) {
	return pinned(w.shelf.Take())
}

func (written[S]) again()       {}
func (written[S]) stop()        {}
func (written[S]) close() error { return nil }

// library opens the serving generation of a read model on first use, and opens the new one
// when another generation serves.
type library struct {
	info   readmodel.Info
	stores worker.Stores
	shelf  worker.Current[readmodel.Reader]

	ctx context.Context // ends when the library closes
	end context.CancelFunc

	mu     sync.Mutex
	look   *look     // in progress; nil if none is
	looked time.Time // when the last look ended with the model open
	failed error     // from the last attempt to reach the server
	until  time.Time // how long failed stays valid
}

// look is one attempt to open the generation that serves. All callers that need the model wait for the same attempt; a
// caller that gives up does not end it.
type look struct {
	ended chan struct{}
	err   error // valid once ended is closed
}

func newLibrary(info readmodel.Info, stores worker.Stores) *library {
	l := &library{info: info, stores: stores}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// lookWithin is how long a server may take to say which generation serves if one is open
// already.
const lookWithin = 2 * time.Second

// take opens the model if it is not open. While the server does not answer, callers share
// one failed attempt, because each attempt lasts as long as the connection timeout. Once
// the model is open, one caller at a time checks every worker.LookEvery whether another
// generation serves; the others do not wait for it.
func (l *library) take(ctx context.Context) (none view.Pinned[readmodel.Reader], _ error) {
	l.mu.Lock()
	empty := l.shelf.IsEmpty()
	attempt := l.look
	switch {
	case l.ctx.Err() != nil:
		l.mu.Unlock()
		return none, worker.ErrStopping
	case empty && attempt == nil && time.Now().Before(l.until):
		defer l.mu.Unlock()
		return none, l.failed
	case attempt == nil && (empty || time.Since(l.looked) > worker.LookEvery):
		attempt = l.begin(empty)
	case !empty:
		attempt = nil // another caller's
	}
	l.mu.Unlock()
	if attempt != nil {
		select {
		case <-attempt.ended:
		case <-ctx.Done():
			return none, ctx.Err()
		}
		if empty && attempt.err != nil {
			return none, attempt.err
		} // else keep using the open one; if its server is down, reads will say so
	}
	return pinned(l.shelf.Take())
}

// begin starts to look for the generation that serves. The caller holds l.mu.
func (l *library) begin(empty bool) *look {
	attempt := &look{ended: make(chan struct{})}
	l.look = attempt
	go func() {
		ctx, cancel := l.ctx, context.CancelFunc(func() {})
		if !empty {
			ctx, cancel = context.WithTimeout(l.ctx, lookWithin)
		}
		err := l.openServing(ctx)
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.look = nil; err == nil || !empty {
			l.looked = time.Now()
		}
		if empty && errors.Is(err, projection.ErrUnavailable) {
			l.failed, l.until = err, time.Now().Add(program.RetryEvery)
		}
		attempt.err = err
		close(attempt.ended)
	}()
	return attempt
}

// openServing opens the generation that serves, unless it is already open.
func (l *library) openServing(ctx context.Context) error {
	builds, err := l.stores.Generations().Builds(ctx, l.info.Name)
	if err != nil {
		return worker.WithRemedy(err)
	}
	if l.shelf.Has(builds.Serving) {
		return nil
	}
	store, err := l.stores.OpenReader(l.ctx, l.info, builds.Serving)
	if err != nil {
		return err
	}
	if old := l.shelf.Put(worker.NewGeneration(builds.Serving, store)); old != nil {
		old.Leave()
	}
	return nil
}

func (l *library) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked = time.Time{}
}

func (l *library) stop() { l.end() }

func (l *library) close() error {
	l.stop()
	l.mu.Lock()
	attempt := l.look
	l.mu.Unlock()
	if attempt != nil {
		<-attempt.ended
	}
	var err error
	if v := l.shelf.Put(nil); v != nil {
		v.Leave()
		err = v.AwaitClosed()
	}
	return errors.Join(err, l.stores.Close())
}

// Verify replays the log into temporary stores and compares them with the read models.
func (m *Models) Verify(ctx context.Context, log *eventlog.Log, progress func(projection string, done, total uint64)) (list []projection.Verification, err error) {
	dir, remove, err := scratch.Make(m.data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for _, info := range readmodel.Ours() {
		if info.Computed {
			continue
		}
		v, err := m.verify(ctx, log, info, dir, readmodel.Options{Progress: func(done, total uint64) { progress(info.Name, done, total) }})
		if info.Absent != "" && errors.Is(err, worker.ErrNotThere) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// verify compares one read model. If another generation comes to serve and another process
// removes the one being read, verify starts over with the new one.
func (m *Models) verify(ctx context.Context, log *eventlog.Log, info readmodel.Info, dir string, o readmodel.Options) (projection.Verification, error) {
	for round := 1; ; round++ {
		p, err := m.Open(ctx, info.Name)
		if err != nil {
			return projection.Verification{}, err
		}
		result, err := info.Of().Compare(ctx, log, p.Model, sqlitestore.Path(dir, info.Name, round), o)
		p.Release()
		if err == nil && result.Equal() || ctx.Err() != nil {
			return result, err
		}
		m.sources[info.Name].again()
		now, e := m.Open(ctx, info.Name)
		if e != nil {
			return result, errors.Join(err, e)
		}
		now.Release()
		if now.Generation == p.Generation {
			return result, err
		}
	}
}
