package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/analysis"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary/llm"
)

// How many analyses run at once. Two of one tenant could pay for the same answers.
const (
	maxAnalyses    = 4
	tenantAnalyses = 1
)

// AnalysisRequest says what a model should do, with which conversations.
type AnalysisRequest struct {
	Task          string          `json:"task,omitempty" maxLength:"500" doc:"what the model should do with each conversation. Absent: say what the conversation was about, what it found and what it left to do; these answers appear in the context of the project"`
	Schema        json.RawMessage `json:"schema,omitempty" doc:"with task: the JSON Schema of an answer, an object, or only its properties. Absent: an answer in words"`
	Conversations []string        `json:"conversations,omitempty" minItems:"1" maxItems:"1000" doc:"these conversations; if absent, those that fit the following members"`
	Project       string          `json:"project,omitempty" maxLength:"512" doc:"only conversations of this project, or of the repository that this folder is in"`
	Tags          []string        `json:"tags,omitempty" maxItems:"100" doc:"only conversations with all of these tags"`
	Agent         string          `json:"agent,omitempty" maxLength:"512" doc:"only conversations of this agent"`
	Since         time.Time       `json:"since,omitzero" doc:"only conversations whose newest event is from this time or later"`
	Limit         int             `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"100" doc:"maximum number of conversations, those with the newest events"`
	MapReduce     bool            `json:"map_reduce,omitempty" doc:"then combine all answers into one, which is not stored"`
	MaxChars      int             `json:"max_chars,omitempty" minimum:"500" maximum:"1000000" default:"24000" doc:"how much of a conversation the model reads: a context that fits the task"`
	Parallel      int             `json:"parallel,omitempty" minimum:"1" maximum:"16" default:"4" doc:"how many conversations the model is asked about at the same time"`
	MaxCalls      int             `json:"max_calls,omitempty" minimum:"0" doc:"maximum number of model calls, repeated ones included; 0 for no limit"`
	MaxTokens     int64           `json:"max_tokens,omitempty" minimum:"0" doc:"stop asking once the model has read and written this many tokens; 0 for no limit"`
	DryRun        bool            `json:"dry_run,omitempty" doc:"do not ask: show what is known already, and the estimate"`
}

// AnalysisResult is what came of an analysis.
type AnalysisResult struct {
	Estimate analysis.Estimate `json:"estimate" doc:"made before the model was asked"`
	analysis.Outcome
	More bool `json:"more" doc:"more conversations than limit fit the request"`
}

// AnalysisProgress says how far an analysis is.
type AnalysisProgress struct {
	Done         int                `json:"done"`
	Of           int                `json:"of"`
	Conversation *analysis.Analyzed `json:"conversation"` // the last one that is done
}

type analyzeInput struct {
	TenantParam
	Body AnalysisRequest
}

func (a *api) registerAnalyze(h huma.API) {
	run := operation("analyze", http.MethodPost, "/v1/analyses", "Have a model do a task with many conversations", "summaries", 404, 409, 422, 503)
	run.Description = "The model is that of the process that answers. Each answer is stored as an event of its conversation, so it is paid for once: " +
		"the same request again asks only about conversations that have changed, or have no answer yet. If the client disconnects, the run ends, and the answers so far are kept. " +
		"The run also ends, with `stopped`, if the model does not answer, and at a cap or the tenant's quota of model calls. One analysis per tenant runs at a time, and 4 in all; more get 429."
	serve(a, h, run, a.analyze)
	watch := operation("watch-analyze", http.MethodPost, "/v1/analyses/stream", "Analyze, with progress", "summaries", 404, 409, 422, 503)
	watch.Description = "As POST /v1/analyses, as server-sent events: `event: estimate` before the model is asked, `event: progress` with each conversation that is done, and at the end `event: analyzed` with the answer, or `event: error`."
	watch.Responses = declareAnswer("The stream", contentTypeStream, &huma.Schema{Type: huma.TypeString})
	serve(a, h, watch, a.watchAnalyze)
}

func (a *api) analyze(ctx context.Context, in *analyzeInput) (*output[AnalysisResult], error) {
	r, err := a.newAnalysis(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := r.do(ctx, func(analysis.Estimate) {}); err != nil {
		return nil, err
	}
	return &output[AnalysisResult]{r.result()}, nil
}

func (a *api) watchAnalyze(ctx context.Context, in *analyzeInput) (*huma.StreamResponse, error) {
	r, err := a.newAnalysis(ctx, in)
	if err != nil {
		return nil, err
	}
	x := exchangeOf(ctx)
	x.streams = true
	return &huma.StreamResponse{Body: func(h huma.Context) {
		ctx, s := beginStream(h)
		var ping sync.WaitGroup
		ping.Go(func() { a.keepAlive(ctx, s, nil) }) // if the server stops, the run ends and reports that
		r.Progress = func(done, of int, last *analysis.Analyzed) {
			_ = s.sendJSON("progress", 0, AnalysisProgress{done, of, last})
		}
		if err := r.do(ctx, func(e analysis.Estimate) { _ = s.sendJSON("estimate", 0, e) }); err != nil {
			problem := a.problem(err)
			if status, ok := errors.AsType[huma.StatusError](problem); ok {
				x.told = status.GetStatus()
			}
			_ = s.sendJSON("error", 0, problem)
		} else {
			_ = s.sendJSON("analyzed", 0, r.result())
		}
		s.cancel()
		ping.Wait()
	}}, nil
}

// run is an analysis that the API does, and the memory that it reads.
type run struct {
	*analysis.Analyst
	a        *api
	tenant   string
	request  *AnalysisRequest
	estimate analysis.Estimate
	more     bool
}

// newAnalysis takes a place for an analysis until the request ends.
func (a *api) newAnalysis(ctx context.Context, in *analyzeInput) (*run, error) {
	if a.Model == nil {
		return nil, huma.Error409Conflict("no model is configured: set MNEME_SUMMARY_WRITER to openai or anthropic, and MNEME_LLM_MODEL, for the program that serves the API")
	}
	question, err := analysis.Question(in.Body.Task, string(in.Body.Schema))
	if err != nil {
		location := "body.schema"
		if len(in.Body.Schema) == 0 {
			location = "body.task"
		}
		return nil, huma.Error422UnprocessableEntity(err.Error(), &huma.ErrorDetail{Location: location, Message: err.Error()})
	}
	leave, ok := a.limits.analyses.TryEnter(in.Tenant)
	if !ok {
		return nil, huma.ErrorWithHeaders(huma.Error429TooManyRequests("an analysis of this tenant is running, or several of other tenants: try again later"), later())
	}
	x := exchangeOf(ctx)
	x.ended = append(x.ended, leave)
	r := &run{a: a, tenant: in.Tenant, request: &in.Body}
	r.Analyst = analysis.New(r, analysis.Run{
		Question: question, Model: a.Model, Over: in.Body.MapReduce, MaxChars: in.Body.MaxChars, Parallel: in.Body.Parallel, MaxCalls: in.Body.MaxCalls, MaxTokens: in.Body.MaxTokens,
	})
	return r, nil
}

// errServerStops ends analyses when the server stops.
var errServerStops = errors.New("the server is stopping: send the request again to continue")

// do does the analysis. It fails if the client went away, and if the tenant's quota allows no call.
func (r *run) do(parent context.Context, estimated func(analysis.Estimate)) error {
	ctx, cancel := context.WithCancelCause(r.a.Quotas.Spend(parent, r.tenant))
	defer cancel(nil)
	go func() {
		select {
		case <-r.a.stopping(ctx):
			cancel(errServerStops)
		case <-ctx.Done():
		}
	}()
	if err := r.Find(ctx); err != nil {
		if context.Cause(ctx) == errServerStops { //nolint:errorlint // it is not wrapped
			return huma.Error503ServiceUnavailable(errServerStops.Error())
		}
		return err
	}
	r.estimate = r.Estimate()
	estimated(r.estimate)
	if r.request.DryRun {
		return nil
	}
	r.Ask(ctx)
	var over *llm.Error
	switch {
	case parent.Err() != nil:
		return parent.Err()
	case r.Outcome().Calls == 0 && errors.Is(r.Cause(), llm.ErrOverQuota) && errors.As(r.Cause(), &over):
		model, _ := huma.NewError(http.StatusTooManyRequests, over.Reason).(*huma.ErrorModel)
		return &quotaError{model, wholeSeconds(time.Until(over.NotBefore))}
	}
	_ = r.Reduce(ctx) // the outcome says it
	return parent.Err()
}

func (r *run) result() AnalysisResult { return AnalysisResult{r.estimate, *r.Outcome(), r.more} }

// Conversations implements [analysis.Memory].
func (r *run) Conversations(ctx context.Context) (list []analysis.Conversation, err error) {
	tenant := TenantParam{r.tenant}
	for _, id := range r.request.Conversations {
		ctx, end := r.a.own(ctx) // one context for each read, because a read releases what it holds at the end of its context
		out, err := r.a.show(ctx, &showInput{ConversationParam: ConversationParam{tenant, id}})
		end()
		if err != nil {
			return nil, r.a.problem(err)
		}
		list = append(list, analysis.Conversation{ID: out.Body.ID, Title: out.Body.Title})
	}
	if len(list) > 0 {
		return list, nil
	}
	ctx, end := r.a.own(ctx)
	defer end()
	in := &listInput{TenantParam: tenant, Order: "activity", Tags: r.request.Tags, Agent: r.request.Agent, Project: r.request.Project, UpdatedAfter: r.request.Since}
	for {
		in.Limit = r.request.Limit - len(list)
		out, err := r.a.list(ctx, in)
		if err != nil {
			return nil, r.a.problem(err)
		}
		for _, c := range out.Body.Conversations {
			list = append(list, analysis.Conversation{ID: c.ID, Title: c.Title})
		}
		in.Cursor = out.Body.NextCursor
		if r.more = in.Cursor != "" && len(list) >= r.request.Limit; r.more || in.Cursor == "" {
			return list, nil
		}
	}
}

// Answers implements [analysis.Memory].
func (r *run) Answers(ctx context.Context, id string, yield func(*analysis.Answer)) (size analysis.Size, err error) {
	in := &analysesInput{ConversationParam: ConversationParam{TenantParam{r.tenant}, id}, Limit: maxAnswersRead}
	for {
		ctx, end := r.a.own(ctx)
		out, err := r.a.analyses(ctx, in)
		end()
		switch {
		case errors.Is(err, graph.ErrNotFound):
			return size, fmt.Errorf("%w: %w", analysis.ErrDeleted, r.a.problem(err))
		case err != nil:
			return size, r.a.problem(err)
		}
		if in.Cursor = out.Body.Each(&size, yield); in.Cursor == "" {
			return size, nil
		}
	}
}

// maxAnswersRead is how many stored answers are read at a time.
const maxAnswersRead = 200

// Record implements [analysis.Memory].
func (r *run) Record(ctx context.Context, id, query string, maxChars int) (string, error) {
	ctx, end := r.a.own(ctx)
	defer end()
	c, err := r.a.contextOf(ctx, &contextInput{
		ConversationParam: ConversationParam{TenantParam{r.tenant}, id},
		Query:             query, MaxChars: maxChars, Strategy: analysis.Strategy(query), ProjectMemory: "off",
	})
	if err != nil {
		return "", errors.New(r.a.explainTool(ctx, err))
	}
	return c.Markdown(), nil
}

// Deleted implements [analysis.Memory].
func (r *run) Deleted(ctx context.Context, id string) (bool, error) {
	of := events.ConversationID{Tenant: r.tenant, ID: id}
	r.a.deletions.forget(of)
	seq, err := r.a.deletions.seq(ctx, r.a.Log, of)
	if err != nil {
		return false, errors.New(r.a.explainTool(ctx, err))
	}
	return seq != 0, nil
}

// Store implements [analysis.Memory].
func (r *run) Store(ctx context.Context, e events.Event) (uint64, error) {
	settle, err := r.a.hold(r.tenant, 1, len(e.Data))
	if err != nil {
		return 0, errors.New(r.a.explainTool(ctx, err))
	}
	defer settle()
	ack, err := r.a.Log.Publish(ctx, r.tenant, e)
	if err != nil {
		return 0, errors.New(r.a.explainTool(ctx, err))
	}
	return ack.Seq, nil
}
