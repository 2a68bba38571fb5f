package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/pkg/window"
)

// benchEmbeddings are the embeddings to rank with.
type benchEmbeddings struct {
	Embeddings      string `help:"How messages are compared by meaning: builtin, openai (an endpoint with OpenAI's API), or off." enum:"builtin,openai,off" default:"builtin"`
	EmbeddingsURL   string `help:"URL of that endpoint, including /v1. MNEME_EMBEDDINGS_KEY is its key." placeholder:"URL"`
	EmbeddingsModel string `help:"The endpoint's model." placeholder:"NAME"`
}

func (e *benchEmbeddings) chosen() bench.Embeddings {
	return bench.Embeddings{Kind: e.Embeddings, URL: e.EmbeddingsURL, Model: e.EmbeddingsModel}
}

// BenchRecallCmd measures what searches and contexts find.
type BenchRecallCmd struct {
	Events   []string `required:"" help:"Transcripts to import." placeholder:"PATH"`
	QA       string   `name:"qa" required:"" help:"Questions: JSON lines with conversation_id, question, evidence (message_ids) and category." placeholder:"FILE"`
	Strategy string   `help:"Strategy of the contexts." enum:"hybrid,relevant,levels,recent,pruned" default:"hybrid"`
	MaxChars int      `help:"Budget of the contexts." default:"16000"`

	Conversations bool `help:"Ask which conversation each question is about; the questions name it in evidence_conversations."`
	benchEmbeddings
	benchStore
}

func (*BenchRecallCmd) Help() string {
	return `Starts "mneme up" as a separate process on an empty temporary directory, imports the transcripts, and asks each question twice over HTTP: as a search in its conversation, and as the query of a context. Recall@K is the share of the evidence among the first K messages; "in the context" counts the questions for which a context shows any or all evidence. Questions without evidence are left out.

With --conversations each question searches all conversations. Hit@K is the share of questions for which a right conversation is among the first K found, MRR the mean of 1 divided by the rank of the first right one. Titles are removed from the conversations first, because most questions repeat them.

Examples:

    mneme bench recall --events locomo.jsonl.gz --qa questions.jsonl.gz --embeddings off
    mneme bench recall --events claude_code.jsonl.gz --qa titles.jsonl.gz --conversations`
}

func (c *BenchRecallCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--max-chars", c.MaxChars, window.MinMaxChars); err != nil {
		return err
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	options := bench.RecallOptions{
		Program: program, Events: c.Events, Questions: c.QA, Embeddings: c.chosen(), Strategy: c.Strategy, MaxChars: c.MaxChars, Progress: t.err,
	}
	if c.Conversations {
		return c.find(ctx, g, t, options)
	}
	r, err := bench.RunRecall(ctx, options, t.status)
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

// find asks which conversation a question is about.
func (c *BenchRecallCmd) find(ctx context.Context, g *Globals, t *terminal, options bench.RecallOptions) error {
	r, err := bench.RunFind(ctx, options, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	return t.report(g, r, []figure{
		{"machine", machine(r.Machine)}, {"store", r.Store.String()}, {"embeddings", orNone(r.Embedding)},
		{"conversations", fmt.Sprintf("%s, %s of which lost their titles", number(r.Conversations), number(r.Untitled))},
		{"found", fmt.Sprintf("%s questions: hit@1 %.1f %%  hit@5 %.1f %%  MRR %.3f", number(r.Questions), 100*r.Hit1, 100*r.Hit5, r.MRR)},
		{"left out", number(r.Left) + " questions about no conversation that was imported"},
		{"search", quantiles(r.Query) + ": GET /v1/search?limit=50"},
	})
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// BenchNeedCmd measures which share contexts contain of the files and texts that coding agents need next.
type BenchNeedCmd struct {
	Events   []string `required:"" help:"Sessions of coding agents to import." placeholder:"PATH"`
	MaxChars int      `help:"Budget of the contexts." default:"20000"`
	benchEmbeddings
	benchStore
}

func (*BenchNeedCmd) Help() string {
	return `Starts "mneme up" as a separate process on an empty temporary directory, imports the sessions, and reads the context of each as of 25, 50 and 75 %. It considers the files that the next ten calls touch and earlier calls touched too: "named" is the share whose whole path the context contains. Of the lines that these calls read or replace in those files, it considers those that the transcript showed before: "held" is the share that the context contains. The floor is the same number of characters from the end of the transcript.

Example:

    mneme bench need --events ~/.claude/projects --max-chars 20000`
}

func (c *BenchNeedCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--max-chars", c.MaxChars, window.MinMaxChars); err != nil {
		return err
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	r, err := bench.RunNeed(ctx, bench.NeedOptions{
		Program: program, Events: c.Events, Embeddings: c.chosen(), MaxChars: c.MaxChars, Progress: t.err,
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
