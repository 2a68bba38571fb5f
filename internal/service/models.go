package service

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"time"

	"mneme/pkg/eventlog"
	"mneme/pkg/files"
	"mneme/pkg/graph"
	"mneme/pkg/graph/sqlitestore"
	"mneme/pkg/projection"
)

// Models are the read models as a reader sees them. In one process they are the
// writers' own stores; in a process of its own context-api opens them when they
// are first asked for, since ingestor and file-tracker make them.
type Models struct {
	stores Stores
	data   string // directory for the scratch stores of a verification
	graph  model[GraphStore]
	files  model[FilesStore]
	owned  bool // close them at the end
}

// NewModels reads the models that other processes write.
func NewModels(data string, stores Stores) *Models {
	return &Models{data: data, stores: stores, owned: true}
}

// SharedModels reads from stores that this process writes.
func SharedModels(data string, g GraphStore, f FilesStore) *Models {
	return &Models{data: data, graph: model[GraphStore]{store: g, opened: true}, files: model[FilesStore]{store: f, opened: true}}
}

// Graph is the read model "graph", or ErrNotThere.
func (m *Models) Graph() (graph.Reader, error) { return m.graph.get(m.stores.graphReader) }

// Files is the read model "files", or ErrNotThere.
func (m *Models) Files() (graph.FilesReader, error) { return m.files.get(m.stores.filesReader) }

// Close releases what was opened here.
func (m *Models) Close() error {
	if !m.owned {
		return nil
	}
	return errors.Join(m.graph.close(), m.files.close())
}

// model is a read model that is opened when it is first asked for.
type model[S io.Closer] struct {
	mu     sync.Mutex
	store  S
	opened bool
	failed error // of the last attempt to reach a server
	until  time.Time
}

// get opens the model if it is not open. Those who ask for it while a server does not
// answer share an attempt: each would take as long as a connection may.
func (m *model[S]) get(open func(context.Context) (S, error)) (S, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.opened {
		return m.store, nil
	}
	var none S
	if time.Now().Before(m.until) {
		return none, m.failed
	}
	store, err := open(context.Background())
	if errors.Is(err, projection.ErrUnavailable) {
		m.failed, m.until = err, time.Now().Add(retryEvery)
	}
	if err != nil {
		return none, err
	}
	m.store, m.opened = store, true
	return store, nil
}

func (m *model[S]) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.opened {
		return nil
	}
	return m.store.Close()
}

// Verify replays the log into scratch stores beside the read models and compares.
func (m *Models) Verify(ctx context.Context, log *eventlog.Log, progress func(projection string, done, total uint64)) (list []projection.Verification, err error) {
	g, err := m.Graph()
	if err != nil {
		return nil, err
	}
	f, err := m.Files()
	if err != nil {
		return nil, err
	}
	dir, remove, err := makeScratch(m.data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()

	scratchGraph, err := sqlitestore.OpenGraph(ctx, filepath.Join(dir, "graph.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scratchGraph.Close()) }()
	one, err := projection.Verify(ctx, graph.Projection(), log, g, scratchGraph, func(done, total uint64) { progress("graph", done, total) })
	if err != nil {
		return nil, err
	}
	scratchFiles, err := sqlitestore.OpenFiles(ctx, filepath.Join(dir, "files.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scratchFiles.Close()) }()
	two, err := projection.Verify(ctx, graph.FilesProjection(files.DefaultTable()), log, f, scratchFiles, func(done, total uint64) { progress("files", done, total) })
	return []projection.Verification{one, two}, err
}
