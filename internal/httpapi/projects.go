package httpapi

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/projects"
)

// Project is a project as the API lists it.
type Project struct {
	Name   string         `json:"name" doc:"the name that its conversations give, or the repository or folder that they work in"`
	Newest ProjectSession `json:"newest" doc:"its newest conversation"`
}

// ProjectSession is a conversation of a project.
type ProjectSession struct {
	ID         string `json:"id"`
	Title      string `json:"title,omitempty"`
	Agent      string `json:"agent,omitempty"`
	Asked      string `json:"asked,omitempty" doc:"what the user asked first, at most 400 characters"`
	TurnCount  int    `json:"turn_count"`
	FirstSeq   uint64 `json:"first_seq"`
	LastSeq    uint64 `json:"last_seq"`
	BeganAt    string `json:"began_at,omitempty" doc:"the producer's time of its first event that has one, RFC 3339"`
	UpdatedAt  string `json:"updated_at,omitempty"`
	Unanswered bool   `json:"unanswered" doc:"its newest request has no answer"`
}

func showSession(s *project.Session) ProjectSession {
	out := ProjectSession{
		ID: s.ID.ID, Title: s.Title, Agent: s.Agent, TurnCount: s.Turns, FirstSeq: s.FirstSeq, LastSeq: s.LastSeq,
		BeganAt: s.Began, UpdatedAt: s.Ended, Unanswered: s.Unanswered(),
	}
	if s.First != nil {
		out.Asked = s.First.Text
	}
	return out
}

type projectsInput struct {
	TenantParam
	WaitAllParams
	AsOfParam
	Cursor string `query:"cursor" doc:"next_cursor of the previous page"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"maximum number of projects; a page can have fewer although more follow"`
}

type projectsOutput struct {
	Body struct {
		Projects   []Project `json:"projects" doc:"sorted by name, bytewise"`
		NextCursor string    `json:"next_cursor,omitempty" doc:"cursor of the next page; absent at the end"`
	}
}

// ProjectParam names a project.
type ProjectParam struct {
	TenantParam
	Project string `path:"project" doc:"the name of a project, or a folder, which means the project of the repository that it is in; percent-encoded"`
}

type projectInput struct {
	ProjectParam
	WaitAllParams
	AsOfParam
	Query string `query:"query" maxLength:"100000" doc:"also list older conversations that fit these words"`
}

type projectOutput struct {
	Body struct {
		Name          string           `json:"name"`
		Names         []string         `json:"names" doc:"all names that belong to it, sorted: its own, its aliases, and folders of its repository"`
		Conversations []ProjectSession `json:"conversations" doc:"its newest conversations, at most 48, newest event first"`
	}
}

type projectContextInput struct {
	ProjectParam
	WaitAllParams
	AsOfParam
	Query    string `query:"query" maxLength:"100000" doc:"what the agent is about to do; defaults to what is newest"`
	MaxChars int    `query:"max_chars" minimum:"500" maximum:"10000000" default:"8000" doc:"budget in Unicode code points, headings and marks included"`
	Format   string `query:"format" enum:"markdown,json,openai,anthropic" default:"json" doc:"openai and anthropic return messages in the form that their APIs accept"`
	Memory   string `query:"memory" enum:"inline,separate" default:"inline" doc:"with format=openai or anthropic: see the context of a conversation"`
	Except   string `query:"except" doc:"id of a conversation to leave out, such as the one that is just beginning"`
	Frame    bool   `query:"frame" doc:"with format=markdown: see the context of a conversation"`
	Explain  bool   `query:"explain" doc:"add the manifest, also where each item is in the Markdown; not with format=markdown"`
	Text     bool   `query:"include_markdown" doc:"with format=json: add the member markdown, the text in which the manifest's ranges are"`
}

type aliasInput struct {
	ProjectParam
	IdempotencyParam
	Body struct {
		Into string `json:"into" minLength:"1" doc:"the project that it belongs to from now on"`
	}
}

type unaliasInput struct {
	ProjectParam
	IdempotencyParam
}

func (a *api) registerProjects(h huma.API) {
	list := operation("list-projects", http.MethodGet, "/v1/projects", "List projects", "projects", 422, 503, 504)
	list.Description = "A conversation belongs to the project that it names, else to its repository, else to the repository or the folder that it works in."
	serve(a, h, list, a.listProjects)
	serve(a, h, operation("show-project", http.MethodGet, "/v1/projects/{project}", "Show a project", "projects", 404, 422, 503, 504), a.showProject)
	op := operation("read-project-context", http.MethodGet, "/v1/projects/{project}/context", "What a new session in a project should see", "context", 404, 422, 503, 504)
	op.Description = "Where things stand, what was learnt, how to work here, which files matter, and what fits the query: of up to 48 conversations of the project, the newest and those that the query resembles. " +
		"Recorded text is data, as in the context of a conversation. The same log, as of the same sequence, with the same parameters, always gives the same text."
	op.Responses = contextResponses(h)
	serve(a, h, op, a.projectContext)
	a.registerMemory(h)
	a.registerCodebase(h)
	a.registerLessons(h)
	alias := operation("alias-project", http.MethodPut, "/v1/projects/{project}/alias", "Count a project as part of another one", "projects", 409, 413, 415, 422, 503, 504, 507)
	alias.Description = "From then on its conversations belong to the other project. Contexts as of an earlier sequence do not change."
	serve(a, h, alias, a.aliasProject)
	serve(a, h, operation("unalias-project", http.MethodDelete, "/v1/projects/{project}/alias", "Count a project on its own again", "projects", 409, 422, 503, 504, 507), a.unaliasProject)
}

// projects begins a read of projects.
func (a *api) projects(ctx context.Context, tenant string, wait WaitAllParams, past AsOfParam, more ...view.Model) (project.Reader, error) {
	r, m, err := a.pins(ctx).Projects(ctx)
	if err != nil {
		return nil, err
	}
	more = append(more, m)
	for _, m := range more {
		if err := a.views.AwaitAllAsOf(ctx, WaitParams(wait).at(past), m); err != nil {
			return nil, err
		}
	}
	if err := a.unchangedList(ctx, more...); err != nil {
		return nil, err
	}
	return r, a.admitRead(ctx, tenant)
}

func (a *api) listProjects(ctx context.Context, in *projectsInput) (*projectsOutput, error) {
	r, err := a.projects(ctx, in.Tenant, in.WaitAllParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.Strict().DecodeString(in.Cursor)
	if err != nil || !utf8.Valid(after) {
		return nil, huma.Error422UnprocessableEntity("the cursor does not belong to this list", &huma.ErrorDetail{Location: "query.cursor", Message: "not a cursor of this list", Value: in.Cursor})
	}
	list, next, err := project.List(ctx, r, in.Tenant, string(after), in.Limit, in.seq())
	if err != nil {
		return nil, err
	}
	newest, err := project.Newest(ctx, r, list)
	if err != nil {
		return nil, err
	}
	out := &projectsOutput{}
	out.Body.Projects, out.Body.NextCursor = []Project{}, base64.RawURLEncoding.EncodeToString([]byte(next))
	for i, p := range list {
		if newest[i] != nil {
			out.Body.Projects = append(out.Body.Projects, Project{Name: p.Name, Newest: showSession(newest[i])})
		}
	}
	return out, nil
}

func (a *api) showProject(ctx context.Context, in *projectInput) (*projectOutput, error) {
	r, err := a.projects(ctx, in.Tenant, in.WaitAllParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	p, err := project.Find(ctx, r, in.Tenant, in.Project, in.seq())
	if err != nil {
		return nil, err
	}
	sessions, err := project.Sessions(ctx, r, p, project.QueryTerms(in.Query))
	if err != nil {
		return nil, err
	}
	if len(sessions) == 0 {
		return nil, noProject(in.Project)
	}
	out := &projectOutput{}
	out.Body.Name, out.Body.Names, out.Body.Conversations = p.Name, p.Names, []ProjectSession{}
	for i := range sessions {
		out.Body.Conversations = append(out.Body.Conversations, showSession(&sessions[i]))
	}
	return out, nil
}

// projectNow returns what a name or a folder means now.
func (a *api) projectNow(ctx context.Context, tenant, name string) (project.Reader, project.Project, error) {
	r, _, err := a.pins(ctx).Projects(ctx)
	if err != nil {
		return nil, project.Project{}, err
	}
	p, err := project.Find(ctx, r, tenant, name, graph.Latest)
	return r, p, err
}

// Limits of a page of a project's conversations, which are found by looking at all conversations in the order of the
// list.
const (
	projectChunk    = 100 // conversations at once
	projectExamined = 500 // for a page
)

// listOfProject reads a page of the conversations that belong to a project.
func (a *api) listOfProject(ctx context.Context, g graph.Reader, tenant, name string, q graph.ConversationQuery) (page graph.Page[graph.Conversation], err error) {
	r, p, err := a.projectNow(ctx, tenant, name)
	if err != nil {
		return page, err
	}
	limit := q.Limit
	q.Limit = projectChunk
	for examined := 0; ; {
		chunk, err := g.Conversations(ctx, tenant, q)
		if err != nil {
			return page, err
		}
		kept, err := project.Keep(ctx, r, p, chunk.Rows, func(c *graph.Conversation) events.ConversationID { return c.ID })
		if err != nil {
			return page, err
		}
		if free := limit - len(page.Rows); len(kept) > free {
			page.Rows = append(page.Rows, kept[:free]...)
			page.Next = q.Position(&page.Rows[limit-1])
			return page, nil
		}
		page.Rows = append(page.Rows, kept...)
		examined += max(len(chunk.Rows), projectChunk) // with a filter that keeps little, the store has examined many conversations
		page.Next, q.Before = chunk.Next, chunk.Next
		if chunk.Next == 0 || len(page.Rows) == limit || examined >= projectExamined {
			return page, nil
		}
	}
}

func noProject(name string) error {
	return huma.Error404NotFound("no conversation belongs to project \"" + name + "\": see GET /v1/projects")
}

func (a *api) projectContext(ctx context.Context, in *projectContextInput) (*contextOutput, error) {
	if err := frameable(in.Frame, in.Format, in.MaxChars); err != nil {
		return nil, err
	}
	g, ofGraph, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, err
	}
	r, err := a.projects(ctx, in.Tenant, in.WaitAllParams, in.AsOfParam, ofGraph)
	if err != nil {
		return nil, err
	}
	c, err := projects.Build(ctx, a.projectSource(r, g), projects.Request{
		Tenant: in.Tenant, Project: in.Project, Query: in.Query, MaxChars: roomWithin(in.MaxChars, in.Frame), AsOf: in.AsOf, Except: in.Except,
	})
	if err != nil {
		return nil, err
	}
	return form{format: in.Format, memory: in.Memory, framed: in.Frame, explained: in.Explain, markdown: in.Text}.show(c)
}

// projectSource reads what is known about projects, and searches what was said in them.
func (a *api) projectSource(r project.Reader, g graph.Reader) projects.Source {
	source := projects.Source{Projects: r}
	if a.Cache != nil {
		source.Past = a.Cache.OfProjects(g)
	}
	return source
}

// earlier returns what a young conversation sees of its project, and the positions that the answer then depends on. It
// is nil for a conversation that is not young or has no project, and while the read model is not there or, for a
// request that does not ask for the past, not far enough.
func (a *api) earlier(ctx context.Context, pins *view.Pins, v *view.View, maxChars int) (window.Earlier, []string, error) {
	own := v.Lineage().Own()
	if !window.Young(&own, maxChars) {
		return nil, nil, nil
	}
	r, m, err := pins.Projects(ctx)
	if errors.Is(err, a.NotReady) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var behind *view.BehindError
	if err := a.views.AwaitAllAsOf(ctx, v.At, m); errors.As(err, &behind) && v.At.AsOf == 0 {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	g, gm, err := pins.Graph(ctx)
	if err != nil {
		return nil, nil, err
	}
	asOf := cmp.Or(v.At.AsOf, graph.Latest)
	e, err := projects.EarlierThan(ctx, a.projectSource(r, g), append([]events.ConversationID{v.ID}, v.Lineage().Ancestors()...), own.FirstSeq, asOf)
	if err != nil || e == nil {
		return nil, nil, err
	}
	positions, err := view.EarlierPositions(ctx, e, m, gm)
	return v.Earlier(e, m, gm), positions, err
}

func (a *api) aliasProject(ctx context.Context, in *aliasInput) (*output[Written], error) {
	if project.Name(in.Body.Into) == project.Name(in.Project) {
		return nil, huma.Error422UnprocessableEntity("a project cannot be an alias of itself", &huma.ErrorDetail{Location: "body.into", Message: "is the project itself", Value: in.Body.Into})
	}
	return a.rename(ctx, in.Tenant, in.Key, &events.ProjectAliased{Project: in.Project, Into: in.Body.Into})
}

func (a *api) unaliasProject(ctx context.Context, in *unaliasInput) (*output[Written], error) {
	return a.rename(ctx, in.Tenant, in.Key, &events.ProjectAliased{Project: in.Project})
}

// rename stores an event about the names of projects.
func (a *api) rename(ctx context.Context, tenant, key string, payload *events.ProjectAliased) (*output[Written], error) {
	id := events.ConversationID{Tenant: tenant, ID: events.ProjectsConversation}
	w, err := a.newWrite(ctx, id, key, payload)
	if err != nil {
		return nil, err
	}
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	ack, err := a.Log.Publish(ctx, tenant, w.event)
	return w.stored(ack, err)
}
