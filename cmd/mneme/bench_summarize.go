package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/service"
)

// BenchSummarizeCmd measures what it costs to know what is due.
type BenchSummarizeCmd struct {
	Paths  []string      `arg:"" name:"path" complete:"file" help:"Transcripts to measure with, as import takes them; of fifty thousand events or more."`
	Rate   int           `help:"Events published a second to the program." default:"200"`
	WarmUp time.Duration `help:"Time of publishing before the measurement." default:"5s"`
	For    time.Duration `help:"Time of publishing, with a summarizer and without." default:"30s"`
	Delay  time.Duration `help:"What the summarizer's model takes for an answer." default:"5s"`
}

// Help is what --help says below the summary.
func (*BenchSummarizeCmd) Help() string {
	return `The transcripts are published to a log in a temporary directory and brought into an empty read model "summaries" in SQLite, in batches of a thousand events. After each batch it is asked of each conversation that it touched what is due, as the summarizer does. What an event costs, to apply and to decide, is the median of thirty batches: behind the first ten thousand events, and at the end. The ratio says whether that depends on how much is stored.

The writer that needs no model then summarises what the first events say.

At last "mneme up" is started as a process of its own and published to at an even rate, as by "mneme bench latency": without a summarizer, and with one whose model takes its time for each answer.

Example:

    mneme bench summarize ~/.claude/projects`
}

// Run measures and prints the figures.
func (c *BenchSummarizeCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := errors.Join(atLeast("--rate", c.Rate, 1), atLeast("--for", c.For, time.Second), atLeast("--warm-up", c.WarmUp, 0), atLeast("--delay", c.Delay, 0)); err != nil {
		return &service.UsageError{Err: err}
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
