package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/mcp"
)

// agents returns the tools for agents. They read through the same views as the operations, but are not operations:
// agents find them by the Model Context Protocol, not in the OpenAPI document.
func (a *api) agents() http.Handler {
	return mcp.New(mcp.Config{
		Log: a.Log, Views: a.views, Cache: a.Cache, Build: a.build, Condense: a.Condense, Logger: a.Logger,
		Explain: a.explainTool, Refuse: writeProblem, Called: a.Telemetry.Metrics.ToolCalled,
		Admit: a.takeCounted, Enter: a.enterCall, Subscribe: a.limits.subscriptions.enter, Stopping: a.stopping, Audit: a.auditCall,
	})
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
	var hidden *failure
	if errors.As(err, &hidden) {
		a.outage.log(ctx, a.Logger, hidden.cause, "tool call failed")
	}
	var model *huma.ErrorModel
	if errors.As(err, &model) {
		return model.Detail
	}
	return err.Error()
}
