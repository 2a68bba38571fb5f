package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// CodeConversation is a conversation about a piece of code.
type CodeConversation struct {
	Conversation
	References []CodeReference `json:"references" doc:"references in its messages, newest first, at most 5"`
	Accesses   []CodeAccess    `json:"accesses" doc:"accesses by its tool calls, the newest of each path and kind, newest first, at most 5"`
}

// CodeReference is a piece of code that a message refers to.
type CodeReference struct {
	Seq       uint64 `json:"seq" doc:"sequence of the message"`
	Turn      int    `json:"turn"`
	MessageID string `json:"message_id"`
	events.Reference
}

// CodeAccess is the newest access of a file in one way.
type CodeAccess struct {
	Path  string `json:"path"`
	Kind  string `json:"kind" enum:"read,write,search,list"`
	Tool  string `json:"tool"`
	Turn  int    `json:"turn"`
	Seq   uint64 `json:"seq"`
	Count int    `json:"count" doc:"number of accesses of this kind"`
}

type codeInput struct {
	TenantParam
	WaitAllParams
	File  string `query:"file" minLength:"1" maxLength:"4096" doc:"a path as an agent wrote it, or its last components: parser.go and pkg/parser.go find /w/pkg/parser.go"`
	Line  int    `query:"line" minimum:"1" doc:"a line of the file: excludes references to other lines, but not references without lines"`
	Name  string `query:"name" minLength:"1" maxLength:"4096" doc:"a symbol's name as written in references, in the given file or, without file, anywhere; accesses of files then do not count"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"maximum number of conversations"`
}

type codeOutput struct {
	Body struct {
		Conversations []CodeConversation `json:"conversations" doc:"newest mention first"`
		More          bool               `json:"more" doc:"older mentions were not examined: the limit was reached, or 5,000 mentions of files with the same last component, or of symbols with this name"`
	}
}

func (a *api) registerCode(h huma.API) {
	about := operation("conversations-about-code", http.MethodGet, "/v1/code/conversations", "List the conversations about a file or a symbol", "conversations", 422, 503, 504)
	about.Description = "Finds conversations by the references in their messages and by the files that their tool calls accessed; failed calls do not count."
	serve(a, h, about, a.aboutCode)
}

// check refuses a request that names no code.
func (in *codeInput) check() error {
	switch {
	case in.File == "" && in.Line != 0:
		return refuseQuery("file", "file is missing: line is the number of a line in a file")
	case in.File == "" && in.Name == "":
		return refuseQuery("file", "file or name is missing: the code that conversations are about")
	case in.File != "" && graph.CodeBase(in.File) == "":
		return refuseQuery("file", "file is not the path of a file")
	}
	return nil
}

func (a *api) aboutCode(ctx context.Context, in *codeInput) (*codeOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	g, ofGraph, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, err
	}
	f, ofFiles, err := a.pins(ctx).Files(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.beginList(ctx, in.Tenant, in.WaitAllParams, ofGraph, ofFiles); err != nil {
		return nil, err
	}
	found, more, err := graph.ConversationsAbout(ctx, g, f, in.Tenant, graph.CodeQuery{File: in.File, Line: in.Line, Name: in.Name, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &codeOutput{}
	out.Body.More = more
	out.Body.Conversations = each(found, func(c graph.AboutCode) CodeConversation {
		return CodeConversation{
			Conversation: show(c.Conversation),
			References: each(c.References, func(r graph.CodeReference) CodeReference {
				return CodeReference{Seq: r.Seq, Turn: r.Turn, MessageID: r.MessageID, Reference: r.Reference}
			}),
			Accesses: each(c.Accesses, func(f graph.FileAccess) CodeAccess {
				return CodeAccess{Path: f.Path, Kind: f.Kind, Tool: f.Tool, Turn: f.Turn, Seq: f.Seq, Count: f.Count}
			}),
		}
	})
	return out, nil
}
