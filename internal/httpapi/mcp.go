package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/mcp"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/window"
)

// agents returns the tools for agents. They read through the same views as the operations, but are not operations:
// agents find them by the Model Context Protocol, not in the OpenAPI document.
func (a *api) agents() http.Handler {
	return mcp.New(mcp.Config{
		Log: a.Log, Views: a.views, Cache: a.Cache, Build: a.build, Earlier: a.earlierForAgents, Condense: a.Condense, Logger: a.Logger,
		Explain: a.explainTool, Refuse: writeProblem, Called: a.Telemetry.Metrics.ToolCalled,
		Admit: a.takeCounted, Enter: a.enterCall, Subscribe: a.limits.subscriptions.TryEnter, Stopping: a.stopping, Audit: a.auditCall,
	})
}

// earlierForAgents returns what the context of a tool shows of earlier sessions: the same as the operation would.
func (a *api) earlierForAgents(ctx context.Context, pins *view.Pins, v *view.View, maxChars int) (window.Earlier, error) {
	if a.ProjectMemoryOff {
		return nil, nil
	}
	e, _, err := a.earlier(ctx, pins, v, maxChars)
	return e, err
}

// enterCall waits for one of the places for calls of tools. To the tenant's quota each call is a read: only one tool
// writes.
func (a *api) enterCall(ctx context.Context, tenant string) (leave func(), err error) {
	left, err := a.Quotas.Enter(tenant, true)
	if err != nil {
		return nil, overQuota(err)
	}
	queued, cancel := context.WithTimeout(ctx, maxCallQueued)
	defer cancel()
	leaveCalls, err := a.limits.calls.Enter(queued, tenant)
	if err != nil {
		left()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, busy()
	}
	return func() {
		leaveCalls()
		left()
	}, nil
}

// explainTool returns what the problem document for an error would say, and logs its cause.
func (a *api) explainTool(ctx context.Context, err error) string {
	err = a.problem(err)
	if hidden, ok := errors.AsType[*failure](err); ok {
		a.outage.log(ctx, a.Logger, hidden.cause, "tool call failed")
	}
	if model, ok := errors.AsType[*huma.ErrorModel](err); ok {
		return model.Detail
	}
	return err.Error()
}
