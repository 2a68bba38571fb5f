package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/access"
)

// Access is what the sender of a request may do.
type Access struct {
	Role       string `json:"role" enum:"read,write,operate,admin"`
	AllTenants bool   `json:"all_tenants" doc:"it may name any tenant, and do what concerns all of them"`
	Tenant     string `json:"tenant,omitempty" doc:"its only tenant; absent with all_tenants"`
	Project    string `json:"project,omitempty" doc:"its only project; absent if it may read the whole tenant"`
	Name       string `json:"name,omitempty" doc:"of the token; absent if the server asks for none"`
	Expires    string `json:"expires,omitempty" format:"date-time" doc:"when the token expires; absent if it does not"`
}

func (a *api) registerAccess(h huma.API) {
	op := operation("show-access", http.MethodGet, "/v1/access", "Show what you may do", "operations")
	op.Description = "The rights of the token that the request carries. A server that asks for no token allows everything."
	serve(a, h, op, a.access)
}

func (a *api) access(ctx context.Context, _ *struct{}) (*output[Access], error) {
	grant := access.Of(ctx)
	if grant == nil {
		return &output[Access]{Body: Access{Role: access.Admin.String(), AllTenants: true}}, nil
	}
	out := Access{Role: grant.Role.String(), AllTenants: grant.AllTenants, Tenant: grant.Tenant, Project: grant.Project, Name: grant.Name}
	if !grant.Expires.IsZero() {
		out.Expires = grant.Expires.UTC().Format(time.RFC3339)
	}
	return &output[Access]{Body: out}, nil
}
