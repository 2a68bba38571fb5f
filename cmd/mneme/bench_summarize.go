package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/program"
)

// BenchSummarizeCmd measures what it costs to decide which summaries are due.
type BenchSummarizeCmd struct {
	Paths  []string      `arg:"" name:"path" complete:"file" help:"Transcripts to measure with, as import takes them; at least fifty thousand events."`
	Rate   int           `help:"Events published to the program per second." default:"200"`
	WarmUp time.Duration `help:"How long to publish before the measurement." default:"5s"`
	For    time.Duration `help:"How long to publish, with a summarizer and without." default:"30s"`
	Delay  time.Duration `help:"How long the summarizer's model takes to answer." default:"5s"`
}

func (*BenchSummarizeCmd) Help() string {
	return `Publishes the transcripts to a log in a temporary directory and applies them to an empty read model "summaries" in SQLite, in batches of a thousand events. After each batch it checks what is due in each conversation that the batch touched, as the summarizer does. The cost of an event, to apply it and to decide, is the median of thirty batches: once after the first ten thousand events, and once at the end. The ratio shows whether the cost depends on how much is stored.

Then the writer that needs no model summarizes the first events.

Finally it starts "mneme up" as a separate process and publishes to it at an even rate, as "mneme bench latency" does: without a summarizer, and with one whose model is slow to answer.

Example:

    mneme bench summarize ~/.claude/projects`
}

func (c *BenchSummarizeCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := errors.Join(atLeast("--rate", c.Rate, 1), atLeast("--for", c.For, time.Second), atLeast("--warm-up", c.WarmUp, 0), atLeast("--delay", c.Delay, 0)); err != nil {
		return &program.UsageError{Err: err}
	}
	path, err := os.Executable()
	if err != nil {
		return err
	}
	r, err := bench.RunSummarize(ctx, c.Paths, bench.SummarizeOptions{Program: bench.Program{Executable: path}, Rate: c.Rate, WarmUp: c.WarmUp, For: c.For, Delay: c.Delay}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	decision := func(d bench.Decision) string {
		return fmt.Sprintf("%.1f µs an event to apply, %.1f µs to decide (medians of %d batches)", d.Apply, d.Decide, d.Batches)
	}
	return t.report(g, r, []figure{
		{"machine", machine(r.Machine)},
		{"events", fmt.Sprintf("%s of %s conversations; something is due in %s", number(r.Events), number(r.Conversations), number(r.Due))},
		{fmt.Sprintf("at %s", number(r.Early.Events)), decision(r.Early)},
		{fmt.Sprintf("at %s", number(r.Late.Events)), decision(r.Late)},
		{"ratio", fmt.Sprintf("%.2f", r.Ratio)},
		{"without", "readable " + quantiles(r.Without.Readable) + fmt.Sprintf(", at %d events/s", r.Rate)},
		{"with", "readable " + quantiles(r.With.Readable) + fmt.Sprintf(", while a model was called %d times", r.Calls)},
		{"p99 ratio", fmt.Sprintf("%.2f", r.P99Ratio)},
		{"writer", fmt.Sprintf("%.1f MB/s of input, without a model", r.WriterMBps)},
	})
}
