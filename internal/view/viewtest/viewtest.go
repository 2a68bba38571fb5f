// Package viewtest finds views that are never released.
package viewtest

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/summary"
)

// Models wraps read models and remembers their holders.
type Models struct {
	view.Models

	mu   sync.Mutex
	next int
	held map[int]string // stacks of the callers that opened what is held
}

// Watch returns models that remember who holds them.
func Watch(models view.Models) *Models { return &Models{Models: models, held: map[int]string{}} }

// Held returns how many read models are held.
func (m *Models) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.held)
}

// Leaks waits up to a second until everything is released, because a watcher that ends
// releases its read model a moment after its last waiter has left. It returns who still
// holds a read model then: one stack for each.
func (m *Models) Leaks() (stacks []string) {
	for end := time.Now().Add(time.Second); m.Held() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, stack := range m.held {
		stacks = append(stacks, stack)
	}
	slices.Sort(stacks)
	return stacks
}

func watch[R any](m *Models, name string, p view.Pinned[R], err error) (view.Pinned[R], error) {
	if err != nil {
		return p, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	n, release := m.next, p.Release
	m.held[n] = name + " is never released; opened by\n" + string(debug.Stack())
	p.Release = func() {
		m.mu.Lock()
		_, held := m.held[n]
		delete(m.held, n)
		m.mu.Unlock()
		if !held {
			panic(fmt.Sprintf("%s is released twice", name))
		}
		release()
	}
	return p, nil
}

// Graph implements view.Models.
func (m *Models) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	p, err := m.Models.Graph(ctx)
	return watch(m, "graph", p, err)
}

// Files implements view.Models.
func (m *Models) Files(ctx context.Context) (view.Pinned[graph.FilesReader], error) {
	p, err := m.Models.Files(ctx)
	return watch(m, "files", p, err)
}

// Summaries implements view.Models.
func (m *Models) Summaries(ctx context.Context) (view.Pinned[summary.Reader], error) {
	p, err := m.Models.Summaries(ctx)
	return watch(m, "summaries", p, err)
}

// Projects implements view.Models.
func (m *Models) Projects(ctx context.Context) (view.Pinned[project.Reader], error) {
	p, err := m.Models.Projects(ctx)
	return watch(m, "projects", p, err)
}

// Insight implements view.Models.
func (m *Models) Insight(ctx context.Context) (view.Pinned[insight.Reader], error) {
	p, err := m.Models.Insight(ctx)
	return watch(m, "insight", p, err)
}

// Code implements view.Models.
func (m *Models) Code(ctx context.Context) (view.Pinned[codebase.Reader], error) {
	p, err := m.Models.Code(ctx)
	return watch(m, codebase.Name, p, err)
}

// Embeddings implements view.Models.
func (m *Models) Embeddings(ctx context.Context) (view.Pinned[graph.EmbeddingsReader], error) {
	p, err := m.Models.Embeddings(ctx)
	return watch(m, "embeddings", p, err)
}
