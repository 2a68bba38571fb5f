// Package bench measures mneme: either against something that does the same work without it, in the
// same run on the same machine, or as its users run it, with the real program.
package bench

import (
	"context"
	"errors"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

// Ingest is the result of [RunIngest].
type Ingest struct {
	Machine    Machine   `json:"machine"`
	Store      Store     `json:"store"`
	Events     uint64    `json:"events"`
	MB         float64   `json:"mb"`
	PublishPS  float64   `json:"publish_events_per_s"`
	IngestPS   float64   `json:"ingest_events_per_s"` // median
	LoaderPS   float64   `json:"loader_events_per_s"` // median
	Ratio      float64   `json:"ratio"`               // median of the pairs' ratios
	Ratios     []float64 `json:"ratios"`
	Batches    int       `json:"batches"` // transactions of the last round
	ComparedTo string    `json:"compared_to"`
	// Statements are what SQLite executed in one more round of each projection, by projection, if that
	// was asked for.
	Statements map[string]Statements `json:"statements,omitempty"`
}

// Statements are the costs of a projection's statements.
type Statements struct {
	Took  time.Duration            `json:"took_ns"`
	Kinds []sqlitestore.Statements `json:"kinds"` // the costliest first
}

// RunIngest publishes transcripts to a separate log and measures how fast the projection "graph"
// applies them, against a bare loader. The loader has no log, no decoding and no engine: it writes
// exactly the rows that the projection wrote, from memory, into the same store with the same
// indexes and settings in the same transactions. The two alternate for the given number of rounds, at least one.
// Without events it returns [ErrNoEvents].
//
// The store is SQLite in a temporary directory, or a Neo4j server. In Neo4j, RunIngest writes into
// a separate generation, which it removes, and runs once to warm up. With statements, which needs
// SQLite, it then applies the log once more with each projection, and times their statements.
func RunIngest(ctx context.Context, paths []string, rounds int, statements bool, on *neo4jstore.Config, say Say) (out Ingest, err error) {
	out.Machine = thisMachine()
	s, publish, state, err := newFilled(ctx, natsdeploy.Settings{}, paths, say)
	if err != nil {
		return out, err
	}
	defer s.close()
	out.PublishPS, out.Events, out.MB = publish, state.Messages, float64(state.Bytes)/1e6
	b, err := newBackend(ctx, s.dir, on)
	if err != nil {
		return out, err
	}
	defer b.close()
	out.Store, out.ComparedTo = b.store(), "a bare loader that writes the same decoded rows into the same store and indexes in the same batches, without log, engine and checkpoint"
	var ingest, loader []float64
	for round := range warmUps(on) + rounds {
		say("round %d of %d", round+1-warmUps(on), rounds)
		took, loaded, batches, err := ingestAndLoad(ctx, b, s.log, state.Head)
		if err := errors.Join(err, b.clear(ctx)); err != nil {
			return out, err
		}
		if round < warmUps(on) {
			continue
		}
		out.Batches = batches
		n := float64(out.Events)
		ingest, loader = append(ingest, n/took.Seconds()), append(loader, n/loaded.Seconds())
		out.Ratios = append(out.Ratios, loaded.Seconds()/took.Seconds())
	}
	out.IngestPS, out.LoaderPS, out.Ratio = median(ingest), median(loader), median(out.Ratios)
	if files, ok := b.(*sqliteBackend); ok && statements {
		say("timing statements")
		out.Statements, err = files.statements(ctx, s.log, state.Head)
	}
	return out, err
}

// warmUps is how many rounds do not count: the first one on Neo4j, which compiles its code while it runs.
func warmUps(on *neo4jstore.Config) int {
	if on == nil {
		return 0
	}
	return 1
}

// ingestAndLoad is one round.
func ingestAndLoad(ctx context.Context, b backend, log *eventlog.Log, head uint64) (took, loaded time.Duration, batches int, err error) {
	took, ends, err := b.graph(ctx, log, head)
	if err != nil {
		return 0, 0, 0, err
	}
	loaded, err = b.load(ctx, ends)
	return took, loaded, len(ends), err
}
