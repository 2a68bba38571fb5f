package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/program"
)

// BenchPartitionsCmd measures "mneme partitions".
type BenchPartitionsCmd struct {
	Events int `help:"Number of events in the log before it gets more partitions." default:"50000"`
	Rate   int `help:"Events published per second during the change." default:"200"`
}

func (*BenchPartitionsCmd) Help() string {
	return `Fills a log of 8 partitions in a temporary directory, on a NATS server of its own, and applies it to a read model in SQLite. Then it continues 64 of the conversations at an even rate, each in order, while it runs "mneme partitions 32" as a separate process, and the read model continues with the new partitions.

"pause" is the longest time in which no publish was acknowledged. Afterwards it reads every conversation, in the log and in the read model. Events that are lost, doubled or before an earlier one of their conversation make the exit code 3.

Example:

    mneme bench partitions --events 1000000`
}

func (c *BenchPartitionsCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := errors.Join(atLeast("--events", c.Events, 1), atLeast("--rate", c.Rate, 1)); err != nil {
		return &program.UsageError{Err: err}
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	r, err := bench.RunPartitions(ctx, bench.PartitionsOptions{Program: bench.Program{Executable: executable}, Events: c.Events, Rate: c.Rate}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	wrong := func(o bench.Order) string {
		return fmt.Sprintf("%d lost, %d doubled, %d reordered", o.Lost, o.Doubled, o.Reordered)
	}
	if err := t.report(g, r, []figure{
		{"machine", machine(r.Machine)},
		{"log", fmt.Sprintf("%s events (%.0f MB)", number(r.Events), r.MB)},
		{"command", fmt.Sprintf("%d → %d partitions in %.2f s", r.From, r.To, r.Seconds)},
		{"readers", fmt.Sprintf("up to date in the new partitions after %.2f s", r.Readers)},
		{"published", fmt.Sprintf("%s events meanwhile, %.0f a second, %d repeated", number(r.Published), r.Pace, r.Retried)},
		{"pause", fmt.Sprintf("%.0f ms at most", r.Pause)},
		{"acknowledged", quantiles(r.Stored)},
		{"late", quantiles(r.Late)},
		{"in the log", wrong(r.Log)},
		{"read model", wrong(r.ReadModel)},
	}); err != nil {
		return err
	}
	if r.Log.Wrong()+r.ReadModel.Wrong() > 0 {
		return errDifference
	}
	return nil
}
