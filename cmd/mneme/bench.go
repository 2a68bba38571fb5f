package main

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/bench"
	"mneme/internal/service"
)

// BenchCmd groups the measurements.
type BenchCmd struct {
	Ingest BenchIngestCmd `cmd:"" help:"How fast events are applied, against a bare loader that writes the same rows."`
}

// BenchIngestCmd measures ingest.
type BenchIngestCmd struct {
	Paths  []string `arg:"" name:"path" help:"Transcripts to measure with, for example ~/.claude/projects."`
	Rounds int      `help:"Rounds of each, in turns; one at least." default:"5"`
}

// Run measures and prints the figures.
func (c *BenchIngestCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if c.Rounds < 1 {
		return &service.UsageError{Err: fmt.Errorf("--rounds %d: one is the least", c.Rounds)}
	}
	r, err := bench.RunIngest(ctx, c.Paths, c.Rounds, func(line string) {
		if isTerminal(t.err) {
			t.say("%s", line)
		}
	})
	if errors.Is(err, bench.ErrNoEvents) {
		return &service.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	if g.JSON {
		return t.json(r)
	}
	fmt.Fprintf(t.out, `machine     %s, %d cores, %s/%s, %s
events      %s (%.0f MB)
publish     %.0f events/s, synced to disk
ingest      %.0f events/s (median)
bare loader %.0f events/s (median): %s
ratio       %.2f (median of %d pairs: %.2f)
`, r.Machine.CPU, r.Machine.Cores, r.Machine.OS, r.Machine.Arch, r.Machine.Go, number(r.Events), r.MB, r.PublishPS, r.IngestPS, r.LoaderPS, r.ComparedTo, r.Ratio, len(r.Ratios), r.Ratios)
	return nil
}
