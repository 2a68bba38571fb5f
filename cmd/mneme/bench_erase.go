package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/program"
)

// BenchEraseCmd measures an erasure.
type BenchEraseCmd struct {
	Paths    []string `arg:"" name:"path" complete:"file" help:"Transcripts among whose events the messages to erase are spread, as import takes them."`
	Messages int      `help:"How many messages to erase." default:"10000"`
}

func (*BenchEraseCmd) Help() string {
	return `Starts "mneme up" as a separate process in a temporary directory, with SQLite, and publishes the transcripts. Among their events, evenly spread, are messages of another tenant, in 100 conversations, which all contain the same words. Then it has that tenant erased and measures the time from the request until the log and the read models are overwritten.

Before and after it searches every byte of the log and the read models for the words, as "mneme erase --prove" does, and again once the program has ended. It must find them before and not afterwards; otherwise the exit code is 3.

Example:

    mneme bench erase ~/.claude/projects --messages 1000`
}

func (c *BenchEraseCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--messages", c.Messages, 1); err != nil {
		return &program.UsageError{Err: err}
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	r, err := bench.RunErase(ctx, c.Paths, bench.EraseOptions{Program: bench.Program{Executable: executable}, Messages: c.Messages}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	found := func(f bench.Found) string {
		return fmt.Sprintf("%s in %d files (%.0f MB)", counted(f.Hits, "time"), f.Files, f.MB)
	}
	if err := t.report(g, r, []figure{
		{"machine", machine(r.Machine)},
		{"log", fmt.Sprintf("%s events (%.0f MB)", number(r.Events), r.MB)},
		{"erased", fmt.Sprintf("%s messages in %.1f s, %.0f a second", number(uint64(r.Messages)), r.Seconds, r.PerSecond)},
		{"found before", found(r.Before)},
		{"after", found(r.After)},
		{"after the end", found(r.Stopped)},
	}); err != nil {
		return err
	}
	if r.Before.Hits == 0 {
		return errors.New("the words were not found before the erasure, so the search proves nothing")
	}
	if r.After.Hits+r.Stopped.Hits > 0 {
		return errDifference
	}
	return nil
}
