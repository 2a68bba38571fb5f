package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/plain"
)

// ToolCall is a tool call as the API shows it. Extent is that of the arguments.
type ToolCall struct {
	Row
	ToolCallID string          `json:"tool_call_id"`
	MessageID  string          `json:"message_id,omitempty" doc:"the message to which the call says it belongs"`
	ToolName   string          `json:"tool_name"`
	Arguments  json.RawMessage `json:"arguments,omitempty" doc:"JSON; if truncated, a string with its beginning"`
	Extent
	Iteration int         `json:"iteration,omitempty"`
	Result    *ToolResult `json:"result,omitempty" doc:"absent until there is one"`
}

// ToolResult is a tool result as the API shows it. Extent is that of the result.
type ToolResult struct {
	Row
	ToolCallID string `json:"tool_call_id"`
	Success    *bool  `json:"success" doc:"null if it is unknown"`
	NotRun     string `json:"not_run,omitempty" enum:"refused,cancelled" doc:"why a call that did not succeed did not even run: the user refused it, or the agent cancelled it because another call of the step failed; absent if it ran"`
	Result     string `json:"result" doc:"the text, or JSON as text"`
	Extent
	Error      string   `json:"error,omitempty"`
	DurationMS *float64 `json:"duration_ms,omitempty"`
}

func showUse(u graph.ToolUse) ToolCall {
	c := u.Call
	shown := ToolCall{
		Row: rowOf(c.Position, c.Origin), ToolCallID: c.ToolCallID, MessageID: c.MessageID, ToolName: c.ToolName,
		Arguments: json.RawMessage(c.Arguments.Text), Extent: extentOf(c.Arguments), Iteration: c.Iteration,
	}
	if shown.Truncated {
		shown.Arguments, _ = json.Marshal(c.Arguments.Text) // cannot fail for a string
	}
	if u.Result != nil {
		shown.Result = new(showResult(*u.Result))
	}
	return shown
}

func showResult(r graph.ToolResult) ToolResult {
	return ToolResult{
		Row: rowOf(r.Position, r.Origin), ToolCallID: r.ToolCallID, Success: r.Success, NotRun: notRun(&r), Result: r.Result.Text, Extent: extentOf(r.Result),
		Error: r.Error, DurationMS: r.DurationMS,
	}
}

// notRun says why a call did not run, "" if it did.
func notRun(r *graph.ToolResult) string {
	if r.Success == nil || *r.Success {
		return ""
	}
	text := cmp.Or(r.Error, r.Result.Text)
	if _, refused := harness.Refusal(text); refused {
		return "refused"
	}
	if harness.NotRun(text) {
		return "cancelled"
	}
	return ""
}

type callsInput struct {
	RowsParams
	TurnParam
	Tool    string `query:"tool" doc:"only calls of the tool with this name"`
	Success string `query:"success" enum:"true,false,unknown,pending" doc:"unknown: the result does not say; pending: there is no result"`
}

type callsOutput struct {
	Body struct {
		ToolCalls  []ToolCall `json:"tool_calls"`
		NextCursor string     `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

type callInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	ToolCallID string `path:"tool_call_id" doc:"percent-encoded"`
}

func (a *api) registerToolCalls(h huma.API) {
	list := operation("list-tool-calls", http.MethodGet, "/v1/conversations/{id}/tool-calls", "List the tool calls of a conversation with their results", "tool calls", 404, 422, 503, 504)
	list.Description = pagesDoc
	serve(a, h, list, a.toolCalls)
	show := operation("show-tool-call", http.MethodGet, "/v1/conversations/{id}/tool-calls/{tool_call_id}", "Show a tool call and its result with their full texts", "tool calls", 404, 422, 503, 504)
	serve(a, h, show, a.toolCall)
}

func (a *api) toolCalls(ctx context.Context, in *callsInput) (*callsOutput, error) {
	q, scope, g, err := a.rows(ctx, &in.RowsParams, "list-tool-calls", in.TurnParam.filter(), in.Tool, in.Success)
	if err != nil {
		return nil, err
	}
	page, err := graph.ToolCalls(ctx, g, in.id(), graph.CallQuery{
		ListQuery: q, Tool: in.Tool, Outcome: graph.Outcome(in.Success), Turn: in.Turn.pointer(),
	})
	if err != nil {
		return nil, err
	}
	out := &callsOutput{}
	out.Body.ToolCalls = each(page.Rows, showUse)
	out.Body.NextCursor = scope.next(page.Next)
	return out, nil
}

func (a *api) toolCall(ctx context.Context, in *callInput) (*output[ToolCall], error) {
	g, err := a.graph(ctx, in.id(), in.WaitParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	ref := graph.Ref{ID: in.ToolCallID}
	calls, err := g.Calls(ctx, in.id(), []graph.Ref{ref}, in.seq())
	if err != nil {
		return nil, err
	}
	call, ok := calls[ref]
	if !ok {
		return nil, fmt.Errorf("tool call %q of conversation %q: %w", in.ToolCallID, in.ID, graph.ErrNotFound)
	}
	results, err := g.Results(ctx, in.id(), []graph.Ref{call.Ref()}, in.seq())
	if err != nil {
		return nil, err
	}
	u := graph.ToolUse{Call: call}
	if !call.Arguments.Recorded() {
		p, err := source[*events.ToolCalled](ctx, a, in.Tenant, call.Position, call.Origin)
		if err == nil {
			u.Call.Arguments, err = whole(call.Arguments, p.Text(), call.Seq)
		}
		if err != nil {
			return nil, err
		}
	}
	if r, ok := results[call.Ref()]; ok {
		u.Result = &r
		if !r.Result.Recorded() || len(r.Error) > graph.MaxBodyBytes-utf8.UTFMax || plain.HasName(r.Error) { // the error may have been cut, or not be as recorded
			p, err := source[*events.ToolReturned](ctx, a, in.Tenant, r.Position, r.Origin)
			if err == nil {
				r.Error = p.Error
				r.Result, err = whole(r.Result, p.Text(), r.Seq)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return &output[ToolCall]{Body: showUse(u)}, nil
}
