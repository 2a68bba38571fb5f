package httpapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/quota"
)

// share is the middleware that lets a tenant have only its share of the requests handled at the same time. It follows
// authorize, which sets the tenant of the token. Streams do not count, because they have limits of their own, and the
// list of quotas does not, so that an operator can always see who uses up the server.
func (a *api) share(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if a.Quotas == nil || slices.Contains([]string{"stream", "list-quotas"}, ctx.Operation().OperationID) {
			next(ctx)
			return
		}
		tenant, ok := tenantOf(ctx)
		if !ok {
			next(ctx)
			return
		}
		leave, err := a.Quotas.Enter(tenant, access.Routes[ctx.Operation().OperationID].Role == access.Read)
		if err != nil {
			a.writeRefusal(h, ctx, overQuota(err))
			return
		}
		defer leave()
		next(ctx)
	}
}

// defaultTenant is the tenant of requests that name none.
const defaultTenant = "default"

// tenantOf returns the tenant of a request; ok is false if its operation is about none or about all.
func tenantOf(ctx huma.Context) (tenant string, ok bool) {
	for _, p := range ctx.Operation().Parameters {
		if p.Name == "tenant" && p.In == "query" {
			r, _ := humago.Unwrap(ctx)
			if tenant = r.URL.Query().Get("tenant"); tenant == "" && p.Schema.Default != nil {
				tenant = defaultTenant
			}
			return tenant, tenant != "" // else it is about all
		}
	}
	return "", false
}

// take counts events that a tenant is about to publish, until the request ends. The error is a problem.
func (a *api) take(ctx context.Context, tenant string, list ...events.Event) error {
	if a.Quotas == nil {
		return nil
	}
	size := 0
	for i := range list {
		size += len(list[i].Data)
	}
	if makesRoom(list) {
		return a.pace(tenant, len(list), size)
	}
	settle, err := a.takeCounted(tenant, len(list), size)
	if err == nil {
		context.AfterFunc(ctx, settle)
	}
	return err
}

// takeCounted counts events that a tenant is about to publish, until settle. The error is a problem.
func (a *api) takeCounted(tenant string, count, size int) (settle func(), err error) {
	if settle, err = a.hold(tenant, count, size); err != nil {
		return nil, err
	}
	if err := a.pace(tenant, count, size); err != nil {
		settle()
		return nil, err
	}
	return settle, nil
}

// pace counts events against the tenant's quotas of a second. The error is a problem.
func (a *api) pace(tenant string, count, size int) error {
	if err := a.Quotas.Take(tenant, count, size); err != nil {
		a.Telemetry.Metrics.Refused("quota", count)
		return overQuota(err)
	}
	return nil
}

// makesRoom reports whether events are needed to get below a quota again: a tenant that may store no more
// can still delete a conversation.
func makesRoom(list []events.Event) bool {
	return len(list) == 1 && list[0].Type == events.TypeConversationDeleted
}

// hold counts events that a tenant is about to store. The error is a problem.
func (a *api) hold(tenant string, count, size int) (settle func(), err error) {
	if settle, err = a.Quotas.Hold(tenant, count, size); err != nil {
		a.Telemetry.Metrics.Refused("quota", count)
		return nil, huma.NewError(http.StatusInsufficientStorage, err.Error())
	}
	return settle, nil
}

// quotaError is the problem of a tenant that is over its quota.
type quotaError struct {
	*huma.ErrorModel
	after string // seconds
}

func overQuota(err error) *quotaError {
	after := time.Second
	if over, ok := errors.AsType[*quota.ExceededError](err); ok {
		after = over.After
	}
	model, _ := huma.NewError(http.StatusTooManyRequests, err.Error()).(*huma.ErrorModel)
	return &quotaError{model, wholeSeconds(after)}
}

// wholeSeconds returns a wait in the form of Retry-After.
func wholeSeconds(wait time.Duration) string {
	return strconv.Itoa(int(max(math.Ceil(wait.Seconds()), 1)))
}

// Unwrap returns the problem.
func (q *quotaError) Unwrap() error { return q.ErrorModel }

// GetHeaders says when to try again.
func (q *quotaError) GetHeaders() http.Header { return http.Header{"Retry-After": {q.after}} }
