package storetest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Backend tells the suite how to use a backend.
type Backend[S any] struct {
	// Open opens the store of a directory, and creates it if it does not
	// exist. After Close it can be opened again with its content. A backend that keeps
	// nothing in directories takes the path as a name.
	Open func(ctx context.Context, dir string) (S, error)
	// Refuse makes the store of a directory refuse data, like one of its own rules
	// would: in "graph" and "embeddings" a message with this id, in "files" an access of
	// this path, in "summaries" a conversation of this profile. Undo makes it accept them
	// again.
	Refuse func(ctx context.Context, dir, text string) (undo func() error, err error)
	// SharedEngine leaves out the engine's cases that do not depend on a read model's codec, because another read model
	// of the same backend has passed them.
	SharedEngine bool
	// Without names the cases to skip, each with the reason.
	Without map[string]string
}

// RunGraph runs every case for the projection "graph".
func RunGraph(t *testing.T, b Backend[graph.Store]) {
	w := workshop[*graph.Unit, graph.Store]{backend: b, projection: graph.Projection()}
	w.run(t, slices.Concat(engineCases(w, graphData), graphCases(w), codeOfGraph(w)))
}

// RunFiles runs every case for the projection "files".
func RunFiles(t *testing.T, b Backend[graph.FilesStore]) {
	w := workshop[*graph.FilesUnit, graph.FilesStore]{backend: b, projection: graph.FilesProjection(files.DefaultTable())}
	w.run(t, slices.Concat(engineCases(w, filesData), filesCases(w), codeOfFiles(w)))
}

// RunSummaries runs every case for the projection "summaries".
func RunSummaries(t *testing.T, b Backend[summary.Store]) {
	w := workshop[*summary.Unit, summary.Store]{backend: b, projection: summary.Projection()}
	w.run(t, append(engineCases(w, summariesData), summariesCases(w)...))
}

// RunEmbeddings runs every case for the projection "embeddings".
func RunEmbeddings(t *testing.T, b Backend[graph.EmbeddingsStore]) {
	w := embeddingsShop{backend: b, projection: graph.EmbeddingsProjection(builtIn{})}
	w.run(t, append(engineCases(w, embeddingsData), embeddingsCases(w)...))
}

// RunBranches runs every case for branches: what they show of their ancestors, over
// the stores of both projections. It skips none.
func RunBranches(t *testing.T, g Backend[graph.Store], f Backend[graph.FilesStore]) {
	w := branchShop{
		graphShop{backend: g, projection: graph.Projection()},
		filesShop{backend: f, projection: graph.FilesProjection(files.DefaultTable())},
	}
	for _, c := range branchCases(w) {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

// Data holds the payloads with which [Run] tests a read model.
type Data struct {
	// Nth returns a payload that changes the read model, for each n in a different way.
	Nth func(n int) events.Payload
	// Refused returns a payload that Backend.Refuse refuses for a text.
	Refused func(text string) events.Payload
	// Again is a payload that may be the first of a conversation and changes the read model.
	Again events.Payload
}

// Run runs the engine's cases for any read model: that events take effect once, whatever the batches, that a store
// resumes after a restart, that a repaired conversation equals one built by a rebuild, that bad events are listed and
// the others applied, that owners are fenced, and that equal events give equal hashes. The projection must reduce
// conversation.deleted.
func Run[U projection.Unit, S projection.Store[U]](t *testing.T, b Backend[S], p projection.Projection[U], d Data) {
	w := workshop[U, S]{backend: b, projection: p}
	w.run(t, engineCases(w, d))
}

// namedCase is one case; its name states the behavior.
type namedCase struct {
	name string
	run  func(t *testing.T)
}

// workshop makes benches of one backend and projection.
type workshop[U projection.Unit, S projection.Store[U]] struct {
	backend    Backend[S]
	projection projection.Projection[U]
}

func (w workshop[U, S]) run(t *testing.T, cases []namedCase) {
	known := map[string]bool{}
	for _, c := range cases {
		known[c.name] = true
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			if reason := w.backend.Without[c.name]; reason != "" {
				fmt.Fprintf(os.Stderr, "!!! %s IS LEFT OUT: %s\n", t.Name(), reason)
				t.Skip(reason)
			}
			c.run(t)
		})
	}
	for name := range w.backend.Without {
		if !known[name] {
			t.Errorf("the backend leaves out a case that does not exist: %q", name)
		}
	}
}
