package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/pkg/graph"
)

// Turn is a turn as the API shows it.
type Turn struct {
	Number          int      `json:"number" doc:"counts from 1; turn 0 is everything before the first user message"`
	UserMessage     *Message `json:"user_message,omitempty" doc:"the message that begins the turn; turn 0 has none"`
	FirstSeq        uint64   `json:"first_seq"`
	LastSeq         uint64   `json:"last_seq" doc:"sequence of its newest event"`
	Time            string   `json:"time,omitempty" doc:"time of the user message, RFC 3339"`
	MessageCount    int      `json:"message_count"`
	StepCount       int      `json:"step_count" doc:"assistant messages"`
	ToolCallCount   int      `json:"tool_call_count"`
	ToolResultCount int      `json:"tool_result_count"`
	TotalChars      int      `json:"total_chars" doc:"code points of all message contents"`
}

func showTurn(t graph.Turn) Turn {
	shown := Turn{
		Number: t.Number, FirstSeq: t.FirstSeq, LastSeq: t.Counts.LastSeq, MessageCount: t.Counts.MessageCount, StepCount: t.Counts.StepCount,
		ToolCallCount: t.Counts.ToolCallCount, ToolResultCount: t.Counts.ToolResultCount, TotalChars: t.Counts.TotalChars,
	}
	if t.User != nil {
		m := showMessage(*t.User, false)
		shown.UserMessage, shown.Time = &m, m.Time
	}
	return shown
}

// Step is a step as the API shows it.
type Step struct {
	Turn      int          `json:"turn"`
	Number    int          `json:"number" doc:"number of assistant messages of the conversation up to here"`
	Message   *Message     `json:"message,omitempty" doc:"the assistant message; absent for calls before the first one of a turn, or if the message is on the previous or next page"`
	ToolCalls []ToolCall   `json:"tool_calls" doc:"the calls that follow the message, in order, with their results"`
	Results   []ToolResult `json:"results,omitempty" doc:"results without a known call"`
	Continued bool         `json:"continued,omitempty" doc:"the page ended within the step: if the next page begins with the same turn and number, it continues this step"`
}

type turnsInput struct{ RowsParams }

type turnsOutput struct {
	Body struct {
		Turns      []Turn `json:"turns"`
		NextCursor string `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

type stepsInput struct {
	RowsParams
	TurnParam
	Reasoning bool `query:"include_reasoning" doc:"include the model's thinking"`
}

type stepsOutput struct {
	Body struct {
		Steps      []Step `json:"steps"`
		NextCursor string `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

func (a *api) registerTurns(h huma.API) {
	turns := operation("list-turns", http.MethodGet, "/v1/conversations/{id}/turns", "List the turns of a conversation", "turns", 404, 422, 503, 504)
	turns.Description = "A turn is a user message and everything up to the next one. " + pagesDoc
	serve(a, h, turns, a.turns)
	steps := operation("list-steps", http.MethodGet, "/v1/conversations/{id}/steps", "List the steps of a conversation or of a turn", "turns", 404, 422, 503, 504)
	steps.Description = "A step is an assistant message with the calls that follow it in the log, up to the next assistant or user message. A call's message_id may name a different message. Every call is in exactly one step. " + pagesDoc
	serve(a, h, steps, a.steps)
}

func (a *api) turns(ctx context.Context, in *turnsInput) (*turnsOutput, error) {
	_, turns, next, err := a.turnsPage(ctx, "list-turns", &in.RowsParams)
	if err != nil {
		return nil, err
	}
	out := &turnsOutput{}
	out.Body.Turns, out.Body.NextCursor = each(turns, showTurn), next
	return out, nil
}

// turnsPage reads a page of turns for an operation, and returns the view it read and the cursor of the
// next page.
func (a *api) turnsPage(ctx context.Context, operation string, in *RowsParams) (g graph.Reader, turns []graph.Turn, next string, err error) {
	q, scope, g, err := a.rows(ctx, in, operation)
	if err != nil {
		return nil, nil, "", err
	}
	found, err := graph.Turns(ctx, g, in.id(), q)
	if err != nil {
		return nil, nil, "", err
	}
	return g, found.Rows, scope.next(found.Next), nil
}

func (a *api) steps(ctx context.Context, in *stepsInput) (*stepsOutput, error) {
	q, scope, g, err := a.rows(ctx, &in.RowsParams, "list-steps", in.TurnParam.filter())
	if err != nil {
		return nil, err
	}
	page, err := graph.Steps(ctx, g, in.id(), graph.StepQuery{ListQuery: q, Turn: in.Turn.pointer()})
	if err != nil {
		return nil, err
	}
	out := &stepsOutput{}
	out.Body.Steps = each(page.Rows, func(s graph.Step) Step {
		shown := Step{Turn: s.Turn, Number: s.Number, ToolCalls: each(s.Calls, showUse), Continued: s.Continued}
		if s.Message != nil {
			shown.Message = new(showMessage(*s.Message, in.Reasoning))
		}
		if len(s.Results) > 0 {
			shown.Results = each(s.Results, showResult)
		}
		return shown
	})
	out.Body.NextCursor = scope.next(page.Next)
	return out, nil
}
