package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
)

// Conversation is a conversation as the API shows it.
type Conversation struct {
	ID              string             `json:"id"`
	Title           string             `json:"title"`
	Tags            []string           `json:"tags"`
	Status          string             `json:"status" enum:"active,archived"`
	Agent           string             `json:"agent,omitempty"`
	Model           string             `json:"model,omitempty"`
	Cwd             string             `json:"cwd,omitempty"`
	Project         string             `json:"project,omitempty"`
	Profile         string             `json:"profile,omitempty"`
	MaxContextChars int                `json:"max_context_chars,omitempty"`
	BranchedFrom    *events.BranchedAt `json:"branched_from,omitempty"`
	MessageCount    int                `json:"message_count"`
	TurnCount       int                `json:"turn_count" doc:"user messages"`
	StepCount       int                `json:"step_count" doc:"assistant messages"`
	ToolCallCount   int                `json:"tool_call_count"`
	ToolResultCount int                `json:"tool_result_count"`
	TotalChars      int                `json:"total_chars" doc:"code points of all message contents"`
	CreatedAt       string             `json:"created_at" doc:"producer's time of the first event that has one, RFC 3339; empty if no event has one"`
	UpdatedAt       string             `json:"updated_at" doc:"producer's time of the newest event that has one"`
	FirstSeq        uint64             `json:"first_seq"`
	LastSeq         uint64             `json:"last_seq"`
	Inherited       *Inherited         `json:"inherited,omitempty" doc:"if only one conversation is requested and it is a branch: the counts that it inherits from its ancestors, in addition to its own; absent if they are deleted or unknown"`
}

// Inherited is what a branch inherits from its ancestors, as the API shows it.
type Inherited struct {
	events.BranchedAt
	Seq             uint64 `json:"seq" doc:"sequence of the message"`
	MessageCount    int    `json:"message_count"`
	TurnCount       int    `json:"turn_count"`
	StepCount       int    `json:"step_count"`
	ToolCallCount   int    `json:"tool_call_count"`
	ToolResultCount int    `json:"tool_result_count"`
	TotalChars      int    `json:"total_chars"`
}

func show(c graph.Conversation) Conversation {
	tags := c.Tags
	if tags == nil {
		tags = []string{}
	}
	return Conversation{
		ID: c.ID.ID, Title: c.Title, Tags: tags, Status: c.Status, Agent: c.Agent, Model: c.Model, Cwd: c.Cwd, Project: c.Project,
		Profile: c.Profile, MaxContextChars: c.MaxContextChars, BranchedFrom: c.BranchedFrom,
		MessageCount: c.MessageCount, TurnCount: c.TurnCount, StepCount: c.StepCount, ToolCallCount: c.ToolCallCount,
		ToolResultCount: c.ToolResultCount, TotalChars: c.TotalChars, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
		FirstSeq: c.FirstSeq, LastSeq: c.LastSeq,
	}
}

type listInput struct {
	TenantParam
	WaitAllParams
	PageParams
	Order         string    `query:"order" enum:"activity,created" default:"activity" doc:"activity: newest event first; created: latest start first, an order that new events do not change"`
	Status        string    `query:"status" enum:"active,archived"`
	Tags          []string  `query:"tag,explode" minLength:"1" maxItems:"100" doc:"only conversations with this tag; with all of them, if given more than once"`
	Agent         string    `query:"agent" doc:"only conversations of this agent, such as claude-code, in any spelling: upper and lower case, spaces, - and _ make no difference"`
	Project       string    `query:"project" doc:"only conversations of this project, or of the repository that this folder is in"`
	BranchOf      string    `query:"branch_of" doc:"only branches of this conversation; its id or short form"`
	CreatedAfter  time.Time `query:"created_after" doc:"only if the producer's time of the first event that has one is this or later"`
	CreatedBefore time.Time `query:"created_before" doc:"only if that time is earlier than this"`
	UpdatedAfter  time.Time `query:"updated_after" doc:"only if the producer's time of the newest event that has one is this or later"`
	UpdatedBefore time.Time `query:"updated_before" doc:"only if that time is earlier than this"`
}

// scope returns the list that a cursor of this input belongs to.
func (in *listInput) scope() scope {
	parts := []string{in.Tenant, in.Order, in.Status, in.Agent, in.Project, in.BranchOf}
	for _, t := range []time.Time{in.CreatedAfter, in.CreatedBefore, in.UpdatedAfter, in.UpdatedBefore} {
		parts = append(parts, t.UTC().Format(time.RFC3339Nano))
	}
	return scopeOf("list-conversations", append(parts, in.Tags...)...)
}

type listOutput struct {
	Body struct {
		Conversations []Conversation `json:"conversations" doc:"in the requested order"`
		NextCursor    string         `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

// ConversationParam names a conversation.
type ConversationParam struct {
	TenantParam
	ID string `path:"id" doc:"the conversation id, percent-encoded; or its short form, with which contexts name a conversation, such as d91ec3b9, if it means only one"`
}

func (p *ConversationParam) id() events.ConversationID {
	return events.ConversationID{Tenant: p.Tenant, ID: p.ID}
}

// AsOfParam asks for the past.
type AsOfParam struct {
	AsOf uint64 `query:"as_of" minimum:"1" doc:"answer as of this sequence of the log; defaults to now"`
}

// EmbeddedParam repeats an earlier answer by ignoring vectors that arrived since.
type EmbeddedParam struct {
	EmbeddedUpTo uint64 `query:"embedded_up_to" doc:"use only vectors of messages up to this sequence, which the manifest of a context reports"`
}

func (p AsOfParam) seq() uint64 { return cmp.Or(p.AsOf, graph.Latest) }

type showInput struct {
	ConversationParam
	AsOfParam
	WaitParams
}

func (a *api) registerConversations(h huma.API) {
	list := operation("list-conversations", http.MethodGet, "/v1/conversations", "List conversations", "conversations", 422, 503, 504)
	list.Description = pagesDoc
	serve(a, h, list, a.list)
	serve(a, h, operation("show-conversation", http.MethodGet, "/v1/conversations/{id}", "Show a conversation", "conversations", 404, 422, 503, 504), a.show)
}

// ofMany returns the read model "graph" for a read of many conversations, and all models that it needs, as the request
// waits for them.
func (a *api) ofMany(ctx context.Context, project string, wait WaitAllParams) (graph.Reader, []view.Model, error) {
	g, m, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, nil, err
	}
	models := []view.Model{m}
	if project != "" {
		if _, m, err = a.pins(ctx).Projects(ctx); err != nil {
			return nil, nil, err
		}
		models = append(models, m)
	}
	return g, models, a.awaitAll(ctx, wait, models...)
}

func (a *api) list(ctx context.Context, in *listInput) (*listOutput, error) {
	before, err := in.scope().start(in.Cursor)
	if err != nil {
		return nil, err
	}
	g, models, err := a.ofMany(ctx, in.Project, in.WaitAllParams)
	if err != nil {
		return nil, err
	}
	if err := a.unchangedList(ctx, models...); err != nil {
		return nil, err
	}
	q := graph.ConversationQuery{
		Limit: in.Limit, Created: in.Order == "created", Before: before,
		Status: in.Status, Tags: in.Tags, Agent: in.Agent, BranchOf: in.BranchOf,
		CreatedAt: graph.TimeRange{After: in.CreatedAfter, Before: in.CreatedBefore},
		UpdatedAt: graph.TimeRange{After: in.UpdatedAfter, Before: in.UpdatedBefore},
	}
	var found graph.Page[graph.Conversation]
	if in.Project == "" {
		found, err = g.Conversations(ctx, in.Tenant, q)
	} else {
		found, err = a.listOfProject(ctx, g, in.Tenant, in.Project, q)
	}
	if err != nil {
		return nil, err
	}
	out := &listOutput{}
	out.Body.Conversations = each(found.Rows, show)
	out.Body.NextCursor = in.scope().next(found.Next)
	return out, nil
}

func (a *api) show(ctx context.Context, in *showInput) (*output[Conversation], error) {
	v, err := a.view(ctx, in.id(), in.WaitParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	lineage := v.Lineage()
	out := &output[Conversation]{Body: show(lineage.Own())}
	if from := lineage.Inherited(); from != nil {
		out.Body.Inherited = &Inherited{
			BranchedAt: from.BranchedAt, Seq: from.LastSeq,
			MessageCount: from.MessageCount, TurnCount: from.TurnCount, StepCount: from.StepCount,
			ToolCallCount: from.ToolCallCount, ToolResultCount: from.ToolResultCount, TotalChars: from.TotalChars,
		}
	}
	return out, nil
}
