package access

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNoToken: the request carries no bearer token.
	ErrNoToken = errors.New("a token is needed: send it as Authorization: Bearer TOKEN")

	// ErrInvalid: the token is unknown, revoked, expired, or malformed.
	ErrInvalid = errors.New("the token is not valid")

	// ErrNothing: the identity provider vouches for the bearer, but no rule of the claims
	// file grants anything.
	ErrNothing = errors.New("no rule of the server's claims file grants anything to this token")

	// ErrOtherOrigin: a page of another origin used the session of a browser.
	ErrOtherOrigin = errors.New("a page of another origin sent this with your session, which is for mneme's own page")

	// ErrUnavailable: the token may be valid, but the one who knows does not answer: the identity provider, of whose keys
	// the one to check it with is missing, or the log's server.
	ErrUnavailable = errors.New("the token can't be checked now; try again")

	// ErrTooMany: nobody is asked, because of all the requests with tokens that nobody knows. The error is also
	// ErrUnavailable.
	ErrTooMany = errors.New("too many requests with unknown tokens")
)

// Role is what a token may do. Each role includes the ones before it.
type Role int

// The roles, the least first. The zero value means no role.
const (
	Read    Role = iota + 1 // read what is in the tenant
	Write                   // also publish events and have summaries written
	Operate                 // also look into failures and rebuild read models
	Admin                   // also do what can lose data
)

var roleNames = map[Role]string{Read: "read", Write: "write", Operate: "operate", Admin: "admin"}

// Roles lists the roles, the least first.
func Roles() []Role { return []Role{Read, Write, Operate, Admin} }

func (r Role) String() string { return roleNames[r] }

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) {
	if roleNames[r] == "" {
		return nil, fmt.Errorf("%d is not a role", int(r))
	}
	return []byte(roleNames[r]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(text []byte) error {
	for role, name := range roleNames {
		if name == string(text) {
			*r = role
			return nil
		}
	}
	return fmt.Errorf("%q is not a role: use read, write, operate or admin", text)
}

// Rights are what a token or a rule grants.
type Rights struct {
	Tenant     string `json:"tenant,omitempty" yaml:"tenant"`
	AllTenants bool   `json:"all_tenants,omitempty" yaml:"all_tenants"`
	Role       Role   `json:"role" yaml:"role"`
	Project    string `json:"project,omitempty" yaml:"project"` // only this project of the tenant; empty means all
}

// maxName bounds the names of tenants and projects, as the API does.
const maxName = 128

// Check reports rights that contradict each other.
func (r Rights) Check() error {
	switch {
	case roleNames[r.Role] == "":
		return errors.New("the role is missing: use read, write, operate or admin")
	case r.AllTenants && r.Tenant != "":
		return errors.New("name a tenant or grant all tenants, not both")
	case !r.AllTenants && r.Tenant == "":
		return errors.New("the tenant is missing: name one, or grant all tenants")
	case len(r.Tenant) > maxName, len(r.Project) > maxName:
		return fmt.Errorf("the name of a tenant or project has at most %d bytes", maxName)
	case r.Project != "" && r.AllTenants:
		return errors.New("a project belongs to one tenant: name the tenant")
	case r.Project != "" && r.Role != Read:
		return errors.New("a token of one project can only read, because whoever writes to a conversation also decides its project: use the role read")
	}
	return nil
}

// Covers reports whether the rights reach a tenant.
func (r Rights) Covers(tenant string) bool { return r.AllTenants || r.Tenant == tenant }

// Grant is what the bearer of one token may do.
type Grant struct {
	Rights
	Name    string            // of the token, for people
	Subject string            // who it is, in the audit log: token:ID or oidc:SUBJECT
	Expires time.Time         // zero: never
	Ended   []context.Context // the grant is withdrawn when one of them is done
}

type grantKey struct{}

// With returns a context that carries the grant of a request.
func With(ctx context.Context, g *Grant) context.Context {
	return context.WithValue(ctx, grantKey{}, g)
}

// Of returns the grant of a request, or nil if the server asks for no tokens: then everything is allowed.
func Of(ctx context.Context) *Grant {
	g, _ := ctx.Value(grantKey{}).(*Grant)
	return g
}

// MayRead reports whether a request may see a tenant's data.
func MayRead(ctx context.Context, tenant string) bool {
	g := Of(ctx)
	return g == nil || g.Covers(tenant)
}

// Everywhere reports whether a request may see the data of all tenants.
func Everywhere(ctx context.Context) bool {
	g := Of(ctx)
	return g == nil || g.AllTenants
}
