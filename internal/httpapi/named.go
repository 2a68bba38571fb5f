package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window/projects"
)

// shortest is the least length of a short name: that of an agent's session in a context. With fewer characters a mistyped id
// could change another conversation.
const shortest = 8

// name is the middleware that replaces a short name in the path by the id of the conversation that it means. It comes
// first, so that rights, audit log and handlers are about that conversation. What is to be deleted must be named by its id:
// an id that never existed may be the short name of another conversation.
func (a *api) name(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		name := ctx.Param("id")
		if ctx.Method() == http.MethodDelete || !strings.HasPrefix(ctx.Operation().Path, "/v1/conversations/{id}") || !isShort(name) {
			next(ctx)
			return
		}
		r, _ := humago.Unwrap(ctx)
		id, err := a.named(ctx.Context(), access.Of(ctx.Context()), cmp.Or(r.URL.Query().Get("tenant"), defaultTenant), name)
		if err != nil {
			writeRefusal(h, ctx, a.problem(err))
			return
		}
		r.SetPathValue("id", id)
		next(ctx)
	}
}

// isShort reports whether a name may be short for an id.
func isShort(name string) bool {
	return plain.Length(name) >= shortest && projects.ShortID(name) == name
}

// meant returns the id of the conversation that a caller means by an id or a short name.
func (a *api) meant(ctx context.Context, tenant, name string) (string, error) {
	if !isShort(name) {
		return name, nil
	}
	return a.named(ctx, access.Of(ctx), tenant, name)
}

// named returns the id of the conversation that a short name means to the holder of a grant, nil if the server asks for no
// token. An id that the log has events of is never taken for a short name, not even if its conversation was deleted. The log
// is asked only about an id that the read model does not know, because conversations can be read without NATS.
func (a *api) named(ctx context.Context, grant *access.Grant, tenant, name string) (string, error) {
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
	if seq, err := pins.Position(ctx, events.ConversationID{Tenant: tenant, ID: name}); err != nil || seq > 0 {
		return name, err
	}
	if seq, _, err := a.Log.Last(ctx, tenant, name); err != nil || seq > 0 {
		return name, err
	}
	leave, err := a.views.Enter(ctx, tenant)
	if err != nil {
		return "", err
	}
	defer leave()
	return pins.Named(ctx, tenant, name, nil)
}
