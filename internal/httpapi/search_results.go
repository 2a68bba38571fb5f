package httpapi

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window"
)

// FilterParams choose among the messages and the tool results of several conversations.
type FilterParams struct {
	Syntax   string    `query:"syntax" enum:"marks,plain" default:"marks" doc:"plain: quotes, dashes and asterisks in the query are ordinary characters"`
	Role     string    `query:"role" enum:"user,assistant" doc:"only messages of this role"`
	Speaker  string    `query:"speaker" maxLength:"512" doc:"only messages of this speaker"`
	Tool     string    `query:"tool" maxLength:"512" doc:"only results of this tool, by its name in any case"`
	File     string    `query:"file" maxLength:"4096" doc:"only results of calls that name this file: a path, or its last components"`
	FromSeq  uint64    `query:"from_seq" doc:"only what is from this sequence on"`
	ToSeq    uint64    `query:"to_seq" doc:"only what is up to this sequence"`
	Since    time.Time `query:"since" doc:"only what is from this time on (RFC 3339)"`
	Until    time.Time `query:"until" doc:"only what is before this time (RFC 3339)"`
	Contains []string  `query:"contains,explode" maxItems:"16" doc:"only texts that contain this phrase, in any case, as whole words; with * at its end, the last word may be longer. May be given more than once: a text must contain all of them. Without a query, it is searched for"`
	Without  []string  `query:"without,explode" maxItems:"16" doc:"only texts that do not contain this phrase; may be given more than once"`
}

func (in *FilterParams) keep() window.Filter {
	return window.Filter{
		Role: in.Role, Speaker: in.Speaker, Tool: in.Tool, File: in.File, FromSeq: in.FromSeq, ToSeq: in.ToSeq, Since: in.Since, Until: in.Until,
		Contains: in.Contains, Without: in.Without,
	}
}

// FoundTools are tool results that a search over conversations of a project found.
type FoundTools struct {
	Results  []FoundProjectResult `json:"tool_results,omitempty" doc:"with kind=tool or all: best first, by their words alone; newest first if the query has no words"`
	Searched int                  `json:"conversations_searched,omitempty" doc:"in how many conversations tool results were searched: the newest 50 of the project that have any, or fewer if these have more than 20,000 results or their index gets too large"`
	Left     int                  `json:"conversations_left_out,omitempty" doc:"upper bound of the number of older conversations of the project that were not searched"`
	Partial  bool                 `json:"tool_results_partial,omitempty" doc:"true if some results of these conversations were not searched: the oldest of long conversations are left out, and filters of time and text apply only to the best 2,000 results"`
}

// FoundProjectResult is a tool result with its conversation.
type FoundProjectResult struct {
	Conversation string `json:"conversation_id"`
	Title        string `json:"title,omitempty" doc:"of the conversation"`
	FoundResult
}

// kind returns what to search, and refuses parameters that do not apply to it.
func (in *searchInput) kind() (string, error) {
	kind := kindFor(in.Kind, in.Tool, in.File)
	switch {
	case kind == kindMessage && in.Tool+in.File != "":
		return "", refuseQuery("kind", "tool and file are for tool results: kind=message has none")
	case kind == kindTool && in.Role+in.Speaker != "":
		return "", refuseQuery("kind", "role and speaker are for messages: kind=tool has none")
	case kind != kindMessage && in.Project == "":
		return "", refuseQuery("project", fmt.Sprintf("project is needed with kind=%s: tool results are searched in one project", kind))
	}
	return kind, nil
}

// asked reads the query, and refuses one that asks for nothing.
func (in *searchInput) asked(kind string) (asked window.Asked, keep window.Filter, err error) {
	asked, keep = askedWith(in.Query, in.Syntax, in.keep())
	if err = inOrder(&keep); err != nil || kind == kindTool || strings.TrimSpace(asked.Text) != "" {
		return asked, keep, err
	}
	for _, phrase := range in.Contains {
		if !strings.HasSuffix(phrase, "*") {
			asked.Text += phrase + "\n"
		}
	}
	if keep.OfMessages() == nil && in.Tool+in.File == "" {
		err = refuseQuery("query", "nothing to search for: give a query or a filter")
	}
	return asked, keep, err
}

// toolsOf loads the tool results to be searched.
func (a *api) toolsOf(ctx context.Context, in *searchInput, keep window.Filter) (*view.ToolsOf, error) {
	_, p, err := a.projectNow(ctx, in.Tenant, in.Project)
	if err != nil {
		return nil, err
	}
	return a.pins(ctx).ToolsOf(ctx, p, keep)
}

// findTools returns the tool results that a query finds.
func findTools(ctx context.Context, tools *view.ToolsOf, in *searchInput, asked window.Asked, keep window.Filter) (out FoundTools, err error) {
	hits, err := tools.Search(ctx, window.SearchQuery{Text: asked.Text, Prefixes: asked.Prefixes, Limit: in.Limit, MaxChars: in.MaxChars, Keep: keep})
	out.Searched, out.Left, out.Partial = tools.Searched, tools.Left, tools.Partial
	out.Results = each(hits, func(h view.ToolHit) FoundProjectResult {
		r := FoundProjectResult{Conversation: h.Conversation.ID.ID, Title: plain.Line(h.Conversation.Title), FoundResult: showFoundResult(h.ToolHit)}
		r.Highlights = highlights(r.Text, asked)
		return r
	})
	return out, err
}
