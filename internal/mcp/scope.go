package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window/projects"
)

// The headers that name what a request is about, for clients that cannot change their URL.
const (
	headerProject      = "Mneme-Project"
	headerConversation = "Mneme-Conversation"
)

const (
	defaultTenant = "default"
	maxTenant     = 128
)

// scope is what a request is about, unless a tool's arguments say otherwise.
type scope struct {
	tenant       string
	project      string // a name or a folder, "" if nothing names one
	conversation string // of the agent's session, "" if unknown
}

type scopeKey struct{}

// scopeOf reads the scope of a request, and refuses what the sender's token does not cover.
func scopeOf(r *http.Request) (scope, int, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return scope{}, http.StatusBadRequest, fmt.Errorf("the query of the URL cannot be read: %w", err)
	}
	if name := unknown(r); name != "" {
		return scope{}, http.StatusUnprocessableEntity, errors.New("unknown query parameter " + plain.Clip(name, maxError))
	}
	s := scope{
		tenant:       query.Get("tenant"),
		project:      cmp.Or(query.Get("project"), header(r, headerProject)),
		conversation: cmp.Or(query.Get("conversation"), header(r, headerConversation)),
	}
	if grant := access.Of(r.Context()); grant != nil && !grant.AllTenants {
		if s.tenant != "" && s.tenant != grant.Tenant {
			return scope{}, http.StatusForbidden, fmt.Errorf("the token is only for the tenant %q: leave the parameter tenant out", grant.Tenant)
		}
		s.tenant = grant.Tenant
	}
	s.tenant = cmp.Or(s.tenant, defaultTenant)
	if len(s.tenant) > maxTenant {
		return scope{}, http.StatusUnprocessableEntity, fmt.Errorf("the name of a tenant has at most %d bytes", maxTenant)
	}
	return s, 0, nil
}

// header returns a header's value. A folder whose name is not ASCII is percent-encoded.
func header(r *http.Request, name string) string {
	value := r.Header.Get(name)
	if decoded, err := url.PathUnescape(value); err == nil {
		return decoded
	}
	return value
}

// everything asks for all projects.
const everything = "*"

// projectName returns the name or folder that a call is about: the argument, else the scope.
func (c *call) projectName(ctx context.Context, argument string) (string, error) {
	if c.grant != nil && c.grant.Project != "" {
		if argument != "" && argument != c.grant.Project {
			return "", refuse("the token is only for the project %q: leave the argument project out", c.grant.Project)
		}
		return c.grant.Project, nil
	}
	name := cmp.Or(argument, c.project)
	if name == "" {
		return "", c.noProject(ctx)
	}
	return name, nil
}

// find returns the project that a call is about.
func (c *call) find(ctx context.Context, argument string, asOf uint64) (project.Project, error) {
	name, err := c.projectName(ctx, argument)
	if err != nil {
		return project.Project{}, err
	}
	r, _, err := c.pins.Projects(ctx)
	if err != nil {
		return project.Project{}, err
	}
	return project.Find(ctx, r, c.tenant, name, asOf)
}

// suggested is how many projects a refusal lists, suggestedRoom how many characters they may take, and
// recentConversations how many conversations it looks at to find them.
const (
	suggested           = 5
	suggestedRoom       = maxError - 120
	recentConversations = 50
)

// noProject refuses a call that is about no project, and lists the newest ones.
func (c *call) noProject(ctx context.Context) error {
	g, _, err := c.pins.Graph(ctx)
	if err != nil {
		return err
	}
	page, err := g.Conversations(ctx, c.tenant, graph.ConversationQuery{Limit: recentConversations})
	if err != nil {
		return err
	}
	ids := make([]events.ConversationID, len(page.Rows))
	for i := range page.Rows {
		ids[i] = page.Rows[i].ID
	}
	names, err := c.places(ctx, ids)
	if err != nil {
		return err
	}
	var list []string
	room := suggestedRoom
	seen := map[string]bool{"": true}
	for _, name := range names {
		shown := plain.Line(name)
		if n := plain.Length(shown); !seen[name] && len(list) < suggested && n <= room { // a name that is cut cannot be given
			list = append(list, shown)
			room -= n + len(", ")
		}
		seen[name] = true
	}
	if len(list) == 0 {
		return refuse("it is not known which project this is about, and no project is recorded yet: give the argument project")
	}
	return refuse("it is not known which project this is about: give the argument project. The newest: %s", strings.Join(list, ", "))
}

// places returns the names of the projects of conversations, "" for those that have none.
func (c *call) places(ctx context.Context, ids []events.ConversationID) ([]string, error) {
	r, _, err := c.pins.Projects(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	digests, err := r.Digests(ctx, ids, graph.Latest)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(ids))
	for i, d := range digests {
		if d != nil {
			names[i] = d.Place.Name
		}
	}
	return names, nil
}

// projectOf returns the name of a conversation's project.
func (c *call) projectOf(ctx context.Context, id events.ConversationID) (string, error) {
	names, err := c.places(ctx, []events.ConversationID{id})
	if err != nil || names[0] == "" {
		return "no project", err
	}
	r, _, err := c.pins.Projects(ctx)
	if err != nil {
		return "", err
	}
	p, err := project.Find(ctx, r, c.tenant, names[0], graph.Latest)
	return p.Name, err
}

// permit refuses a conversation that the token does not cover, as if it did not exist.
func (c *call) permit(ctx context.Context, id events.ConversationID) error {
	if len(id.ID) > conversationBytes || id.ID == "" {
		return refuse("the id of a conversation has 1 to %d bytes", conversationBytes)
	}
	if c.grant == nil || c.grant.Project == "" {
		return nil
	}
	p, err := c.find(ctx, "", graph.Latest)
	if err != nil {
		return err
	}
	kept, err := ofProject(ctx, c, p, []events.ConversationID{id}, func(id *events.ConversationID) events.ConversationID { return *id })
	if err != nil || len(kept) > 0 {
		return err
	}
	return c.noConversation(id)
}

// named returns the id of the conversation that an argument names: an id, or the short form of one with which the context
// of this project names it. An id that the token covers is never taken for a short form.
func (c *call) named(ctx context.Context, name string) (string, error) {
	return c.namedBy(ctx, name, func() (project.Project, error) { return c.find(ctx, "", graph.Latest) })
}

// namedBy is named for the context of the project that find returns.
func (c *call) namedBy(ctx context.Context, name string, find func() (project.Project, error)) (string, error) {
	if projects.ShortID(name) != name {
		return name, nil
	}
	if c.grant == nil || c.grant.Project == "" {
		seq, err := c.pins.Position(ctx, events.ConversationID{Tenant: c.tenant, ID: name})
		if err != nil || seq > 0 {
			return name, err
		}
	}
	p, err := find()
	var none refusal
	if errors.As(err, &none) { // no project is named
		return name, nil
	}
	if err != nil {
		return "", err
	}
	id, err := c.pins.Named(ctx, c.tenant, name, &p)
	if several, ok := errors.AsType[*view.AmbiguousError](err); ok {
		return "", refuse("%v", several)
	}
	return id, err
}

func (c *call) noConversation(id events.ConversationID) error {
	return refuse("there is no conversation %q: memory_search without a query lists them", plain.Clip(plain.Line(id.ID), 120))
}

// ofProject keeps the rows whose conversations belong to a project.
func ofProject[T any](ctx context.Context, c *call, p project.Project, rows []T, id func(*T) events.ConversationID) ([]T, error) {
	r, _, err := c.pins.Projects(ctx)
	if err != nil {
		return nil, err
	}
	return project.Keep(ctx, r, p, rows, id)
}

// entered returns the ids of the newest conversations that entered a project.
func (c *call) entered(ctx context.Context, p project.Project) ([]string, error) {
	r, _, err := c.pins.Projects(ctx)
	if err != nil {
		return nil, err
	}
	return project.Entered(ctx, r, p)
}
