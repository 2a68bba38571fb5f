package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
)

// ScopeConversation is a conversation with messages that name a scope.
type ScopeConversation struct {
	Conversation
	Mentions []ScopeMention `json:"mentions" doc:"messages that name it, newest first, at most 5"`
}

// ScopeMention is a message that names a scope.
type ScopeMention struct {
	Seq       uint64 `json:"seq" doc:"sequence of the message"`
	Turn      int    `json:"turn"`
	MessageID string `json:"message_id"`
	By        string `json:"by" enum:"reference,text" doc:"reference if the message declares it, text if its text names it"`
	As        string `json:"as" doc:"the file and lines, or the name, as the message has them"`
}

// NamedScope is a piece of code that an index holds.
type NamedScope struct {
	Path      string `json:"path" doc:"the file, from the root of the project"`
	Root      string `json:"root" doc:"the folder of the index"`
	Name      string `json:"name,omitempty"`
	Kind      string `json:"kind" enum:"function,type,value,section,block"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
}

type scopeInput struct {
	ProjectParam
	WaitAllParams
	Name  string `query:"name" minLength:"1" maxLength:"4096" doc:"a function, a type or another named piece of code: Store.Close, or Close if the project has only one"`
	File  string `query:"file" minLength:"1" maxLength:"4096" doc:"a file, by its path or as much of its end as tells which one"`
	Line  int    `query:"line" minimum:"1" doc:"a line of the file: the smallest named piece of code around it"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"maximum number of conversations"`
}

type scopeOutput struct {
	Body struct {
		Scope         NamedScope          `json:"scope" doc:"the piece of code that is meant"`
		Conversations []ScopeConversation `json:"conversations" doc:"newest mention first"`
		More          bool                `json:"more" doc:"there may be more: the limit was reached, or there were more than the 50 conversations whose texts are examined"`
	}
}

func (a *api) registerCodeScope(h huma.API) {
	about := operation("conversations-about-scope", http.MethodGet, "/v1/projects/{project}/code/conversations", "List the conversations about a function", "projects", 404, 422, 503, 504)
	about.Description = "Finds the conversations of a project whose messages name a function, a type or another piece of the code that mneme index has read: by a declared reference, by file and line, or by name. " +
		"Lines are those that it had at the time of the message. Where a name is not unique, the message must also name the file."
	serve(a, h, about, a.aboutScope)
}

func (a *api) aboutScope(ctx context.Context, in *scopeInput) (*scopeOutput, error) {
	switch {
	case in.Name == "" && (in.File == "" || in.Line == 0):
		return nil, refuseQuery("name", "name is missing, or file and line: say which code the conversations are about")
	case in.File == "" && in.Line != 0:
		return nil, refuseQuery("file", "file is missing: line is the number of a line in a file")
	case in.File != "" && graph.CodeBase(in.File) == "":
		return nil, refuseQuery("file", "file is not the path of a file")
	}
	g, ofGraph, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, err
	}
	c, ofCode, err := a.pins(ctx).Code(ctx)
	if err != nil {
		return nil, err
	}
	_, ofProjects, err := a.pins(ctx).Projects(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.awaitAll(ctx, in.WaitAllParams, ofGraph, ofCode, ofProjects); err != nil {
		return nil, err
	}
	if err := a.beginFind(ctx, in.Tenant, in.WaitAllParams, false, ofGraph, ofCode, ofProjects); err != nil {
		return nil, err
	}
	r, p, err := a.projectNow(ctx, in.Tenant, in.Project)
	if err != nil {
		return nil, err
	}
	scope, err := a.scopeOf(ctx, c, ofCode, p, in)
	if err != nil {
		return nil, err
	}
	only, err := project.Entered(ctx, r, p)
	if err != nil {
		return nil, err
	}
	found, more, err := scope.Index.Naming(scope.Hit, graph.Latest).Conversations(ctx, g, in.Tenant, graph.CandidateQuery{Only: only, Fresh: in.AtLeast != 0})
	if err != nil {
		return nil, err
	}
	found, err = project.Keep(ctx, r, p, found, func(c *codebase.About) events.ConversationID { return c.ID })
	if err != nil {
		return nil, err
	}
	out := &scopeOutput{}
	out.Body.Scope = NamedScope{Path: scope.Path, Root: scope.Root, Name: scope.Name, Kind: scope.Kind, StartLine: scope.Start, EndLine: scope.End}
	out.Body.More = more || len(found) > in.Limit
	out.Body.Conversations = each(found[:min(len(found), in.Limit)], func(c codebase.About) ScopeConversation {
		return ScopeConversation{show(c.Conversation), each(c.Mentions, showMention)}
	})
	return out, nil
}

func showMention(m codebase.Mention) ScopeMention {
	shown := ScopeMention{Seq: m.Seq, Turn: m.Turn, MessageID: m.MessageID, By: "text", As: m.Written}
	if r := m.Reference; r != nil {
		shown.By, shown.As = "reference", r.File
		switch {
		case r.EndLine > r.StartLine:
			shown.As += fmt.Sprintf(":%d-%d", r.StartLine, r.EndLine)
		case r.StartLine > 0:
			shown.As += fmt.Sprintf(":%d", r.StartLine)
		}
		if r.Name != "" {
			shown.As += " " + r.Name
		}
	}
	return shown
}

func refuseQuery(parameter, message string) error {
	return huma.Error422UnprocessableEntity(message, &huma.ErrorDetail{Location: "query." + parameter, Message: message})
}

// scopeOf returns the scope that a request means.
func (a *api) scopeOf(ctx context.Context, r codebase.Reader, m view.Model, p project.Project, in *scopeInput) (one view.Scope, err error) {
	list, indexed, err := a.Cache.Scopes(ctx, r, m.Generation, p, view.ScopeQuery{Name: in.Name, File: in.File, Line: in.Line})
	if err != nil {
		return one, err
	}
	switch {
	case !indexed:
		return one, huma.Error404NotFound(fmt.Sprintf("the code of %s is not indexed: run mneme index . in its folder; if it has just run, ask again in a second", p.Name))
	case len(list) == 0 && in.Line != 0:
		return one, huma.Error404NotFound(fmt.Sprintf("the index holds no code at %s:%d: run mneme index if it is new", in.File, in.Line))
	case len(list) == 0:
		return one, huma.Error404NotFound(fmt.Sprintf("the index holds nothing named %s: search for it with mneme code search, or run mneme index if it is new", in.Name))
	case len(list) > 1:
		places := each(list[:min(len(list), 5)], func(s view.Scope) string {
			return strings.TrimSpace(fmt.Sprintf("%s:%d %s", s.Path, s.Start, s.Name))
		})
		return one, refuseQuery("name", fmt.Sprintf("%d places are meant, name one by its file and line: %s", len(list), strings.Join(places, ", ")))
	}
	return list[0], nil
}
