package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/analysis"
	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/summary/llm"
	"mneme.dev/mneme/pkg/window"
)

// AnalyzeCmd has a model do a task with many conversations.
type AnalyzeCmd struct {
	Task         string   `help:"What the model should do with each conversation. Without it: say what the conversation was about, what it found and what it left to do." placeholder:"TEXT"`
	Schema       string   `help:"With --task: a file with the JSON Schema of an answer, an object, or only its properties. Default: an answer in words." placeholder:"FILE" type:"path" complete:"file"`
	Project      string   `help:"Only conversations of this project; . means the project of this folder." placeholder:"NAME" complete:"directory"`
	Tag          []string `help:"Only conversations with this tag; if given more than once, with all of them." placeholder:"TAG" sep:"none"`
	Agent        string   `help:"Only conversations of this agent, in any spelling: claude-code is Claude Code, too. mneme insights --by agent shows the names." placeholder:"NAME"`
	Since        instant  `help:"Only conversations whose newest event is from this time or later: RFC 3339, a date, which means its local midnight, or how long ago, such as 7d." placeholder:"TIME"`
	Conversation []string `help:"Only this conversation; may be given more than once." placeholder:"ID" sep:"none" complete:"conversation"`
	Limit        int      `help:"Maximum number of conversations, those with the newest events; 0 means all." default:"0"`
	MapReduce    bool     `help:"Then combine all answers into one, which is printed but not stored."`
	MaxChars     int      `help:"How much of a conversation the model reads, in characters: a context that fits the task." default:"24000"`
	Parallel     int      `help:"How many conversations the model is asked about at the same time." default:"4"`
	MaxCalls     int      `help:"Maximum number of model calls, repeated ones included; 0 means no limit. The next run asks about the rest." default:"0"`
	MaxTokens    int      `help:"Stop asking once the model has read and written this many tokens; 0 means no limit." default:"0"`
	Yes          bool     `short:"y" help:"Do not ask for confirmation. Required without a terminal, if the model has to be asked."`
	settings.Analysing
}

func (*AnalyzeCmd) Help() string {
	return `The model is that of the summarizer: MNEME_SUMMARY_WRITER, MNEME_LLM_MODEL, MNEME_LLM_URL and MNEME_LLM_KEY name it, and MNEME_LLM_MAX_CALLS_PER_HOUR and MNEME_LLM_MAX_COST_PER_HOUR limit how often this run may call it and what that may cost. Before the first call, the command says how many calls there will be, and about how many tokens the model will read.

Each answer is stored as an event of its conversation, with the model and the task, so asking again about a conversation that has not changed costs nothing, and a run that was interrupted continues where it stopped. Without --task, the answers appear in the context of the project: what was learnt, and what is left to do.

An answer that does not fit the schema is asked for once more. A conversation without a usable answer is listed with the reason; the exit code is then 1.

Examples:

    mneme analyze --project .
    mneme analyze --since 2026-01-01 --task "Which commands failed, and why?" --map-reduce
    mneme analyze --task "List the decisions and their reasons." --schema decisions.json --json`
}

// analyst is a run of the command, and the memory that it reads: that of a server.
type analyst struct {
	*AnalyzeCmd
	api *client
	*analysis.Analyst
}

func (c *AnalyzeCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	a, err := c.analyst(g)
	if err != nil {
		return err
	}
	if err := a.Find(ctx); err != nil {
		return err
	}
	e, out := a.Estimate(), a.Outcome()
	if e.Conversations == 0 {
		return errors.New("no conversation to analyze: see mneme conversations list with the same flags")
	}
	if e.Known < e.Conversations {
		if !c.Yes {
			if err := confirm(ctx, t, asks(out.Model, e), "analyze", "the model was not asked"); err != nil {
				return err
			}
		}
		bar := t.counter("asking " + out.Model)
		bar.ChangeMax(e.Conversations - e.Known)
		a.Progress = func(int, int, *analysis.Analyzed) { _ = bar.Add(1) }
		a.Ask(ctx)
		_ = bar.Finish()
	}
	failed := a.Reduce(ctx)
	if g.JSON {
		err = t.json(out)
	} else {
		err = a.print(t)
	}
	if n := out.Unanswered(); n > 0 {
		failed = errors.Join(failed, fmt.Errorf("%s of %s without an answer; run the command again to ask about these only", number(n), counted(len(out.Conversations), "conversation")))
	}
	return errors.Join(err, failed)
}

func (c *AnalyzeCmd) analyst(g *Globals) (*analyst, error) {
	if err := errors.Join(atLeast("--parallel", c.Parallel, 1), atLeast("--max-chars", c.MaxChars, window.MinMaxChars), atLeast("--limit", c.Limit, 0),
		atLeast("--max-calls", c.MaxCalls, 0), atLeast("--max-tokens", c.MaxTokens, 0)); err != nil {
		return nil, &program.UsageError{Err: err}
	}
	if err := g.given.check(&c.Analysing); err != nil {
		return nil, err
	}
	profile, ok := c.LLM()
	if !ok {
		return nil, errors.New("no model is configured: set MNEME_SUMMARY_WRITER to openai or anthropic, and MNEME_LLM_MODEL")
	}
	schema := ""
	if c.Schema != "" {
		if c.Task == "" {
			return nil, usageError("--schema belongs to --task")
		}
		raw, err := os.ReadFile(c.Schema)
		if err != nil {
			return nil, usageError("--schema: %v", err)
		}
		schema = string(raw)
	}
	question, err := analysis.Question(c.Task, schema)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	model, err := llm.New(profile)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	api, err := g.client()
	if err != nil {
		return nil, err
	}
	a := &analyst{AnalyzeCmd: c, api: api}
	a.Analyst = analysis.New(a, analysis.Run{
		Question: question, Model: model, Over: c.MapReduce, MaxChars: c.MaxChars, Parallel: c.Parallel, MaxCalls: c.MaxCalls, MaxTokens: int64(c.MaxTokens),
	})
	return a, nil
}

// Conversations implements [analysis.Memory].
func (a *analyst) Conversations(ctx context.Context) (list []analysis.Conversation, err error) {
	for _, id := range a.Conversation {
		var c httpapi.Conversation
		if err := a.api.get(ctx, conversation(id), nil, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		list = append(list, analysis.Conversation{ID: c.ID, Title: c.Title})
	}
	if len(list) > 0 {
		return list, nil
	}
	project, err := projectNamed(a.Project)
	if err != nil {
		return nil, err
	}
	page, err := a.api.pages(ctx, "/v1/conversations", "conversations", a.Limit, parameters{"project": project, "tag": a.Tag, "agent": a.Agent, "updated_after": a.Since.query})
	if err != nil {
		return nil, err
	}
	return decodeRows[analysis.Conversation](page)
}

// Answers implements [analysis.Memory].
func (a *analyst) Answers(ctx context.Context, id string, yield func(*analysis.Answer)) (size analysis.Size, err error) {
	for cursor := ""; ; {
		var page httpapi.Analyses
		if err := a.api.get(ctx, conversation(id, "/analyses"), parameters{"cursor": cursor, "limit": 200}, &page); err != nil {
			return size, err
		}
		if cursor = page.Each(&size, yield); cursor == "" {
			return size, nil
		}
	}
}

// Record implements [analysis.Memory].
func (a *analyst) Record(ctx context.Context, id, query string, maxChars int) (string, error) {
	record, err := a.api.raw(ctx, http.MethodGet, conversation(id, "/context"), parameters{
		"format": "markdown", "max_chars": maxChars, "project_memory": "off", "strategy": analysis.Strategy(query), "query": query,
	}, "", nil)
	return string(record), err
}

// Deleted implements [analysis.Memory].
func (a *analyst) Deleted(ctx context.Context, id string) (bool, error) {
	err := a.api.get(ctx, conversation(id), nil, &struct{}{})
	if answered, ok := errors.AsType[*answeredError](err); ok && answered.status == http.StatusNotFound {
		return true, nil
	}
	return false, err
}

// Store implements [analysis.Memory].
func (a *analyst) Store(ctx context.Context, e events.Event) (uint64, error) {
	body, err := events.EncodeStructured(e)
	if err != nil {
		return 0, err
	}
	var stored struct{ Seq uint64 }
	err = a.api.post(ctx, "/v1/events", events.ContentTypeEvent, body, &stored)
	return stored.Seq, err
}

// asks is the question whether to begin.
func asks(model string, e analysis.Estimate) string {
	known := ""
	if e.Known > 0 {
		known = fmt.Sprintf(" (%s answered before)", counted(e.Known, "other"))
	}
	return fmt.Sprintf("Ask %s about %s%s? It will read about %s.", model, counted(e.Conversations-e.Known, "conversation"), known, counted(int(e.InputTokens), "token"))
}

// print prints the answers for people.
func (a *analyst) print(t *terminal) error {
	all := a.Outcome()
	var out strings.Builder
	for _, r := range all.Conversations {
		out.WriteString(t.rule(console.Clean(strings.TrimSpace(r.Conversation+"  "+r.Title))) + "\n")
		if r.Answer == nil {
			out.WriteString("no answer: " + console.Clean(r.Error) + "\n\n")
			continue
		}
		a.write(&out, r.Answer)
	}
	if all.Over != nil {
		out.WriteString(t.rule("over all") + "\n")
		a.write(&out, all.Over)
	}
	if err := t.painted(out.String()); err != nil {
		return err
	}
	t.say("%s; %s to %s: %s read, %s written", counted(len(all.Conversations), "conversation"), counted(all.Calls, "call"), all.Model,
		counted(int(all.InputTokens), "token"), number(all.OutputTokens))
	return nil
}

// write writes an answer, its members in the order of the schema: texts, lists line by line, and anything else as JSON.
func (a *analyst) write(out *strings.Builder, answer map[string]json.RawMessage) {
	for _, name := range a.Question.Members() {
		raw, ok := answer[name]
		if !ok {
			continue
		}
		var text string
		var list []json.RawMessage
		switch {
		case json.Unmarshal(raw, &text) == nil:
			fmt.Fprintf(out, "%s: %s\n", name, console.Clean(text))
		case json.Unmarshal(raw, &list) == nil:
			fmt.Fprintf(out, "%s:\n", name)
			for _, item := range list {
				if json.Unmarshal(item, &text) != nil {
					text = string(item)
				}
				fmt.Fprintf(out, "  - %s\n", console.Clean(text))
			}
		default:
			fmt.Fprintf(out, "%s: %s\n", name, console.Clean(string(raw)))
		}
	}
	out.WriteString("\n")
}
