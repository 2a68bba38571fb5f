package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/window/projects"
)

// namedIn are the parameters in the query that name a conversation, by operation. Those in a path are called id.
var namedIn = map[string]string{"list-conversations": "branch_of", "stream": "conversation", "list-failed": "conversation", "read-insights": "conversation"}

// ofLog are the operations that show events of conversations that the read model may not know.
var ofLog = map[string]bool{"stream": true, "list-failed": true}

// name is the middleware that replaces the short name of a conversation in a request by the id that it means. It comes
// first, so that rights, audit log and handlers are about that conversation. What is to be deleted must be named by its id:
// an id that never existed may be the short name of another conversation. An agent's own id of a session serves only reads of
// what is there: others give their conversations such ids, and their first write must not cost a search.
func (a *api) name(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, _ := humago.Unwrap(ctx)
		query := r.URL.Query()
		name, parameter := "", namedIn[ctx.Operation().OperationID]
		switch {
		case parameter != "":
			name = query.Get(parameter)
		case ctx.Method() != http.MethodDelete && strings.HasPrefix(ctx.Operation().Path, "/v1/conversations/{id}"):
			name = ctx.Param("id")
		}
		reads := (ctx.Method() == http.MethodGet || ctx.Method() == http.MethodHead) && !query.Has("at_least")
		if !projects.IsShort(name) && !(reads && projects.IsSession(name)) {
			next(ctx)
			return
		}
		reads = reads && !ofLog[ctx.Operation().OperationID]
		id, err := a.named(ctx.Context(), access.Of(ctx.Context()), cmp.Or(query.Get("tenant"), defaultTenant), name, reads)
		var several *view.AmbiguousError
		switch {
		case errors.As(err, &several):
			location := "path.id"
			if parameter != "" {
				location = "query." + parameter
			}
			a.writeRefusal(h, ctx, ambiguous(several, location))
			return
		case err != nil:
			a.writeRefusal(h, ctx, a.problem(err))
			return
		case parameter != "" && id != name:
			query.Set(parameter, id)
			r.URL.RawQuery = query.Encode()
		case parameter == "":
			r.SetPathValue("id", id)
		}
		next(ctx)
	}
}

// ambiguous returns the problem of a request in which a short name means several conversations.
func ambiguous(err *view.AmbiguousError, location string) error {
	return huma.Error422UnprocessableEntity(err.Error(), &huma.ErrorDetail{Location: location, Message: err.Summary(), Value: err.Name})
}

// named returns the id of the conversation that a short name means to the holder of a grant, nil if the server asks for no
// token. An id that mneme has events of is never taken for a short name, not even if its conversation was deleted. What only
// reads need not wait for the log, which knows of an id before the read model does: conversations can be read without NATS.
func (a *api) named(ctx context.Context, grant *access.Grant, tenant, name string, reads bool) (string, error) {
	if grant != nil && !grant.AllTenants {
		tenant = grant.Tenant
	}
	pins := a.pins(ctx)
	if grant != nil && grant.Project != "" {
		_, p, err := a.projectNow(ctx, tenant, grant.Project)
		if err != nil {
			return "", err
		}
		return pins.Named(ctx, tenant, name, &p)
	}
	whole := events.ConversationID{Tenant: tenant, ID: name}
	if seq, err := pins.Position(ctx, whole); err != nil || seq > 0 {
		return name, err
	}
	if deleted, err := a.deleted(ctx, whole); err != nil || deleted {
		return name, err
	}
	leave, err := a.views.Enter(ctx, tenant)
	if err != nil {
		return "", err
	}
	id, err := pins.Named(ctx, tenant, name, nil)
	leave()
	if reads || err == nil && id == name {
		return id, err
	}
	if seq, _, err := a.Log.Last(ctx, tenant, name); err != nil || seq > 0 {
		return name, err
	}
	return id, err
}
