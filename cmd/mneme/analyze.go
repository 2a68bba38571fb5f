package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
	"mneme.dev/mneme/pkg/window"
)

// AnalyzeCmd has a model do a task with many conversations.
type AnalyzeCmd struct {
	Task         string   `help:"What the model should do with each conversation. Without it: say what the conversation was about, what it found and what it left to do." placeholder:"TEXT"`
	Schema       string   `help:"With --task: a file with the JSON Schema of an answer, an object, or only its properties. Default: an answer in words." placeholder:"FILE" type:"path" complete:"file"`
	Project      string   `help:"Only conversations of this project; . is that of this folder." placeholder:"NAME" complete:"directory"`
	Tag          []string `help:"Only conversations with this tag; if given more than once, with all of them." placeholder:"TAG" sep:"none"`
	Agent        string   `help:"Only conversations of this agent."`
	Since        instant  `help:"Only conversations whose newest event is from this time or later: RFC 3339, or a date, which means its local midnight." placeholder:"TIME"`
	Conversation []string `help:"Only this conversation; may be given more than once." placeholder:"ID" sep:"none" complete:"conversation"`
	Limit        int      `help:"Maximum number of conversations, those with the newest events; 0 means all." default:"0"`
	MapReduce    bool     `help:"Then make one answer of all answers. It is printed, not stored."`
	MaxChars     int      `help:"How much of a conversation the model reads, in characters: a context that fits the task." default:"24000"`
	Parallel     int      `help:"How many conversations the model is asked about at the same time." default:"4"`
	Yes          bool     `short:"y" help:"Do not ask for confirmation. Required without a terminal, if the model has to be asked."`
	settings.Analysing
}

// Help implements kong.HelpProvider.
func (*AnalyzeCmd) Help() string {
	return `The model is that of the summarizer: MNEME_SUMMARY_WRITER, MNEME_LLM_MODEL, MNEME_LLM_URL and MNEME_LLM_KEY name it, and MNEME_LLM_MAX_CALLS_PER_HOUR and MNEME_LLM_MAX_COST_PER_HOUR bound what this run may take of it. Before it is asked, the command says how often, and about how many tokens it will read.

Each answer is stored as an event of its conversation, with the model and the task, so asking again about a conversation that has not changed costs nothing, and a run that was interrupted goes on where it was. Without --task, the answers stand in the context of the project: what was learnt, and what is left to do.

An answer that does not fit the schema is asked for once more. A conversation without a usable answer is listed with the reason; the exit code is then 1.

Examples:

    mneme analyze --project .
    mneme analyze --since 2026-01-01 --task "Which commands failed, and why?" --map-reduce
    mneme analyze --task "List the decisions and their reasons." --schema decisions.json --json`
}

// analyzed is what is known of one conversation.
type analyzed struct {
	Conversation string                     `json:"conversation_id"`
	Title        string                     `json:"title,omitempty"`
	Answer       map[string]json.RawMessage `json:"answer,omitempty"`
	Known        bool                       `json:"known"` // it was stored before
	Seq          uint64                     `json:"seq,omitempty"`
	Error        string                     `json:"error,omitempty"` // why there is no answer

	turns, chars int
}

// analysis is the outcome of a run.
type analysis struct {
	Task          string                     `json:"task"`
	Model         string                     `json:"model"`
	Conversations []*analyzed                `json:"conversations"`
	Over          map[string]json.RawMessage `json:"over,omitempty"` // the answer over all
	Calls         int                        `json:"calls"`
	InputTokens   int64                      `json:"input_tokens"`
	OutputTokens  int64                      `json:"output_tokens"`
}

func (a *analysis) pay(u summary.Usage) {
	a.Calls, a.InputTokens, a.OutputTokens = a.Calls+u.Calls, a.InputTokens+u.InputTokens, a.OutputTokens+u.OutputTokens
}

// analyst runs an analysis.
type analyst struct {
	*AnalyzeCmd
	api      *client
	question *llm.Question
	model    *llm.Writer

	mu  sync.Mutex
	out analysis
}

// inWords is the form of an answer without a schema.
const inWords = `{"answer": {"type": "string"}}`

// Run asks, and prints the answers.
func (c *AnalyzeCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	a, err := c.analyst(g)
	if err != nil {
		return err
	}
	if err := a.find(ctx); err != nil {
		return err
	}
	if len(a.out.Conversations) == 0 {
		return errors.New("no conversation to analyze: see mneme conversations list with the same flags")
	}
	todo := slices.DeleteFunc(slices.Clone(a.out.Conversations), func(r *analyzed) bool { return r.Known })
	if len(todo) > 0 && !c.Yes {
		if err := confirm(ctx, t, a.estimate(todo), "analyze", "the model was not asked"); err != nil {
			return err
		}
	}
	a.askAll(ctx, t, todo)
	if c.MapReduce && ctx.Err() == nil {
		if err := a.reduce(ctx); err != nil {
			return err
		}
	}
	if g.JSON {
		err = t.json(&a.out)
	} else {
		err = a.print(t)
	}
	return errors.Join(err, a.failed(ctx))
}

func (c *AnalyzeCmd) analyst(g *Globals) (*analyst, error) {
	if err := errors.Join(atLeast("--parallel", c.Parallel, 1), atLeast("--max-chars", c.MaxChars, window.MinMaxChars), atLeast("--limit", c.Limit, 0)); err != nil {
		return nil, &program.UsageError{Err: err}
	}
	if err := g.given.check(&c.Analysing); err != nil {
		return nil, err
	}
	profile, ok := c.LLM()
	if !ok {
		return nil, usageError("no model is configured: set MNEME_SUMMARY_WRITER to openai or anthropic, and MNEME_LLM_MODEL")
	}
	question := llm.SessionQuestion()
	if c.Task != "" {
		schema := inWords
		if c.Schema != "" {
			raw, err := os.ReadFile(c.Schema)
			if err != nil {
				return nil, usageError("--schema: %v", err)
			}
			schema = string(raw)
		}
		var err error
		if question, err = llm.NewQuestion(c.Task, schema); err != nil {
			return nil, &program.UsageError{Err: err}
		}
	} else if c.Schema != "" {
		return nil, usageError("--schema belongs to --task")
	}
	model, err := llm.New(profile)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	api, err := g.client()
	if err != nil {
		return nil, err
	}
	return &analyst{AnalyzeCmd: c, api: api, question: question, model: model, out: analysis{Task: question.Task, Model: model.Model(), Conversations: []*analyzed{}}}, nil
}

// find lists the conversations, and the answers that are stored already.
func (a *analyst) find(ctx context.Context) error {
	list, err := a.conversations(ctx)
	if err != nil {
		return err
	}
	found := make([]*analyzed, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(a.Parallel)
	for i, c := range list {
		group.Go(func() (err error) {
			found[i], err = a.known(ctx, c)
			return err
		})
	}
	err = group.Wait()
	for _, r := range found {
		if r != nil && r.chars > 0 {
			a.out.Conversations = append(a.out.Conversations, r)
		}
	}
	return err
}

func (a *analyst) conversations(ctx context.Context) (list []httpapi.Conversation, err error) {
	for _, id := range a.Conversation {
		var c httpapi.Conversation
		if err := a.api.get(ctx, conversation(id), nil, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		list = append(list, c)
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
	return decodeRows[httpapi.Conversation](page)
}

// known reads the stored answer about the whole of a conversation as it is now.
func (a *analyst) known(ctx context.Context, c httpapi.Conversation) (*analyzed, error) {
	r := &analyzed{Conversation: c.ID, Title: c.Title}
	for cursor := ""; ; {
		var page httpapi.Analyses
		if err := a.api.get(ctx, conversation(c.ID, "/analyses"), parameters{"cursor": cursor, "limit": 200}, &page); err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		r.turns, r.chars = page.Turns, page.Chars
		for _, s := range page.Analyses {
			if s.PromptHash == a.question.Hash() && s.Model == a.out.Model && s.Turns == page.Turns && s.Chars == page.Chars {
				r.Answer, r.Known, r.Seq = s.Answer, true, s.Seq
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return r, nil
		}
	}
}

// tokenChars is about how many characters make a token.
const tokenChars = 4

// estimate asks whether to begin.
func (a *analyst) estimate(todo []*analyzed) string {
	chars := 0
	for _, r := range todo {
		chars += min(r.chars, a.MaxChars)
	}
	known := ""
	if n := len(a.out.Conversations) - len(todo); n > 0 {
		known = fmt.Sprintf(" (%s answered before)", counted(n, "other"))
	}
	return fmt.Sprintf("Ask %s about %s%s? It will read about %s.", a.out.Model, counted(len(todo), "conversation"), known, counted(chars/tokenChars, "token"))
}

// askAll asks about each conversation. It stops when the model is not available, or its cap is reached.
func (a *analyst) askAll(ctx context.Context, t *terminal, todo []*analyzed) {
	bar := t.counter("asking " + a.out.Model)
	bar.ChangeMax(len(todo))
	defer func() { _ = bar.Finish() }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group errgroup.Group
	group.SetLimit(a.Parallel)
	for _, r := range todo {
		group.Go(func() error {
			if ctx.Err() != nil {
				r.Error = "not asked: " + context.Cause(ctx).Error()
				return nil
			}
			err := a.ask(ctx, r)
			_ = bar.Add(1)
			if err == nil {
				return nil
			}
			if ctx.Err() != nil { // another one found out, or the user ended it
				r.Error = "not answered: " + context.Cause(ctx).Error()
				return nil
			}
			r.Error = err.Error()
			if errors.Is(err, summary.ErrUnavailable) {
				stop(err)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// ask asks about one conversation and stores the answer.
func (a *analyst) ask(ctx context.Context, r *analyzed) error {
	query := parameters{"format": "markdown", "max_chars": a.MaxChars, "project_memory": "off", "strategy": window.StrategyLevels}
	if a.Task != "" { // search it for what the task is about
		query["strategy"], query["query"] = window.StrategyHybrid, a.Task
	}
	record, err := a.api.raw(ctx, http.MethodGet, conversation(r.Conversation, "/context"), query, "", nil)
	if err != nil {
		return err
	}
	answer, usage, err := a.model.Ask(ctx, a.question, string(record))
	a.mu.Lock()
	a.out.pay(usage)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	id := fmt.Sprintf("analysis/%s/%s/%d-%d", a.question.Hash(), a.out.Model, r.turns, r.chars)
	e, err := events.New(r.Conversation, analyzeSource, id, &events.InsightWritten{
		Task: a.question.Task, Answer: answer, Turns: r.turns, Chars: r.chars, Model: a.out.Model, PromptHash: a.question.Hash(),
	})
	if err != nil {
		return err
	}
	body, err := events.EncodeStructured(e)
	if err != nil {
		return err
	}
	var stored struct{ Seq uint64 }
	if err := a.api.post(ctx, "/v1/events", events.ContentTypeEvent, body, &stored); err != nil {
		return fmt.Errorf("the answer could not be stored: %w", err)
	}
	r.Answer, r.Seq = answer, stored.Seq
	return nil
}

// analyzeSource is the source of the events that hold the answers.
const analyzeSource = "mneme/analyze"

// reduce makes one answer of all: of as many at a time as fit into a record, until there is one.
func (a *analyst) reduce(ctx context.Context) error {
	var texts []string
	for _, r := range a.out.Conversations {
		if r.Answer != nil {
			raw, err := json.Marshal(r.Answer)
			if err != nil {
				return err
			}
			texts = append(texts, r.Conversation+": "+string(raw))
		}
	}
	over := a.question.Over()
	for len(texts) > 0 {
		var next []string
		for n := 0; len(texts) > 0; texts, n = texts[n:], 0 {
			size := 0
			for n < len(texts) && (n < 2 || size+len(texts[n]) <= a.MaxChars) { // two at least, so that it comes to an end
				size += len(texts[n])
				n++
			}
			answer, usage, err := a.model.Ask(ctx, over, strings.Join(texts[:n], "\n\n"))
			a.out.pay(usage)
			if err != nil {
				return fmt.Errorf("the answer over all: %w; the answers about the conversations are stored", err)
			}
			raw, err := json.Marshal(answer)
			if err != nil {
				return err
			}
			a.out.Over, next = answer, append(next, "several: "+string(raw))
		}
		if len(next) < 2 {
			return nil
		}
		texts = next
	}
	return nil
}

// failed returns an error if there are conversations without an answer.
func (a *analyst) failed(ctx context.Context) error {
	n := 0
	for _, r := range a.out.Conversations {
		if r.Answer == nil {
			n++
		}
	}
	if n == 0 {
		return ctx.Err()
	}
	return fmt.Errorf("%s of %s without an answer; run the command again to ask about these only", number(n), counted(len(a.out.Conversations), "conversation"))
}

// print prints the answers for people.
func (a *analyst) print(t *terminal) error {
	var out strings.Builder
	for _, r := range a.out.Conversations {
		out.WriteString(t.rule(console.Clean(strings.TrimSpace(r.Conversation+"  "+r.Title))) + "\n")
		if r.Answer == nil {
			out.WriteString("no answer: " + console.Clean(r.Error) + "\n\n")
			continue
		}
		a.write(&out, r.Answer)
	}
	if a.out.Over != nil {
		out.WriteString(t.rule("over all") + "\n")
		a.write(&out, a.out.Over)
	}
	if err := t.painted(out.String()); err != nil {
		return err
	}
	t.say("%s; %s to %s: %s read, %s written", counted(len(a.out.Conversations), "conversation"), counted(a.out.Calls, "call"), a.out.Model,
		counted(int(a.out.InputTokens), "token"), number(a.out.OutputTokens))
	return nil
}

// write writes an answer, its members in the order of the schema: texts, lists line by line, and anything else as JSON.
func (a *analyst) write(out *strings.Builder, answer map[string]json.RawMessage) {
	for _, name := range a.question.Members() {
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
