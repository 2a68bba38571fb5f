// Package bench measures mneme against something that does the same work without
// it, in the same run on the same machine, and reports medians and ratios.
package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	natsdeploy "mneme/deploy/nats"
	"mneme/internal/importer"
	"mneme/internal/transcript"
	"mneme/pkg/eventlog"
	"mneme/pkg/graph"
	"mneme/pkg/graph/sqlitestore"
	"mneme/pkg/projection"
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
	BatchRows  int       `json:"loader_batch_events"`
	ComparedTo string    `json:"compared_to"`
}

// loaderBatch is how many events the bare loader writes in a transaction: what the
// engine's batches grow to when it has a backlog.
const loaderBatch = 1000

// RunIngest publishes transcripts to a log of its own and measures how fast the
// projection "graph" applies them, against a bare loader: it writes the very rows
// that the projection wrote, read into memory before, into the same tables with the
// same indexes and settings and as many events a transaction, but reads no log,
// decodes nothing and knows no engine. Both run rounds times, in turns.
func RunIngest(ctx context.Context, paths []string, rounds int, say func(string)) (out Ingest, err error) {
	dir, err := os.MkdirTemp("", "mneme-bench-")
	if err != nil {
		return out, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	quiet := slog.New(slog.DiscardHandler)
	server, err := natsdeploy.StartEmbedded(ctx, natsdeploy.EmbeddedConfig{Dir: filepath.Join(dir, "nats")})
	if err != nil {
		return out, err
	}
	defer server.Stop()
	if _, err := server.Apply(ctx, natsdeploy.Settings{}); err != nil {
		return out, err
	}
	conn, err := eventlog.Connect("", "bench", quiet, server.InProcess())
	if err != nil {
		return out, err
	}
	defer conn.Close()
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		return out, err
	}

	files, err := transcript.Find(paths)
	if err != nil {
		return out, err
	}
	say("publishing")
	began := time.Now()
	report, err := importer.Import(ctx, log, files, importer.Options{Tenant: "bench", Format: transcript.Auto})
	if err != nil {
		return out, err
	}
	state, err := log.State(ctx)
	if err != nil {
		return out, err
	}
	out = Ingest{
		Machine: ThisMachine(), Events: state.Messages, MB: float64(state.Bytes) / 1e6, BatchRows: loaderBatch,
		PublishPS:  float64(report.Published) / time.Since(began).Seconds(),
		ComparedTo: "a bare loader that writes the same decoded rows into the same SQLite tables and indexes, without log, engine and checkpoint",
	}
	var ingest, loader []float64
	var rows *readModel
	for round := range rounds {
		path := filepath.Join(dir, fmt.Sprintf("graph-%d.db", round))
		took, err := ingestOnce(ctx, log, path, state.Head, quiet)
		if err != nil {
			return out, err
		}
		if rows == nil {
			if rows, err = readRows(ctx, path); err != nil {
				return out, err
			}
		}
		loaded, err := rows.load(ctx, filepath.Join(dir, fmt.Sprintf("bare-%d.db", round)))
		if err != nil {
			return out, err
		}
		n := float64(out.Events)
		ingest, loader = append(ingest, n/took.Seconds()), append(loader, n/loaded.Seconds())
		out.Ratios = append(out.Ratios, loaded.Seconds()/took.Seconds())
		say(fmt.Sprintf("round %d of %d: %.0f events/s, bare loader %.0f events/s", round+1, rounds, ingest[round], loader[round]))
	}
	out.IngestPS, out.LoaderPS, out.Ratio = median(ingest), median(loader), median(out.Ratios)
	return out, nil
}

// ingestOnce applies the whole log to a new store and returns how long it took.
func ingestOnce(ctx context.Context, log *eventlog.Log, path string, head uint64, logger *slog.Logger) (time.Duration, error) {
	store, err := sqlitestore.OpenGraph(ctx, path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = store.Close() }()
	projector, err := projection.NewProjector(graph.Projection(), log, store, logger)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	projector.Start()
	defer projector.Stop()
	for projector.Status()[0].Checkpoint.Seq < head {
		if s := projector.Status()[0]; s.Error != "" {
			return 0, fmt.Errorf("the projector stopped: %s", s.Error)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return time.Since(began), nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
