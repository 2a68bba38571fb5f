package projection

import (
	"context"
	"errors"
	"strconv"
)

// Errors of [Generations].
var (
	// ErrServing means that readers use this generation, so it can't be discarded.
	ErrServing = errors.New("this generation serves")
	// ErrSuperseded means that a generation can no longer serve: another one serves in
	// its place, or it was discarded.
	ErrSuperseded = errors.New("this generation was superseded")
)

// FirstGeneration is the generation that serves until the first rebuild.
const FirstGeneration = 1

// Build names one build of a read model. Processes configured with the same Build share
// its partitions and answer each other's requests.
type Build struct {
	// Store names the backend, for example "sqlite" or "neo4j": letters, digits and
	// hyphens. One log may feed read models of the same projection in several stores.
	Store      string `json:"store"`
	Projection string `json:"projection"`
	Generation int    `json:"generation"`
}

// names returns the prefix of the lease keys and request subjects of a build.
func (b Build) names() string {
	return b.Store + "." + b.Projection + "." + strconv.Itoa(b.Generation) + "."
}

// Builds lists the generations of one read model in a backend.
type Builds struct {
	Serving int   // the generation that readers use; FirstGeneration if nothing has been written yet
	Others  []int // the others that have data, sorted: not ready yet, or being discarded
	Last    int   // the highest number in use, or discarded and not to be reused
}

// Generations is how a backend keeps the builds of its read models apart. If two callers
// make conflicting changes at the same time, one succeeds.
type Generations interface {
	// Builds lists the generations of a projection.
	Builds(ctx context.Context, projection string) (Builds, error)
	// Supersede makes generation to serve in place of from, in one transaction. It does
	// nothing if to already serves. It returns ErrSuperseded if a third generation serves,
	// if to or a later generation was discarded, or if to is older than from.
	Supersede(ctx context.Context, projection string, from, to int) error
	// Discard makes a generation unwritable, then deletes it, a large one in pieces. An
	// interrupted Discard leaves the generation in Builds.Others; call it again to
	// continue. It returns ErrServing for the generation that serves.
	Discard(ctx context.Context, projection string, generation int) error
	// Checkpoints returns the checkpoints of a generation, none if it does not exist.
	Checkpoints(ctx context.Context, projection string, generation int) ([]Checkpoint, error)
	// Close releases connections.
	Close() error
}
