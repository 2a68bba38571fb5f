package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/summarizer"
	"mneme.dev/mneme/pkg/graph"
)

// Summary is a summary as the API shows it.
type Summary struct {
	Row
	SummaryID    string   `json:"summary_id"`
	Level        int      `json:"level" doc:"level 1 summarizes turns, each higher level the summaries of the level below"`
	FirstSeq     uint64   `json:"first_seq" doc:"first sequence of the range that it covers"`
	LastSeq      uint64   `json:"last_seq"`
	FirstTurn    int      `json:"first_turn"`
	LastTurn     int      `json:"last_turn"`
	TurnCount    int      `json:"turn_count"`
	Children     []string `json:"children" doc:"the summaries that it consolidates, oldest first; none at level 1, which covers messages"`
	Supersedes   string   `json:"supersedes,omitempty" doc:"the older revision of the same range"`
	Conversation string   `json:"conversation" doc:"what was said"`
	Actions      string   `json:"actions,omitempty" doc:"what was done"`
	Findings     []string `json:"findings"`
	Topics       []string `json:"topics"`
	Files        []string `json:"files"`
	Tools        []string `json:"tools"`
	Method       string   `json:"method" enum:"llm,extractive"`
	Fallback     string   `json:"fallback_reason,omitempty" doc:"why the configured model did not write it"`
	Model        string   `json:"model,omitempty"`
	PromptHash   string   `json:"prompt_hash,omitempty"`
	CharsIn      int      `json:"chars_in" doc:"characters of the text that it summarizes"`
	CharsOut     int      `json:"chars_out" doc:"characters of its text in a context"`
	Frontier     bool     `json:"frontier" doc:"no higher summary consolidates it"`
	Superseded   bool     `json:"superseded" doc:"there is a newer revision"`
}

func showSummary(s graph.Summary) Summary {
	same := func(text string) string { return text }
	return Summary{
		Row: rowOf(s.Position, s.Origin), SummaryID: s.SummaryID, Level: s.Level, FirstSeq: s.FirstSeq, LastSeq: s.LastSeq, FirstTurn: s.FirstTurn, LastTurn: s.LastTurn,
		TurnCount: s.TurnCount, Children: each(s.Children, same), Supersedes: s.Supersedes, Conversation: s.Conversation, Actions: s.Actions,
		Findings: each(s.Findings, same), Topics: each(s.Topics, same), Files: each(s.Files, same), Tools: each(s.Tools, same),
		Method: s.Method, Fallback: s.FallbackReason, Model: s.Model, PromptHash: s.PromptHash, CharsIn: s.CharsIn, CharsOut: s.CharsOut,
		Frontier: s.ConsolidatedSeq == 0, Superseded: s.SupersededSeq != 0,
	}
}

type summariesInput struct {
	RowsParams
	Level      int  `query:"level" minimum:"0" maximum:"1000" doc:"only of this level; 0 means all"`
	Frontier   bool `query:"frontier" doc:"only those that no higher summary consolidates"`
	Superseded bool `query:"superseded" doc:"older revisions too"`
}

type summariesOutput struct {
	Body struct {
		Summaries  []Summary `json:"summaries" doc:"in the order in which they were written"`
		NextCursor string    `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

type summaryInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	SummaryID string `path:"summary_id" doc:"percent-encoded"`
}

// SummarizeParams name the conversation to summarize.
type SummarizeParams struct {
	ConversationParam
	WaitMS int `query:"wait_ms" minimum:"1" maximum:"600000" default:"120000" doc:"how long to wait for the result, in milliseconds; the work continues after that"`
}

type resummarizeInput struct {
	SummarizeParams
	Level     int  `query:"level" minimum:"0" maximum:"1000" doc:"only summaries of this level; 0 means all"`
	Fallbacks bool `query:"fallbacks" doc:"only summaries that a model should have written but did not"`
}

type summarizeOutput struct {
	Status int
	Body   Summarized
}

// Summarized is the summarizer's answer to a request.
type Summarized struct {
	Written []string `json:"written" doc:"summary_ids, or tool_call_ids of the results that were condensed; empty if there was nothing to do"`
	Kept    int      `json:"kept" doc:"number of summaries that the model could not rewrite; they stay as they are"`
	Pending bool     `json:"pending,omitempty" doc:"wait_ms was too short; the work continues, and the rest of this answer is not known yet"`
}

func (a *api) registerSummaries(h huma.API) {
	list := operation("list-summaries", http.MethodGet, "/v1/conversations/{id}/summaries", "List the summaries of a conversation", "summaries", 404, 422, 503, 504)
	list.Description = pagesDoc
	serve(a, h, list, a.summaries)
	serve(a, h, operation("show-summary", http.MethodGet, "/v1/conversations/{id}/summaries/{summary_id}", "Show a summary and what it covers", "summaries", 404, 422, 503, 504), a.summary)
	now := operation("summarize", http.MethodPost, "/v1/conversations/{id}/summarize", "Summarize a conversation now", "summaries", 404, 409, 422, 503)
	now.Description = "Writes the summaries that are due, and one for everything else that no summary covers, except the last turns."
	serve(a, h, mayGoOn(h, now), a.summarize)
	again := operation("resummarize", http.MethodPost, "/v1/conversations/{id}/resummarize", "Write summaries again", "summaries", 404, 409, 422, 503)
	again.Description = "Writes a new revision of each summary, which replaces the older one; the log keeps both."
	serve(a, h, mayGoOn(h, again), a.resummarize)
	shorter := operation("condense", http.MethodPost, "/v1/conversations/{id}/condense", "Have a model condense large tool results", "summaries", 404, 409, 422, 503)
	shorter.Description = "Contexts then show the shorter text; log and graph keep the results as they are."
	serve(a, h, mayGoOn(h, shorter), a.condense)
}

// mayGoOn declares the answer to a request whose work takes longer than the request waits.
func mayGoOn(h huma.API, op huma.Operation) huma.Operation {
	schema := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Summarized](), true, "Summarized")
	op.Description += " If that takes longer than wait_ms, the answer is 202 and the work continues."
	op.Responses = map[string]*huma.Response{"202": {Description: "Not done yet; the work continues", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}}
	return op
}

func (a *api) summaries(ctx context.Context, in *summariesInput) (*summariesOutput, error) {
	q, scope, g, err := a.rows(ctx, &in.RowsParams, "list-summaries", fmt.Sprint(in.Level, in.Frontier, in.Superseded))
	if err != nil {
		return nil, err
	}
	query := graph.SummaryQuery{AsOf: q.AsOf, Level: in.Level, Frontier: in.Frontier, Superseded: in.Superseded, Limit: in.Limit + 1, OldestFirst: q.OldestFirst}
	if q.OldestFirst {
		query.From = q.Start
	} else {
		query.Before = q.Start
	}
	rows, err := g.Summaries(ctx, in.id(), query)
	if err != nil {
		return nil, err
	}
	out := &summariesOutput{}
	if len(rows) > in.Limit {
		next := rows[in.Limit].Seq
		if !q.OldestFirst {
			next++
		}
		out.Body.NextCursor = scope.next(next)
		rows = rows[:in.Limit]
	}
	out.Body.Summaries = each(rows, showSummary)
	return out, nil
}

func (a *api) summary(ctx context.Context, in *summaryInput) (*output[Summary], error) {
	g, err := a.graph(ctx, in.id(), in.WaitParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	found, err := g.SummariesByID(ctx, in.id(), []string{in.SummaryID}, in.seq())
	if err != nil {
		return nil, err
	}
	s, ok := found[in.SummaryID]
	if !ok {
		return nil, fmt.Errorf("summary %q of conversation %q: %w", in.SummaryID, in.ID, graph.ErrNotFound)
	}
	return &output[Summary]{Body: showSummary(s)}, nil
}

func (a *api) summarize(ctx context.Context, in *SummarizeParams) (*summarizeOutput, error) {
	return a.ask(ctx, in, summarizer.Request{Do: summarizer.Summarize})
}

func (a *api) resummarize(ctx context.Context, in *resummarizeInput) (*summarizeOutput, error) {
	return a.ask(ctx, &in.SummarizeParams, summarizer.Request{Do: summarizer.Resummarize, Level: in.Level, Fallbacks: in.Fallbacks})
}

func (a *api) condense(ctx context.Context, in *SummarizeParams) (*summarizeOutput, error) {
	return a.ask(ctx, in, summarizer.Request{Do: summarizer.Condense})
}

// takeover is how long a partition may lack a summarizer while it moves to another process,
// or while a summarizer starts.
const takeover = 4 * time.Second

// ask sends a request to the summarizer, in whichever process it runs.
func (a *api) ask(ctx context.Context, in *SummarizeParams, q summarizer.Request) (*summarizeOutput, error) {
	if err := a.exists(ctx, in.id()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(in.WaitMS)*time.Millisecond)
	defer cancel()
	q.Tenant, q.Conversation = in.Tenant, in.ID
	answer, err := summarizer.Ask(ctx, a.Log, q)
	for began := time.Now(); errors.Is(err, summarizer.ErrNobody) && time.Since(began) < takeover && ctx.Err() == nil; {
		select {
		case <-time.After(takeover / 20):
			answer, err = summarizer.Ask(ctx, a.Log, q)
		case <-ctx.Done():
		}
	}
	switch {
	case errors.Is(err, summarizer.ErrNobody), errors.Is(err, summarizer.ErrBusy):
		return nil, huma.Error503ServiceUnavailable(err.Error())
	case errors.Is(err, summarizer.ErrUnknown):
		return nil, huma.Error404NotFound(err.Error())
	case errors.Is(err, summarizer.ErrNoModel):
		set := "; set MNEME_SUMMARY_WRITER and MNEME_LLM_MODEL"
		if q.Do == summarizer.Condense {
			set += ", or only MNEME_CONDENSE_LLM_MODEL,"
		}
		return nil, huma.Error409Conflict(err.Error() + set + " of mneme up or summarizer")
	case errors.Is(err, summarizer.ErrOff):
		return nil, huma.Error409Conflict(err.Error() + "; MNEME_SUMMARY_WRITER of the summarizer, or of the conversation's profile, is off")
	case errors.Is(err, context.DeadlineExceeded):
		return &summarizeOutput{Status: http.StatusAccepted, Body: Summarized{Written: []string{}, Pending: true}}, nil
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, huma.Error503ServiceUnavailable(fmt.Sprintf("%v; %d were written before", err, len(answer.Written)))
	}
	return &summarizeOutput{Status: http.StatusOK, Body: Summarized{Written: answer.Written, Kept: answer.Kept}}, nil
}
