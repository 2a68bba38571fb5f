package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

// FoundConversation is a conversation that a search found.
type FoundConversation struct {
	Conversation
	window.ConversationMatch
	Messages []Found `json:"messages" doc:"its best matching messages, best first"`
}

// FoundParams limit how much of the results is shown.
type FoundParams struct {
	Limit    int `query:"limit" minimum:"1" maximum:"50" default:"10" doc:"maximum number of conversations and, with kind=tool or all, of tool results"`
	Messages int `query:"messages" minimum:"0" maximum:"12" default:"3" doc:"maximum number of messages of each conversation"`
	MaxChars int `query:"max_chars" minimum:"100" maximum:"100000" default:"600" doc:"maximum length of the text of each message or result, in Unicode code points"`
}

type searchInput struct {
	TenantParam
	WaitAllParams
	FoundParams
	RewriteParam
	Query   string `query:"query" maxLength:"100000" doc:"what to search for, in words; a \"phrase in quotes\" must be there, a -word must not, and the end of a word* is open. Without it, contains is searched for; without any whole word, the newest that the filters keep are found"`
	Project string `query:"project" doc:"only conversations of this project, or of the repository that this folder is in: those of its newest 4,096 entries"`
	Kind    string `query:"kind" enum:"message,tool,all" doc:"what to search: titles and messages, the results of tools, or both, each in a list of its own; tool if tool or file is given, else message. Tool results are searched in one project only"`
	FilterParams
}

type similarInput struct {
	ConversationParam
	WaitAllParams
	FoundParams
}

type foundOutput struct {
	Body struct {
		Conversations []FoundConversation `json:"conversations" doc:"best first; empty with kind=tool"`
		Contains      []string            `json:"contains,omitempty" doc:"the phrases in quotation marks in the query, which every hit contains"`
		Without       []string            `json:"without,omitempty" doc:"the words and phrases after - in the query, which no hit contains"`
		Embedding     string              `json:"embedding_model,omitempty" doc:"the model whose embeddings were used in the ranking; absent if only words were"`
		Rewritten     *window.Rewritten   `json:"rewritten,omitempty" doc:"with rewrite=true: what the model added to the query, or why nothing"`
		Partial       bool                `json:"messages_partial,omitempty" doc:"without words: true if only the newest 10,000 messages were looked at"`
		FoundTools
	}
}

func (a *api) registerSearchAll(h huma.API) {
	all := operation("search", http.MethodGet, "/v1/search", "Search all conversations", "conversations", 422, 503, 504)
	all.Description = "Finds conversations by their titles and by what user and assistant said, and ranks them by the words and the meaning of their best and their first messages. " +
		"Up to 50 conversations are ranked. With filters, only the messages that they keep are found and ranked, with the titles of their conversations. With kind=tool or all it finds the results of tools in the newest conversations of a project, by their words."
	serve(a, h, all, a.searchAll)
	similar := operation("similar-conversations", http.MethodGet, "/v1/conversations/{id}/similar", "List conversations like this one", "conversations", 404, 422, 503, 504)
	similar.Description = "Searches all conversations for what this one is about: its title, what its user asked for first, and its newest summary or, without one, what its user said last."
	serve(a, h, similar, a.similar)
}

func (a *api) searchAll(ctx context.Context, in *searchInput) (*foundOutput, error) {
	kind, err := in.kind()
	if err != nil {
		return nil, err
	}
	asked, keep, err := in.asked(kind)
	if err != nil {
		return nil, err
	}
	if err := a.rewritable(in.RewriteParam, asked.Text); err != nil {
		return nil, err
	}
	g, models, err := a.ofMany(ctx, in.Project, in.WaitAllParams)
	if err != nil {
		return nil, err
	}
	var tools *view.ToolsOf
	if kind != kindMessage {
		if tools, err = a.toolsOf(ctx, in, keep); err != nil {
			return nil, err
		}
	}
	var rewritten *window.Rewritten
	if asked.Text, rewritten, err = a.rewriteIn(ctx, in, asked.Text); err != nil {
		return nil, err
	}
	if err := a.beginFind(ctx, in.Tenant, in.WaitAllParams, in.Rewrite, models...); err != nil {
		return nil, err
	}
	out := &foundOutput{}
	if out.Body.Conversations = []FoundConversation{}; kind != kindTool {
		if strings.TrimSpace(asked.Text) == "" {
			out, err = a.listSaid(ctx, in, g, keep)
		} else {
			out, err = a.searchSaid(ctx, in, g, asked, keep)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, c := range out.Body.Conversations {
		for i := range c.Messages {
			c.Messages[i].Highlights = highlights(c.Messages[i].Text, asked)
		}
	}
	if tools != nil {
		if out.Body.FoundTools, err = findTools(ctx, tools, in, asked, keep); err != nil {
			return nil, err
		}
	}
	out.Body.Rewritten, out.Body.Contains, out.Body.Without = rewritten, asked.Contains, asked.Without
	return out, nil
}

// rewriteIn is rewrite for a search of a project. A project without conversations costs no call of the model.
func (a *api) rewriteIn(ctx context.Context, in *searchInput, query string) (string, *window.Rewritten, error) {
	if in.Rewrite && in.Project != "" {
		r, p, err := a.projectNow(ctx, in.Tenant, in.Project)
		if err != nil {
			return "", nil, err
		}
		entered, err := project.Entered(ctx, r, p)
		if err != nil {
			return "", nil, err
		}
		if len(entered) == 0 {
			return query, &window.Rewritten{Query: query, Missing: "no conversation belongs to the project"}, nil
		}
	}
	return a.rewrite(ctx, in.Tenant, in.RewriteParam, query)
}

// searchSaid searches titles and messages.
func (a *api) searchSaid(ctx context.Context, in *searchInput, g graph.Reader, asked window.Asked, keep window.Filter) (*foundOutput, error) {
	source := window.TenantSource{Graph: g, Recall: a.Cache.OfTenants(g)}
	q := window.TenantQuery{Tenant: in.Tenant, ConversationQuery: window.ConversationQuery{Text: asked.Text, Fresh: in.AtLeast != 0, Keep: keep}, Prefixes: asked.Prefixes}
	if in.Project == "" {
		return a.find(ctx, source, in.FoundParams, q)
	}
	r, p, err := a.projectNow(ctx, in.Tenant, in.Project)
	if err != nil {
		return nil, err
	}
	if q.Only, err = project.Entered(ctx, r, p); err != nil {
		return nil, err
	}
	q.Of = func(ctx context.Context, ids []events.ConversationID) ([]bool, error) { // some may have moved to another project since their entries
		return project.Among(ctx, r, p, ids)
	}
	return a.find(ctx, source, in.FoundParams, q)
}

// listSaid lists the newest messages that the filters keep.
func (a *api) listSaid(ctx context.Context, in *searchInput, g graph.Reader, keep window.Filter) (*foundOutput, error) {
	var of *project.Project
	if in.Project != "" {
		_, p, err := a.projectNow(ctx, in.Tenant, in.Project)
		if err != nil {
			return nil, err
		}
		of = &p
	}
	q := window.TenantQuery{ConversationQuery: window.ConversationQuery{Limit: in.Limit, Keep: keep}, Messages: in.Messages, MaxChars: in.MaxChars}
	found, partial, err := window.ListAll(ctx, g, a.pins(ctx).Newest(ctx, in.Tenant, of, keep), q)
	if err != nil {
		return nil, err
	}
	out := &foundOutput{}
	out.Body.Conversations, out.Body.Partial = each(found, showFoundConversation), partial
	return out, nil
}

func showFoundConversation(c window.ConversationFound) FoundConversation {
	return FoundConversation{Conversation: show(c.Conversation), ConversationMatch: c.Match, Messages: each(c.Messages, showFound)}
}

func (a *api) similar(ctx context.Context, in *similarInput) (*foundOutput, error) {
	g, m, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.awaitAll(ctx, in.WaitAllParams, m); err != nil {
		return nil, err
	}
	lineage, err := graph.LineageOf(ctx, g, in.id(), graph.Latest)
	if err != nil {
		return nil, err
	}
	if err := a.beginFind(ctx, in.Tenant, in.WaitAllParams, false, m); err != nil {
		return nil, err
	}
	about, err := window.AboutConversation(ctx, lineage.Graph(g), in.id())
	if err != nil {
		return nil, err
	}
	q := window.TenantQuery{Tenant: in.Tenant, ConversationQuery: window.ConversationQuery{Text: about, Except: in.ID, Fresh: in.AtLeast != 0}}
	return a.find(ctx, window.TenantSource{Graph: g, Recall: a.Cache.OfTenants(g)}, in.FoundParams, q)
}

// beginFind admits a search. Only a search with at_least gets an ETag: without it, at the
// same positions, the answer may lack events that the store has applied but not yet indexed.
// A search that asks a model gets none either, because the model may answer differently.
func (a *api) beginFind(ctx context.Context, tenant string, wait WaitAllParams, asks bool, models ...view.Model) error {
	if wait.AtLeast != 0 && !asks {
		if err := a.unchangedList(ctx, models...); err != nil {
			return err
		}
	}
	return a.admitRead(ctx, tenant)
}

// find returns the conversations that a query finds.
func (a *api) find(ctx context.Context, source window.TenantSource, shown FoundParams, q window.TenantQuery) (*foundOutput, error) {
	q.Limit, q.Messages, q.MaxChars = shown.Limit, shown.Messages, shown.MaxChars
	found, model, err := window.SearchAll(ctx, source, q)
	if err != nil {
		return nil, err
	}
	out := &foundOutput{}
	out.Body.Embedding = model
	out.Body.Conversations = each(found, showFoundConversation)
	return out, nil
}
