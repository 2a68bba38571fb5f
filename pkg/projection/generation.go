package projection

import (
	"context"
	"errors"
	"strconv"
)

// Errors of a change of generations.
var (
	// ErrServing says that a generation is the one that readers read.
	ErrServing = errors.New("this generation serves")
	// ErrSuperseded says that a generation has no future: another one serves in its
	// place, or it was discarded.
	ErrSuperseded = errors.New("this generation was superseded")
)

// FirstGeneration is the one that serves before anything was rebuilt.
const FirstGeneration = 1

// Build names one build of a read model. Processes that name the same one share its
// partitions and answer each other's requests.
type Build struct {
	// Store is where it is, for example "sqlite" or "neo4j": letters, digits and hyphens.
	// Read models of one projection may be in several stores, fed by one log.
	Store      string `json:"store"`
	Projection string `json:"projection"`
	Generation int    `json:"generation"`
}

// names are the parts of the names by which processes meet.
func (b Build) names() string {
	return b.Store + "." + b.Projection + "." + strconv.Itoa(b.Generation) + "."
}

// Builds are the generations that a backend has of one read model.
type Builds struct {
	Serving int   // the one that readers read; FirstGeneration if nothing was written yet
	Others  []int // what else there is something of, by number: not ready, or on its way out
	Last    int   // the highest number of these, and of those that must not be given again
}

// Generations is how a backend keeps the builds of its read models apart. Of two that
// change something at once one succeeds.
type Generations interface {
	// Builds lists the generations of a projection.
	Builds(ctx context.Context, projection string) (Builds, error)
	// Supersede makes a generation the serving one in place of another, in one
	// transaction. It does nothing if it serves already, and returns ErrSuperseded if a
	// third one does, or it or a later one was discarded, or it is older.
	Supersede(ctx context.Context, projection string, from, to int) error
	// Discard deletes a generation, from its beginning on unwritable, in pieces where it
	// is large; if it did not come to its end it is among the others, and Discard goes on.
	// It returns ErrServing for the one that serves.
	Discard(ctx context.Context, projection string, generation int) error
	// Checkpoints are those of a generation, none if it is not there.
	Checkpoints(ctx context.Context, projection string, generation int) ([]Checkpoint, error)
	// Close releases connections.
	Close() error
}
