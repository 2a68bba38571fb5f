package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"mneme/internal/bench"
)

// benchEmbeddings says what is ranked with.
type benchEmbeddings struct {
	Embeddings string `help:"How messages are compared by meaning: builtin, or off." enum:"builtin,off" default:"builtin"`
}

// BenchRecallCmd measures what searches and contexts find.
type BenchRecallCmd struct {
	Events   []string `required:"" help:"Transcripts to import." placeholder:"PATH"`
	QA       string   `name:"qa" required:"" help:"Questions: JSON lines with conversation_id, question, evidence (message_ids) and category." placeholder:"FILE"`
	Strategy string   `help:"Of the contexts." enum:"hybrid,relevant,levels,recent,pruned" default:"hybrid"`
	MaxChars int      `help:"Budget of the contexts." default:"16000"`
	benchEmbeddings
	benchStore
}

// Help is what --help says below the summary.
func (*BenchRecallCmd) Help() string {
	return `"mneme up" is started as a process of its own on an empty temporary directory, the transcripts are imported, and each question is asked twice over HTTP: as a search in its conversation, and as the query of a context. Recall@K is the share of the evidence among the first K messages; "in the context" are the questions of which a context shows any or all evidence. Questions without evidence are left out.

Example:

    mneme bench recall --events locomo.jsonl.gz --qa questions.jsonl.gz --embeddings off`
}

// Run measures and prints the figures.
func (c *BenchRecallCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--max-chars", c.MaxChars, 200); err != nil {
		return err
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	r, err := bench.RunRecall(ctx, bench.RecallOptions{
		Program: program, Events: c.Events, Questions: c.QA, Embeddings: c.Embeddings, Strategy: c.Strategy, MaxChars: c.MaxChars, Progress: t.err,
	}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	line := func(f bench.RecallFigures) string {
		return fmt.Sprintf("%5s questions: recall@1 %4.1f  @5 %4.1f  @10 %4.1f  @25 %4.1f  @50 %4.1f  NDCG@10 %4.1f  in the context: any %5.1f  all %5.1f",
			number(f.Questions), 100*f.At1, 100*f.At5, 100*f.At10, 100*f.At25, 100*f.At50, 100*f.NDCG, 100*f.AnyIn, 100*f.AllIn)
	}
	list := []figure{
		{"machine", machine(r.Machine)}, {"store", r.Store.String()}, {"embeddings", orNone(r.Embedding)},
		{"budget", number(r.MaxChars) + " characters, strategy " + r.Strategy},
	}
	for _, category := range slices.Sorted(maps.Keys(r.Categories)) {
		list = append(list, figure{category, line(r.Categories[category])})
	}
	return t.report(g, r, append(list,
		figure{"all", line(r.All)},
		figure{"left out", number(r.Left) + " questions without evidence, or of no conversation that was imported"},
		figure{"search", quantiles(r.Query) + ": GET /v1/conversations/ID/search?limit=50"},
		figure{"context", quantiles(r.Context) + ": GET /v1/conversations/ID/context?query="},
	))
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// BenchNeedCmd measures what contexts have of what coding agents need.
type BenchNeedCmd struct {
	Events   []string `required:"" help:"Sessions of coding agents to import." placeholder:"PATH"`
	MaxChars int      `help:"Budget of the contexts." default:"20000"`
	benchEmbeddings
	benchStore
}

// Help is what --help says below the summary.
func (*BenchNeedCmd) Help() string {
	return `"mneme up" is started as a process of its own on an empty temporary directory, the sessions are imported, and at 25, 50 and 75 % of each its context is read as of then. Of the files that the next ten calls touch, and that calls touched before, "named" is the share whose whole path the context has. Of the lines that these calls read or replace in them, and that the transcript showed before, "held" is the share that the context has. The floor is the same number of characters from the end of the transcript.

Example:

    mneme bench need --events ~/.claude/projects --max-chars 20000`
}

// Run measures and prints the figures.
func (c *BenchNeedCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--max-chars", c.MaxChars, 200); err != nil {
		return err
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	r, err := bench.RunNeed(ctx, bench.NeedOptions{
		Program: program, Events: c.Events, Embeddings: c.Embeddings, MaxChars: c.MaxChars, Progress: t.err,
	}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	line := func(f bench.NeedFigures) string {
		return fmt.Sprintf("named %4.1f %% (floor %4.1f) of %.1f files at %s points; held %4.1f %% (floor %4.1f) of the lines at %s",
			100*f.Named, 100*f.NamedByEnd, f.Files, number(f.Points), 100*f.Held, 100*f.HeldByEnd, number(f.Texts))
	}
	list := []figure{
		{"machine", machine(r.Machine)}, {"store", r.Store.String()},
		{"sessions", number(r.Sessions)}, {"budget", number(r.MaxChars) + " characters"},
	}
	for _, percent := range slices.Sorted(maps.Keys(r.At)) {
		list = append(list, figure{"at " + percent + " %", line(r.At[percent])})
	}
	return t.report(g, r, append(list,
		figure{"all", line(r.All)},
		figure{"ratio", fmt.Sprintf("%.2f times the lines of the floor", r.Ratio)},
		figure{"context", quantiles(r.Context) + ": GET /v1/conversations/ID/context?as_of="},
	))
}
