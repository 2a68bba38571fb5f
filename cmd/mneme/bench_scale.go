package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/program"
)

// BenchRebuildCmd measures rebuilds by the program itself.
type BenchRebuildCmd struct {
	Paths  []string      `arg:"" name:"path" complete:"file" help:"Transcripts to measure with, as import takes them. Use more than a hundred thousand events, so that a rebuild lasts long enough."`
	Rounds int           `help:"Rounds of the measurements without other load; at least one." default:"3"`
	Rate   int           `help:"Events published per second during a rebuild." default:"200"`
	WarmUp time.Duration `help:"How long to publish before the measurement." default:"5s"`
	For    time.Duration `help:"How long to publish, with a rebuild and without." default:"30s"`
	benchStore
}

func (*BenchRebuildCmd) Help() string {
	return `Publishes the transcripts to a log in a temporary directory. Each round starts "mneme up" on it as a separate process with empty read models and measures the time until they are filled; then it requests a rebuild of all of them and measures the time until the new ones serve. The ratio is the median over the rounds.

Then it publishes events at an even rate and reads back one in four of them, as "mneme bench latency" does: first without a rebuild, then during one, followed by another if it ends early. The second ratio compares the 99th percentiles of the time until an event is readable.

With --store neo4j, or MNEME_STORE, its read models are in the server at --neo4j-uri, which must have none yet, and are removed afterwards; an additional, uncounted round warms the server up.

Examples:

    mneme bench rebuild ~/.claude/projects
    mneme bench rebuild ~/.claude/projects --rounds 1 --for 1m --store neo4j`
}

func (c *BenchRebuildCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := errors.Join(atLeast("--rounds", c.Rounds, 1), atLeast("--rate", c.Rate, 1), atLeast("--for", c.For, time.Second), atLeast("--warm-up", c.WarmUp, 0)); err != nil {
		return &program.UsageError{Err: err}
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	r, err := bench.RunRebuild(ctx, c.Paths, bench.RebuildOptions{Program: program, Rounds: c.Rounds, Rate: c.Rate, WarmUp: c.WarmUp, For: c.For}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	return t.report(g, r, []figure{
		{"machine", machine(r.Machine)},
		{"store", r.Store.String()},
		{"events", fmt.Sprintf("%s (%.0f MB)", number(r.Events), r.MB)},
		{"ingest", perSecond(r.IngestPS) + " (median), by a program that starts with empty read models"},
		{"rebuild", perSecond(r.RebuildPS) + " (median), until the new ones serve"},
		{"ratio", ratios(r.Ratio, r.Ratios)},
		{"without", fmt.Sprintf("readable %s, at %.0f events/s", quantiles(r.Without.Readable), r.Without.Pace)},
		{"", "context " + quantiles(r.Without.Context)},
		{"with", fmt.Sprintf("readable %s, at %.0f events/s", quantiles(r.With.Readable), r.With.Pace)},
		{"", "context " + quantiles(r.With.Context)},
		{"p99 ratio", fmt.Sprintf("%.2f, while %d rebuilds ended and one was under way", r.P99Ratio, r.Rebuilds)},
	})
}

// BenchScaleCmd measures ingestors that share a log.
type BenchScaleCmd struct {
	Paths     []string `arg:"" name:"path" complete:"file" help:"Transcripts to measure with, as import takes them."`
	Ingestors []int    `help:"How many ingestors, one measurement each." default:"1,2,4"`
	Rounds    int      `help:"Rounds of each, alternating; at least one." default:"3"`
	benchStore
}

func (*BenchScaleCmd) Help() string {
	return `Publishes the transcripts to a log of 8 partitions in a temporary directory. In each round one ingestor applies it to an empty read model "graph" in the Neo4j server at --neo4j-uri, then two that share the partitions by leases, then four, each with its own connections. The time runs from their start, which includes finding each other, until everything is applied. An additional, uncounted round warms the server up. What they wrote is removed.

SQLite has a single writing process, so there is nothing to scale: see mneme bench ingest.

Example:

    mneme bench scale ~/.claude/projects --ingestors 1,2,4,8 --store neo4j`
}

func (c *BenchScaleCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	errs := atLeast("--rounds", c.Rounds, 1)
	for _, n := range c.Ingestors {
		errs = errors.Join(errs, atLeast("--ingestors", n, 1))
	}
	if errs != nil {
		return &program.UsageError{Err: errs}
	}
	on, err := c.neo4j(g)
	if err != nil {
		return err
	}
	if on == nil {
		return &program.UsageError{Err: errors.New("only one process can write to SQLite: several ingestors need --store neo4j")}
	}
	r, err := bench.RunScale(ctx, c.Paths, c.Ingestors, c.Rounds, *on, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	list := []figure{
		{"machine", machine(r.Machine)},
		{"store", r.Store.String()},
		{"events", fmt.Sprintf("%s (%.0f MB) in %d partitions", number(r.Events), r.MB, r.Partitions)},
	}
	for _, n := range r.Ingestors {
		list = append(list, figure{fmt.Sprint(n.Count), fmt.Sprintf("%s (median), ratio %s", perSecond(n.IngestPS), ratios(n.Ratio, n.Ratios))})
	}
	return t.report(g, r, list)
}
