package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/pkg/window"
)

// BenchCodeCmd measures how much of the functions that coding agents need next contexts contain, with their project indexed
// and without.
type BenchCodeCmd struct {
	Events        []string `required:"" help:"Sessions of coding agents to import." placeholder:"PATH"`
	MaxChars      int      `help:"Budget of the contexts." default:"100000"`
	OneRepository bool     `help:"All sessions work on one repository, whatever their working directories: what one showed is indexed for the others."`
	benchEmbeddings
	benchStore
}

func (*BenchCodeCmd) Help() string {
	return `Starts "mneme up" as a separate process on an empty temporary directory, and publishes the sessions twice, in the order in which they began: for one tenant with an index of the code that they work on, as "mneme index" makes it, and for another one without. It then reads the context after the first user message of each session, and at 25, 50 and 75 %, and takes the functions that the next ten calls read or change. A function is held if Relevant Code Context shows, under its file, a line of at least 20 characters that no other line of the file equals.

The code is what the sessions themselves show: files that were read with line numbers, written or edited. The index that a session begins with holds only what calls of other sessions had shown until then, so it knows less than an index of the whole repository would, and nothing that came later. Lines that nobody had shown are empty in it. Each working directory has an index of its own; with --one-repository they share what they show, which is right for worktrees, and for several people's checkouts of one repository.

"in the index" is the share of the functions of which the index has such a line, the most that it could add; "shown before" is the share of which an earlier call of the same session had shown one.

Examples:

    mneme bench code --events ~/.claude/projects
    mneme bench code --events sessions.jsonl.gz --one-repository --max-chars 20000 --json`
}

func (c *BenchCodeCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--max-chars", c.MaxChars, window.MinMaxChars); err != nil {
		return err
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	r, err := bench.RunCode(ctx, bench.CodeOptions{
		Program: program, Events: c.Events, Embeddings: c.chosen(), MaxChars: c.MaxChars, OneRepository: c.OneRepository,
	}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	held := func(h bench.CodeHeld) string {
		return fmt.Sprintf("%4.1f %% (%4.1f %% of their lines; %4.1f %% in the whole context)", 100*h.Section, 100*h.Lines, 100*h.Context)
	}
	list := []figure{
		{"machine", machine(r.Machine)}, {"store", r.Store.String()},
		{"sessions", fmt.Sprintf("%s, %s of which began with an index, of %.0f files and %.0f scopes on average", number(r.Sessions), number(r.Indexed), r.Files, r.Scopes)},
		{"budget", number(r.MaxChars) + " characters"},
	}
	add := func(name string, f bench.CodeFigures) {
		list = append(list,
			figure{name, fmt.Sprintf("%.1f functions at %s points; %4.1f %% in the index, %4.1f %% shown before", f.Functions, number(f.Points), 100*f.Known, 100*f.Seen)},
			figure{"  with an index", held(f.With)}, figure{"  without", held(f.Without)})
	}
	for _, percent := range slices.Sorted(maps.Keys(r.At)) {
		add("at "+percent+" %", r.At[percent])
	}
	add("changed", r.Changed)
	add("not shown before", r.Unseen)
	add("all", r.All)
	return t.report(g, r, append(list,
		figure{"context", quantiles(r.Context) + ": GET /v1/conversations/ID/context?as_of="},
		figure{"  without", quantiles(r.ContextBare)},
	))
}
