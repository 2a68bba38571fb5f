package main

import (
	"context"
	"errors"
	"fmt"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/pkg/window"
)

// BenchContextCmd measures contexts, and the start time and memory of the program.
type BenchContextCmd struct {
	Paths         []string `arg:"" optional:"" name:"path" complete:"file" help:"Transcripts to import into a separate empty server; without any, the running server at --url is measured as it is."`
	MaxChars      int      `help:"Budget of a context." default:"100000"`
	Conversations int      `help:"Maximum number of conversations to read, spread evenly over all." default:"200"`
	WarmUp        int      `help:"How often each is read as a warm-up; a Neo4j that has just started needs ten." default:"1"`
	Rounds        int      `help:"How often each is read." default:"5"`
	Short         int      `help:"Number of turns of the short conversation, which is compared with one of at least ten times as many, if there is one." default:"100"`
	benchStore
}

func (*BenchContextCmd) Help() string {
	return `With transcripts, the command starts "mneme up" as a separate process on an empty temporary directory, imports them with "mneme import --wait", kills and restarts the server, then interrupts and restarts it. For each start it measures the time until the server prints its address, and its resident memory.

Then it reads contexts over HTTP (format json, uncompressed), one by one: those of conversations, and those that new sessions in their projects begin with. It reads the insights by each grouping, 20 times as often. If there is a long conversation, it publishes its last turns again as a separate conversation and reads both alternately: the newest content is the same, so the ratio shows what the length costs.

With --store neo4j, or MNEME_STORE, the read models are in the server at --neo4j-uri, which must have none yet, and are removed afterwards.

Examples:

    mneme bench context                                          the server that runs, as it is
    mneme bench context ~/.claude/projects                       a separate server
    mneme bench context ~/.claude/projects --store neo4j --warm-up 10`
}

func (c *BenchContextCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := errors.Join(atLeast("--max-chars", c.MaxChars, window.MinMaxChars), atLeast("--conversations", c.Conversations, 1), atLeast("--warm-up", c.WarmUp, 0), atLeast("--rounds", c.Rounds, 1), atLeast("--short", c.Short, 1)); err != nil {
		return &program.UsageError{Err: err}
	}
	api, err := g.client()
	if err != nil {
		return err
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	o := bench.ContextOptions{
		Program: program, Paths: c.Paths, URL: g.URL, Tenant: g.ownTenant(), Client: api.http, MaxChars: c.MaxChars, Most: c.Conversations, WarmUp: c.WarmUp, Rounds: c.Rounds, ShortTurns: c.Short,
	}
	if isTerminal(t.err) {
		o.Progress = t.err
	}
	r, err := bench.RunContext(ctx, o, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	list := []figure{{"machine", machine(r.Machine)}}
	if r.Store != nil {
		list = append(list, figure{"store", r.Store.String()})
	}
	if p := r.Program; p != nil {
		list = append(list, []figure{
			{"import", fmt.Sprintf("%s events, %.2f GB of log, %s until all were applied", number(p.Events), p.LogGB, perSecond(p.ImportPS)) + importCPU(p.ImportCPU)},
			{"resident", fmt.Sprintf("%s on an empty directory, %s after the import (at most %s), %s after all reads of a new process", mb(p.IdleMB), mb(p.ImportedMB), mb(p.PeakMB), mb(p.ReadMB))},
			{"ready", fmt.Sprintf("%.2f s on an empty directory, %.2f s after an interrupt, %.2f s after a kill (%.2f s/GB)", p.ReadyEmptyMS/1e3, p.ReadyMS/1e3, p.ReadyKilledMS/1e3, p.KilledSPerGB)},
		}...)
	}
	list = append(list, []figure{
		{"contexts", fmt.Sprintf("of at most %s characters, %s of %s conversations", number(r.MaxChars), number(r.Conversations), number(r.Of))},
		{"warm", quantiles(r.Warm)},
		{"fastest", fmt.Sprintf("%s: of each conversation, the fastest of %s", quantiles(r.Fastest), counted(c.Rounds, "read"))},
		{"answer", fmt.Sprintf("%.0f KB (median), %.0f KB at most", r.KB, r.MaxKB)},
	}...)
	if p := r.Projects; p != nil {
		list = append(list, figure{"projects", fmt.Sprintf("%s, %.0f KB: %s queries about %s of %s projects, %s characters", quantiles(p.Took), p.KB, number(p.Queries), number(p.Projects), number(p.Of), number(p.MaxChars))})
	}
	for _, i := range r.Insights {
		list = append(list, figure{"insights", fmt.Sprintf("by %-12s  %s", i.By, quantiles(i.Took))})
	}
	if l := r.Long; l != nil {
		list = append(list, []figure{
			{"long", fmt.Sprintf("%s, %.0f KB: %s turns", quantiles(l.Long), l.KB, number(l.Turns))},
			{"short", fmt.Sprintf("%s, %.0f KB: a copy of its last %s turns", quantiles(l.Short), l.ShortKB, number(l.ShortTurns))},
			{"ratio", fmt.Sprintf("%.2f (of the medians)", l.Ratio)},
		}...)
	}
	return t.report(g, r, list)
}

// importCPU describes the processor time of an import, if the system reports it.
func importCPU(us *float64) string {
	if us == nil {
		return ""
	}
	return fmt.Sprintf("; the program used %.0f µs of processor time per event", *us)
}
