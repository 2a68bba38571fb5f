package mcp

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
)

// library is what people pick in their client, without the model: resources, prompts and completions. Each has the
// answer of a tool, with the same rights, frame and size.
type library interface {
	resources(context.Context, *sdk.ListResourcesRequest) ([]*sdk.Resource, error)
	resource(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error)
	prompt(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error)
	complete(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error)
}

// Methods, as metrics and spans name them.
const (
	methodList     = "resources/list"
	methodRead     = "resources/read"
	methodPrompt   = "prompts/get"
	methodComplete = "completion/complete"
)

// Names of the prompts, and of the arguments that can be completed.
const (
	PromptRecall = "recall"
	PromptResume = "resume"

	argumentProject      = "project"
	argumentConversation = "conversation"
)

// Limits of lists.
const (
	listed      = 20    // conversations among the resources
	completions = 100   // as the protocol demands
	searched    = 1_000 // project names that are examined for a completion
)

// markdown is the type of all resources.
const markdown = "text/markdown"

// templates are the resources that need no listing.
func templates() []*sdk.ResourceTemplate {
	return []*sdk.ResourceTemplate{
		{
			Name: "project", Title: "Memory of a project", MIMEType: markdown, URITemplate: "mneme://projects/{project}/context",
			Description: "Where things stand in a project, by all its conversations.",
		},
		{
			Name: "conversation", Title: "Memory of a conversation", MIMEType: markdown, URITemplate: "mneme://conversations/{conversation}/context",
			Description: "What a conversation was about and where it stands.",
		},
		{
			Name: "turn", Title: "Transcript of a turn", MIMEType: markdown, URITemplate: "mneme://conversations/{conversation}/turns/{turn}{?cursor}",
			Description: "A turn of a conversation in full, in pages: a message of the user and all that follows it up to the next.",
		},
	}
}

// prompts are what clients show as slash commands.
func prompts() []*sdk.Prompt {
	return []*sdk.Prompt{
		{
			Name: PromptRecall, Title: "What do you remember about this project?",
			Description: "Recall the memory of a project, and have the agent say where things stand.",
			Arguments: []*sdk.PromptArgument{
				{Name: argumentProject, Description: "name or folder; default: this one"},
				{Name: "query", Description: "what you are about to do"},
			},
		},
		{
			Name: PromptResume, Title: "Go on with an earlier conversation",
			Description: "Recall the memory of a conversation, and have the agent continue from there.",
			Arguments:   []*sdk.PromptArgument{{Name: argumentConversation, Description: "its id", Required: true}},
		},
	}
}

// newServer returns a server without tools.
func newServer(l library, o *sdk.ServerOptions) *sdk.Server {
	o.CompletionHandler = l.complete
	server := sdk.NewServer(implementation(), o)
	server.AddReceivingMiddleware(Guard(o.Logger), listing(l))
	for _, t := range templates() {
		server.AddResourceTemplate(t, l.resource)
	}
	for _, p := range prompts() {
		server.AddPrompt(p, l.prompt)
	}
	return server
}

// listing lists the resources of a library, which depend on the request.
func listing(l library) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			result, err := next(ctx, method, r)
			list, ok := result.(*sdk.ListResourcesResult)
			if err != nil || !ok {
				return result, err
			}
			list.Resources, err = l.resources(ctx, r.(*sdk.ListResourcesRequest))
			return list, err
		}
	}
}

// problem returns an error in the protocol's form.
func problem(err error) error {
	code := int64(jsonrpc.CodeInternalError)
	if _, ok := errors.AsType[refusal](err); ok {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: err.Error()}
}

// uri returns the address of a resource.
func uri(kind, name, part string) string {
	return "mneme://" + kind + "/" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20") + "/" + part
}

// resources lists the context of the request's project, and those of its newest conversations. If nothing names a
// project, the list is empty.
func (s *Server) resources(ctx context.Context, r *sdk.ListResourcesRequest) ([]*sdk.Resource, error) {
	list := []*sdk.Resource{}
	err := s.perform(ctx, request{methodList, methodList, ToolSearch, r.Params.Meta, r.Session}, func(ctx context.Context, c *call) error {
		var unnamed refusal
		if _, err := c.projectName(ctx, ""); errors.As(err, &unnamed) {
			return nil
		} else if err != nil {
			return err
		}
		var about found
		newest, err := c.newest(ctx, searchArguments{}, &about, listed)
		if err != nil {
			return err
		}
		name := plain.Clip(plain.Line(about.Project), headProject)
		list = append(list, &sdk.Resource{URI: uri("projects", about.Project, "context"), Name: name, Title: "Memory of " + name, MIMEType: markdown})
		for _, h := range newest[:min(listed, len(newest))] {
			list = append(list, &sdk.Resource{
				URI: uri("conversations", h.Conversation, "context"), Name: plain.Clip(plain.Line(h.Conversation), headConversation), Title: h.Title, MIMEType: markdown,
			})
		}
		return nil
	})
	if err != nil {
		return nil, problem(err)
	}
	return list, nil
}

// resource reads a resource.
func (s *Server) resource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	tool, read := resourceAt(r.Params.URI)
	if read == nil {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	text := ""
	err := s.perform(ctx, request{methodRead, methodRead, tool, r.Params.Meta, r.Session}, func(ctx context.Context, c *call) error {
		a, err := read(ctx, c)
		text = a.framed()
		return err
	})
	if err != nil {
		return nil, problem(err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{Text: text}}}, nil
}

// resourceAt returns the function that reads the resource at an address, nil if there is none, and the name of the tool
// with the same answer.
func resourceAt(address string) (tool string, read func(context.Context, *call) (answer, error)) {
	u, err := url.Parse(address)
	if err != nil {
		return "", nil
	}
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	name, err := url.PathUnescape(parts[0])
	if err != nil || name == "" {
		return "", nil
	}
	switch what := u.Host + "/" + strings.Join(parts[1:], "/"); {
	case what == "projects/context":
		return ToolContext, func(ctx context.Context, c *call) (answer, error) {
			return c.context(ctx, contextArguments{Project: name, MaxChars: contextChars})
		}
	case what == "conversations/context":
		return ToolContext, func(ctx context.Context, c *call) (answer, error) {
			return c.context(ctx, contextArguments{Conversation: name, MaxChars: contextChars})
		}
	case strings.HasPrefix(what, "conversations/turns/"):
		return ToolRead, func(ctx context.Context, c *call) (answer, error) {
			return c.read(ctx, readArguments{Ref: name + "#turn=" + strings.TrimPrefix(what, "conversations/turns/"), MaxChars: maxReadChars, Cursor: u.Query().Get("cursor")})
		}
	}
	return "", nil
}

// prompt returns a request to the model, with what mneme knows.
func (s *Server) prompt(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	given := r.Params.Arguments
	ask := "Say in a few sentences where things stand in this project, by what mneme remembers of it."
	in := contextArguments{Project: given[argumentProject], Query: given["query"], MaxChars: contextChars}
	if r.Params.Name == PromptResume {
		ask = "This is what mneme remembers of an earlier conversation. Say in a few sentences where it stood, and go on from there."
		in = contextArguments{Conversation: given[argumentConversation], MaxChars: contextChars}
	}
	text := ""
	err := s.perform(ctx, request{methodPrompt, methodPrompt, ToolContext, r.Params.Meta, r.Session}, func(ctx context.Context, c *call) error {
		if r.Params.Name == PromptResume && in.Conversation == "" {
			return refuse("give the argument conversation: memory_search without a query lists their ids")
		}
		a, err := c.context(ctx, in)
		text = a.framed()
		return err
	})
	if err != nil {
		return nil, problem(err)
	}
	return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: ask + "\n\n" + text}}}}, nil
}

// complete returns projects or conversations that contain what was typed.
func (s *Server) complete(ctx context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	result := &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}
	typed := strings.ToLower(r.Params.Argument.Value)
	add := func(value string, names ...string) {
		fits := false
		for _, name := range append(names, value) {
			fits = fits || strings.Contains(strings.ToLower(name), typed)
		}
		switch {
		case !fits || plain.Line(value) != value: // what does not fit on a line can't be typed
		case len(result.Completion.Values) == completions:
			result.Completion.HasMore = true
		default:
			result.Completion.Values = append(result.Completion.Values, value)
		}
	}
	err := s.perform(ctx, request{methodComplete, methodComplete, ToolSearch, r.Params.Meta, r.Session}, func(ctx context.Context, c *call) error {
		switch r.Params.Argument.Name {
		case argumentProject:
			names, more, err := c.projects(ctx)
			for _, name := range names {
				add(name)
			}
			result.Completion.HasMore = result.Completion.HasMore || more
			return err
		case argumentConversation:
			in := searchArguments{}
			if c.project == "" && (c.grant == nil || c.grant.Project == "") {
				in.Project = everything
			}
			newest, err := c.newest(ctx, in, &found{}, completions)
			for _, h := range newest {
				add(h.Conversation, h.Title)
			}
			return err
		}
		return nil
	})
	if err != nil {
		return nil, problem(err)
	}
	return result, nil
}

// projects returns the names of the projects that the caller may see, and whether there are more.
func (c *call) projects(ctx context.Context) (names []string, more bool, err error) {
	if c.grant != nil && c.grant.Project != "" {
		return []string{c.grant.Project}, false, nil
	}
	r, _, err := c.pins.Projects(ctx)
	if err != nil {
		return nil, false, err
	}
	list, next, err := project.List(ctx, r, c.tenant, "", searched, graph.Latest)
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names, next != "", err
}
