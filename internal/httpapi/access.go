package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
)

// tokenScheme is the name of the security scheme in the OpenAPI document.
const tokenScheme = "token"

// security says that an operation takes a token, or none if the server asks for none.
var security = []map[string][]string{{tokenScheme: {}}, {}}

// declareAccess returns what the OpenAPI document says about the rights that an operation
// needs. It panics if the table has no entry for it.
func declareAccess(id string) map[string]any {
	need, ok := access.Routes[id]
	if !ok {
		panic("access.Routes does not say what the operation " + id + " needs")
	}
	declared := map[string]any{"role": need.Role.String(), "scope": string(need.Scope), "audit": string(need.Audit)}
	if need.Note != "" {
		declared["note"] = need.Note
	}
	return map[string]any{"x-mneme-access": declared}
}

// Route is an operation of the API.
type Route struct{ ID, Method, Path string }

// Routes lists all operations, by path.
func Routes() []Route {
	a := &api{Config: Config{Cache: &view.Cache{}, Rebuilds: struct{ Rebuilds }{}, Erasures: struct{ Erasures }{}}, limits: newLimits()}
	var list []Route
	for op := range operations(a.register(http.NewServeMux())) {
		list = append(list, Route{op.OperationID, op.Method, op.Path})
	}
	slices.SortFunc(list, func(a, b Route) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return list
}

// public serves a path that needs no token. It panics if the table does not list it.
func public(mux *http.ServeMux, path string, handler http.HandlerFunc) {
	if !isOpen(path) {
		panic("access.Open does not list " + path)
	}
	if path == "/" {
		path = "/{$}" // to the mux, a slash alone would be every path
	}
	mux.HandleFunc("GET "+path, handler)
}

// isOpen reports whether a path needs no token.
func isOpen(path string) bool {
	if _, open := access.Open[path]; open {
		return true
	}
	end := strings.LastIndexByte(path, '/')
	_, open := access.Open[path[:end+1]+"*"]
	return open
}

// refuse answers a request whose sender is not known.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, detail := http.StatusUnauthorized, err.Error()
	challenge := a.challenge(r)
	switch {
	case errors.Is(err, access.ErrNoToken):
		detail += "; " + a.tokenSource()
		w.Header().Set("WWW-Authenticate", challenge)
	case errors.Is(err, access.ErrUnavailable):
		if status = http.StatusServiceUnavailable; errors.Is(err, access.ErrTooMany) {
			status = http.StatusTooManyRequests // whoever guesses tokens must not look like a failure of the server
		}
		w.Header().Set("Retry-After", later().Get("Retry-After"))
	case errors.Is(err, access.ErrOtherOrigin):
		status = http.StatusForbidden
	case errors.Is(err, access.ErrNothing):
		status = http.StatusForbidden
		w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`)
	default: // without the reason, which would help to guess
		detail = "the token is not valid: it may be mistyped, revoked or expired; " + a.tokenSource()
		w.Header().Set("WWW-Authenticate", challenge+`, error="invalid_token"`)
	}
	writeProblem(w, status, detail)
}

// tokenSource says where tokens come from.
func (a *api) tokenSource() string {
	if a.Gate.Tokens == nil {
		return "this server accepts tokens of its identity provider, " + a.Gate.Issuer
	}
	return "mneme tokens create makes one"
}

// authorize is the middleware that lets a request pass if, by the table, its grant may do
// the operation. Tenant and project come from the grant: a parameter that names another one
// is refused, and one that is absent is filled in.
func (a *api) authorize(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if a.Gate == nil {
			next(ctx)
			return
		}
		if err := a.allow(ctx); err != nil {
			var status huma.StatusError
			if !errors.As(err, &status) {
				err = a.problem(err)
			}
			if errors.As(err, &status) && status.GetStatus() == http.StatusForbidden {
				ctx.SetHeader("WWW-Authenticate", `Bearer realm="mneme", error="insufficient_scope"`)
				a.auditRefusal(ctx, status.GetStatus())
			}
			a.writeRefusal(h, ctx, err)
			return
		}
		next(ctx)
	}
}

// writeRefusal writes the problem of a middleware, with its headers and its line in the log, as huma does for a handler's error.
func (a *api) writeRefusal(h huma.API, ctx huma.Context, err error) {
	if headed, ok := errors.AsType[huma.HeadersError](err); ok {
		for name := range headed.GetHeaders() {
			ctx.SetHeader(name, headed.GetHeaders().Get(name))
		}
	}
	if hidden, ok := errors.AsType[*failure](err); ok {
		_, _ = a.logFailure(ctx, "", hidden)
	}
	var model *huma.ErrorModel
	if !errors.As(err, &model) {
		_ = huma.WriteErr(h, ctx, http.StatusInternalServerError, "the rights of this token could not be checked")
		return
	}
	details := make([]error, len(model.Errors))
	for i, e := range model.Errors {
		details[i] = e
	}
	_ = huma.WriteErr(h, ctx, model.Status, model.Detail, details...)
}

func (a *api) allow(ctx huma.Context) error {
	grant, op := access.Of(ctx.Context()), ctx.Operation()
	need, listed := access.Routes[op.OperationID]
	if grant == nil || !listed {
		return huma.Error403Forbidden("nothing allows this request")
	}
	if !need.Allows(grant.Rights) {
		return forbidden(missing(need, grant), "")
	}
	if grant.AllTenants {
		return nil
	}
	r, _ := humago.Unwrap(ctx)
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil //nolint:nilerr // the next middleware refuses it
	}
	bound := map[string]string{"tenant": grant.Tenant}
	if grant.Project != "" {
		bound["project"] = grant.Project
	}
	for _, p := range op.Parameters {
		value, ok := bound[p.Name]
		if !ok || p.In != "query" {
			continue
		}
		for _, given := range query[p.Name] {
			if given != value {
				return forbidden(fmt.Sprintf("the token is only for the %s %q: leave the parameter %s out", p.Name, value, p.Name), "query."+p.Name)
			}
		}
		if len(query[p.Name]) == 0 {
			query.Set(p.Name, value)
		}
	}
	r.URL.RawQuery = query.Encode()
	if grant.Project != "" {
		return a.onlyProject(ctx, grant)
	}
	return nil
}

// onlyProject refuses a conversation that does not belong to the grant's project, as if it did
// not exist, and every other project.
func (a *api) onlyProject(ctx huma.Context, grant *access.Grant) error {
	if named := ctx.Param("project"); named != "" && named != grant.Project {
		return forbidden(fmt.Sprintf("the token is only for the project %q", grant.Project), "path.project")
	}
	id := ctx.Param("id")
	if id == "" {
		return nil // a list, which the parameter project restricts
	}
	r, p, err := a.projectNow(ctx.Context(), grant.Tenant, grant.Project)
	if err != nil {
		return err
	}
	belongs, err := project.Among(ctx.Context(), r, p, []events.ConversationID{{Tenant: grant.Tenant, ID: id}})
	if err != nil {
		return err
	}
	if !belongs[0] {
		return fmt.Errorf("%w: project %q has no conversation %q", graph.ErrNotFound, grant.Project, id)
	}
	return nil
}

// missing says which rights a grant lacks.
func missing(need access.Need, grant *access.Grant) string {
	switch {
	case grant.Role < need.Role:
		return fmt.Sprintf("this needs the role %s, and the token has %s", need.Role, grant.Role)
	case need.Scope == access.Across:
		return "this concerns all tenants, but the token is for one: use one made with mneme tokens create --all-tenants"
	}
	return fmt.Sprintf("the token is only for the project %q, but this concerns the whole tenant", grant.Project)
}

func forbidden(detail, location string) error {
	if location == "" {
		return huma.Error403Forbidden(detail)
	}
	return huma.Error403Forbidden(detail, &huma.ErrorDetail{Location: location, Message: "is not allowed to this token"})
}

// bindTenant fills in the tenant of a body from the grant, and refuses another one.
func bindTenant(ctx context.Context, tenant *string, location string) error {
	grant := access.Of(ctx)
	if grant == nil || grant.AllTenants {
		return nil
	}
	if *tenant != "" && *tenant != grant.Tenant {
		return forbidden(fmt.Sprintf("the token is only for the tenant %q", grant.Tenant), location)
	}
	*tenant = grant.Tenant
	return nil
}
