package service

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"time"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Models are the read models as a reader sees them, each in the generation that serves.
// In a single process they are the writers' own stores. A separate context-api opens them
// on first use, because other programs create them.
type Models struct {
	data       string // directory for the scratch stores of a verification
	graph      source[worker.GraphStore]
	files      source[worker.FilesStore]
	summaries  source[worker.SummariesStore]
	embeddings source[worker.EmbeddingsStore]
}

// source returns the volume of the generation that serves; the caller releases it.
type source[S io.Closer] interface {
	take(ctx context.Context) (*worker.Generation[S], error)
	again()
	close() error
}

// NewModels returns read models that other processes write.
func NewModels(data string, stores worker.Stores) *Models {
	return &Models{
		data:       data,
		graph:      newLibrary("graph", stores, stores.GraphReader),
		files:      newLibrary("files", stores, stores.FilesReader),
		summaries:  newLibrary("summaries", stores, stores.SummariesReader),
		embeddings: newLibrary("embeddings", stores, stores.EmbeddingsReader),
	}
}

// OwnModels returns read models that this process writes.
func OwnModels(data string, g *worker.Consumer[*graph.Unit, worker.GraphStore], f *worker.Consumer[*graph.FilesUnit, worker.FilesStore]) *Models {
	return &Models{
		data: data, graph: written[worker.GraphStore]{g.Current()}, files: written[worker.FilesStore]{f.Current()},
		summaries: written[worker.SummariesStore]{new(worker.Current[worker.SummariesStore])}, embeddings: written[worker.EmbeddingsStore]{new(worker.Current[worker.EmbeddingsStore])},
	}
}

// AddSummaries adds the read model "summaries", which this process writes. Call it before the first read.
func (m *Models) AddSummaries(s *worker.Current[worker.SummariesStore]) {
	m.summaries = written[worker.SummariesStore]{s}
}

// AddEmbeddings adds the read model "embeddings", which this process writes. Call it before the first read.
func (m *Models) AddEmbeddings(s *worker.Current[worker.EmbeddingsStore]) {
	m.embeddings = written[worker.EmbeddingsStore]{s}
}

// Graph returns the read model "graph", or worker.ErrNotThere. The caller releases it.
func (m *Models) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	v, err := m.graph.take(ctx)
	if err != nil {
		return view.Pinned[graph.Reader]{}, err
	}
	return view.Pinned[graph.Reader]{Model: v.Store, Generation: v.Number, Release: v.Release}, nil
}

// Files returns the read model "files", or worker.ErrNotThere. The caller releases it.
func (m *Models) Files(ctx context.Context) (view.Pinned[graph.FilesReader], error) {
	v, err := m.files.take(ctx)
	if err != nil {
		return view.Pinned[graph.FilesReader]{}, err
	}
	return view.Pinned[graph.FilesReader]{Model: v.Store, Generation: v.Number, Release: v.Release}, nil
}

// Summaries returns the read model "summaries", or worker.ErrNotThere. The caller releases it.
func (m *Models) Summaries(ctx context.Context) (view.Pinned[summary.Reader], error) {
	v, err := m.summaries.take(ctx)
	if err != nil {
		return view.Pinned[summary.Reader]{}, err
	}
	return view.Pinned[summary.Reader]{Model: v.Store, Generation: v.Number, Release: v.Release}, nil
}

// Embeddings returns the read model "embeddings", or worker.ErrNotThere. The caller releases it.
func (m *Models) Embeddings(ctx context.Context) (view.Pinned[graph.EmbeddingsReader], error) {
	v, err := m.embeddings.take(ctx)
	if err != nil {
		return view.Pinned[graph.EmbeddingsReader]{}, err
	}
	return view.Pinned[graph.EmbeddingsReader]{Model: v.Store, Generation: v.Number, Release: v.Release}, nil
}

// Again makes the next use of each read model check which generation serves.
func (m *Models) Again() {
	m.graph.again()
	m.files.again()
	m.summaries.again()
	m.embeddings.again()
}

// Close closes the stores that were opened here.
func (m *Models) Close() error {
	return errors.Join(m.graph.close(), m.files.close(), m.summaries.close(), m.embeddings.close())
}

// written are the stores that this process writes.
type written[S io.Closer] struct{ shelf *worker.Current[S] }

func (w written[S]) take(context.Context) (*worker.Generation[S], error) {
	if v := w.shelf.Take(); v != nil {
		return v, nil
	}
	return nil, worker.ErrStopping
}

func (written[S]) again()       {}
func (written[S]) close() error { return nil }

// library opens the serving generation of a read model on first use, and opens the new one
// when another generation serves.
type library[S io.Closer] struct {
	name   string
	stores worker.Stores
	open   func(ctx context.Context, generation int) (S, error)
	shelf  worker.Current[S]

	ctx context.Context // ends when the library closes
	end context.CancelFunc

	mu     sync.Mutex
	look   *look     // in progress; nil if none is
	looked time.Time // when the last look ended with the model open
	failed error     // from the last attempt to reach the server
	until  time.Time // how long failed stays valid
}

// look is one attempt to open the generation that serves. Everybody who needs the model waits
// for the same attempt, for as long as they like; it goes on without them.
type look struct {
	ended chan struct{}
	err   error // valid once ended is closed
}

func newLibrary[S io.Closer](name string, stores worker.Stores, open func(context.Context, int) (S, error)) *library[S] {
	l := &library[S]{name: name, stores: stores, open: open}
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
func (l *library[S]) take(ctx context.Context) (*worker.Generation[S], error) {
	l.mu.Lock()
	empty := l.shelf.IsEmpty()
	attempt := l.look
	switch {
	case l.ctx.Err() != nil:
		l.mu.Unlock()
		return nil, worker.ErrStopping
	case empty && attempt == nil && time.Now().Before(l.until):
		defer l.mu.Unlock()
		return nil, l.failed
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
			return nil, ctx.Err()
		}
		if empty && attempt.err != nil {
			return nil, attempt.err
		} // else keep using the open one; if its server is down, reads will say so
	}
	if v := l.shelf.Take(); v != nil {
		return v, nil
	}
	return nil, worker.ErrStopping
}

// begin starts to look for the generation that serves. The caller holds l.mu.
func (l *library[S]) begin(empty bool) *look {
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
func (l *library[S]) openServing(ctx context.Context) error {
	builds, err := l.stores.Generations().Builds(ctx, l.name)
	if err != nil {
		return worker.WithRemedy(err)
	}
	if l.shelf.Has(builds.Serving) {
		return nil
	}
	store, err := l.open(l.ctx, builds.Serving)
	if err != nil {
		return err
	}
	if old := l.shelf.Put(worker.NewGeneration(builds.Serving, store)); old != nil {
		old.Leave()
	}
	return nil
}

func (l *library[S]) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked = time.Time{}
}

func (l *library[S]) close() error {
	l.end()
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
	dir, remove, err := makeScratch(m.data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	one, err := verify(ctx, log, graph.Projection(), m.graph, filepath.Join(dir, "graph"), sqlitestore.OpenGraph, progress)
	if err != nil {
		return nil, err
	}
	two, err := verify(ctx, log, graph.FilesProjection(files.DefaultTable()), m.files, filepath.Join(dir, "files"), sqlitestore.OpenFiles, progress)
	if err != nil {
		return nil, err
	}
	three, err := verify(ctx, log, summary.Projection(), m.summaries, filepath.Join(dir, "summaries"), sqlitestore.OpenSummaries, progress)
	if errors.Is(err, worker.ErrNotThere) { // no summarizer ever ran
		return []projection.Verification{one, two}, nil
	}
	return []projection.Verification{one, two, three}, err
}

// verify compares one read model. If another generation comes to serve and another process
// removes the one being read, verify starts over with the new one.
func verify[U projection.Unit, S worker.Store[U], Scratch worker.Store[U]](ctx context.Context, log *eventlog.Log, p projection.Projection[U], from source[S], path string,
	open func(context.Context, string) (Scratch, error), progress func(projection string, done, total uint64)) (projection.Verification, error) {
	for round := 1; ; round++ {
		v, err := from.take(ctx)
		if err != nil {
			return projection.Verification{}, err
		}
		result, err := verifyOne(ctx, log, p, v.Store, sqlitestore.Path(path, p.Name, round), open, func(done, total uint64) { progress(p.Name, done, total) })
		v.Release()
		if err == nil && result.Equal() || ctx.Err() != nil {
			return result, err
		}
		from.again()
		now, e := from.take(ctx)
		if e != nil {
			return result, errors.Join(err, e)
		}
		now.Release()
		if now.Number == v.Number {
			return result, err
		}
	}
}

func verifyOne[U projection.Unit, Scratch worker.Store[U]](ctx context.Context, log *eventlog.Log, p projection.Projection[U], model projection.ReadStore, path string,
	open func(context.Context, string) (Scratch, error), progress func(done, total uint64)) (v projection.Verification, err error) {
	scratch, err := open(ctx, path)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	return projection.Verify(ctx, p, log, model, scratch, progress)
}
