// Package bench measures mneme: against something that does the same work without
// it, in the same run on the same machine, or as its user would, on the real program.
package bench

import (
	"context"
	"path/filepath"
	"time"

	"mneme/pkg/eventlog"
	"mneme/pkg/graph"
	"mneme/pkg/graph/sqlitestore"
)

// Ingest is the result of [RunIngest].
type Ingest struct {
	Machine    Machine   `json:"machine"`
	Events     uint64    `json:"events"`
	MB         float64   `json:"mb"`
	PublishPS  float64   `json:"publish_events_per_s"`
	IngestPS   float64   `json:"ingest_events_per_s"` // median
	LoaderPS   float64   `json:"loader_events_per_s"` // median
	Ratio      float64   `json:"ratio"`               // median of the pairs' ratios
	Ratios     []float64 `json:"ratios"`
	Batches    int       `json:"batches"` // transactions of the last round
	ComparedTo string    `json:"compared_to"`
}

// RunIngest publishes transcripts to a log of its own and measures how fast the
// projection "graph" applies them, against a bare loader: it writes the very rows
// that the projection wrote, read into memory before, into the same tables with the
// same indexes and settings in the same transactions, but reads no log, decodes
// nothing and knows no engine. Both run rounds times, one at least, in turns. Without
// events it returns [ErrNoEvents].
func RunIngest(ctx context.Context, paths []string, rounds int, say Say) (out Ingest, err error) {
	out.Machine = ThisMachine()
	out.ComparedTo = "a bare loader that writes the same decoded rows into the same SQLite tables and indexes in the same batches, without log, engine and checkpoint"
	s, err := newScratch(ctx)
	if err != nil {
		return out, err
	}
	defer s.close()
	publish, state, err := s.fill(ctx, paths, say)
	if err != nil {
		return out, err
	}
	out.PublishPS, out.Events, out.MB = publish, state.Messages, float64(state.Bytes)/1e6
	var ingest, loader []float64
	for round := range rounds {
		say("round %d of %d", round+1, rounds)
		dir := s.round(round)
		path := filepath.Join(dir, "graph.db")
		took, ends, err := ingestOnce(ctx, s.log, path, state.Head)
		if err != nil {
			return out, err
		}
		loaded, err := loadOnce(ctx, ends, path, filepath.Join(dir, "bare.db"))
		if err != nil {
			return out, err
		}
		out.Batches = len(ends)
		n := float64(out.Events)
		ingest, loader = append(ingest, n/took.Seconds()), append(loader, n/loaded.Seconds())
		out.Ratios = append(out.Ratios, loaded.Seconds()/took.Seconds())
	}
	out.IngestPS, out.LoaderPS, out.Ratio = median(ingest), median(loader), median(out.Ratios)
	return out, nil
}

// ingestOnce applies the whole log to a new store.
func ingestOnce(ctx context.Context, log *eventlog.Log, path string, head uint64) (took time.Duration, ends []uint64, err error) {
	store, err := sqlitestore.OpenGraph(ctx, path)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = store.Close() }()
	return apply(ctx, log, graph.Projection(), store, head)
}
