package main

import (
	"context"
	"fmt"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/connect"
)

// BenchHookCmd measures how often the hook of a coding agent speaks at a prompt, and whether what it shows is needed.
type BenchHookCmd struct {
	Events []string `required:"" help:"Sessions of coding agents in one project." placeholder:"PATH"`
	benchStore
}

func (*BenchHookCmd) Help() string {
	return `Starts "mneme up" as a separate process on an empty temporary directory and publishes the sessions of the largest project, all events in the order of their times. Projects whose folders have the same name count as one. For each prompt of each session but the first five it asks POST /v1/hooks/AGENT as of the moment before the prompt: nothing later is shown, nor anything of the asking session.

A prompt at which the hook speaks is a hit if a file that the shown text names, by its path in the repository or the end of it, is read or changed in the turn of the prompt. A turn that touches no file counts as a miss. A hit is new if the prompt does not name that file and the session has not touched it before. A prompt that a session and its continuation both hold counts once.

The floors show as many files, those touched last: of the session that touched a file last, and of a random earlier session. "earlier" and "later" are the two halves of the sessions: what the hook shows was chosen by the figures of the earlier half.

"answer" is the time of the server alone. "process" is the time of the program mneme-hook, from its start to its end, at 200 prompts spread over all; it needs mneme-hook beside mneme or in PATH.

Example:

    mneme bench hook --events ~/.claude/projects/my-project`
}

func (c *BenchHookCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	program, err := c.program(g)
	if err != nil {
		return err
	}
	hook, missing := connect.FindHook(program.Executable)
	r, err := bench.RunHook(ctx, bench.HookOptions{Program: program, Hook: hook, Events: c.Events}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	process := fmt.Sprint("n/a: ", missing)
	if r.Process != nil {
		process = quantiles(*r.Process) + ": mneme-hook, one after the other"
	}
	return t.report(g, r, []figure{
		{"machine", machine(r.Machine)}, {"store", r.Store.String()},
		{"project", r.Project}, {"sessions", fmt.Sprintf("%s, of which %s were measured", number(r.Sessions), number(r.Asked))},
		{"", "prompts    spoke     chars  files    hit     new   floors: newest  random   touches a file"},
		{"all", hookLine(&r.All)}, {"earlier", hookLine(&r.Earlier)}, {"later", hookLine(&r.Later)},
		{"answer", quantiles(r.Answer) + ": POST /v1/hooks/AGENT?as_of="},
		{"process", process},
	})
}

func hookLine(f *bench.HookFigures) string {
	return fmt.Sprintf("%7s  %5.1f %%  %8.0f  %5.1f  %4.1f %%  %4.1f %%          %4.1f %%  %4.1f %%  %14.1f %%",
		number(f.Prompts), 100*f.Share, f.Chars, f.Named, 100*f.Hits, 100*f.News, 100*f.ByNewest, 100*f.ByRandom, 100*f.Touching)
}
