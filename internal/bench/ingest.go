// Package bench measures mneme against something that does the same work without
// it, in the same run on the same machine, and reports medians and ratios.
package bench

import (
	"context"
	"errors"
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

// ErrNoEvents says that there is nothing to measure with.
var ErrNoEvents = errors.New("no events found there")

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
	if len(files) == 0 {
		return out, errors.Join(ErrNoEvents, err)
	}
	if err != nil {
		return out, err
	}
	say("publishing")
	began := time.Now()
	report, err := importer.Import(ctx, log, files, importer.Options{Tenant: "bench", Format: transcript.Auto})
	if errors.Is(err, importer.ErrUnread) && report.Published == 0 {
		return out, errors.Join(ErrNoEvents, err)
	}
	if err != nil {
		return out, err
	}
	state, err := log.State(ctx)
	if err != nil {
		return out, err
	}
	if state.Head == 0 {
		return out, ErrNoEvents
	}
	out = Ingest{
		Machine: ThisMachine(), Events: state.Messages, MB: float64(state.Bytes) / 1e6,
		PublishPS:  float64(report.Published) / time.Since(began).Seconds(),
		ComparedTo: "a bare loader that writes the same decoded rows into the same SQLite tables and indexes in the same batches, without log, engine and checkpoint",
	}
	var ingest, loader []float64
	for round := range rounds {
		path := filepath.Join(dir, fmt.Sprintf("graph-%d.db", round))
		took, ends, err := ingestOnce(ctx, log, path, state.Head, quiet)
		if err != nil {
			return out, err
		}
		loaded, err := loadOnce(ctx, ends, path, filepath.Join(dir, fmt.Sprintf("bare-%d.db", round)))
		if err != nil {
			return out, err
		}
		out.Batches = len(ends)
		n := float64(out.Events)
		ingest, loader = append(ingest, n/took.Seconds()), append(loader, n/loaded.Seconds())
		out.Ratios = append(out.Ratios, loaded.Seconds()/took.Seconds())
		say(fmt.Sprintf("round %d of %d: %.0f events/s, bare loader %.0f events/s", round+1, rounds, ingest[round], loader[round]))
	}
	out.IngestPS, out.LoaderPS, out.Ratio = median(ingest), median(loader), median(out.Ratios)
	return out, nil
}

// ingestOnce applies the whole log to a new store. It returns how long that took and
// with which sequences the engine's transactions ended.
func ingestOnce(ctx context.Context, log *eventlog.Log, path string, head uint64, logger *slog.Logger) (took time.Duration, ends []uint64, err error) {
	store, err := sqlitestore.OpenGraph(ctx, path)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = store.Close() }()
	p := graph.Projection()
	projector, err := projection.NewProjector(p, log, store, logger)
	if err != nil {
		return 0, nil, err
	}
	done := make(chan struct{})
	stop, err := log.WatchProgress(ctx, p.Name, 0, func(seq uint64) {
		if ends = append(ends, seq); seq == head {
			close(done)
		}
	})
	if err != nil {
		return 0, nil, err
	}
	defer stop()
	began := time.Now()
	projector.Start()
	defer projector.Stop()
	for {
		select {
		case <-done:
			return time.Since(began), ends, nil
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(time.Second):
			if s := projector.Status()[0]; s.Error != "" {
				return 0, nil, fmt.Errorf("the projector stopped: %s", s.Error)
			}
		}
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
