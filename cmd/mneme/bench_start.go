package main

import (
	"context"
	"fmt"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/pkg/window"
)

// BenchStartCmd measures which share the context of a project names of the files and commands that a new session needs.
type BenchStartCmd struct {
	Events   []string `required:"" help:"Sessions of coding agents in one project." placeholder:"PATH"`
	MaxChars int      `help:"Budget of the contexts." default:"8000"`
	benchStore
}

func (*BenchStartCmd) Help() string {
	return `Starts "mneme up" as a separate process on an empty temporary directory and publishes the sessions of the largest project, one after the other, in the order of their first events. Projects whose folders have the same name count as one. For each session but the first five it reads the context of the project as of the moment before the session, with the first user message as the query. "files" is the share of the first ten files that the session goes on to read or change which the context names; "commands" is the share of the commands that it goes on to run, of those that were run at least twice before. The floors are the 20 files touched last, and 20 files of the sessions with the most similar first messages.

Example:

    mneme bench start --events ~/.claude/projects/my-project`
}

func (c *BenchStartCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--max-chars", c.MaxChars, window.MinMaxChars); err != nil {
		return err
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	r, err := bench.RunStart(ctx, bench.StartOptions{Program: program, Events: c.Events, MaxChars: c.MaxChars}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	return t.report(g, r, []figure{
		{"machine", machine(r.Machine)}, {"store", r.Store.String()},
		{"project", r.Project}, {"sessions", fmt.Sprintf("%s, of which %s were measured", number(r.Sessions), number(r.Asked))}, {"budget", number(r.MaxChars) + " characters"},
		{"files", fmt.Sprintf("%.1f %% of the first ten, with %.0f named (floors: 20 touched last %.1f, 20 of similar sessions %.1f; ever touched %.1f)",
			100*r.Files, r.Named, 100*r.ByRecency, 100*r.BySimilar, 100*r.Before)},
		{"commands", fmt.Sprintf("%.1f %% at %s sessions", 100*r.Commands, number(r.CmdsAt))},
		{"context", quantiles(r.Context) + ": GET /v1/projects/PROJECT/context?as_of="},
	})
}
