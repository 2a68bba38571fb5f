package mcp

import (
	"context"
	"errors"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/projects"
)

type contextArguments struct {
	Query        string `json:"query"`
	Conversation string `json:"conversation"`
	Project      string `json:"project"`
	MaxChars     int    `json:"max_chars"`
	AsOf         uint64 `json:"as_of"`
}

// maxQuery is how many characters of a query count.
const maxQuery = 2_000

// headRoom is the room for the frame and the first line of an answer.
const headRoom = 320 + frameRoom

// The most that a first line shows of names.
const (
	headProject      = 100
	headConversation = 140
)

// head returns the first line of a text answer. used counts what follows it.
func head(project, conversation string, asOf uint64, used, most int) string {
	return fmt.Sprintf("%s · %s · as of %d · %d of %d characters\n\n",
		plain.Clip(plain.Line(project), headProject), plain.Clip(plain.Line(conversation), headConversation), asOf, used, most)
}

// context answers with the context of a conversation, or of a project: for an agent whose session is new
// there is nothing in its own conversation yet.
func (c *call) context(ctx context.Context, in contextArguments) (answer, error) {
	in.Query = plain.Prefix(in.Query, maxQuery)
	if in.Conversation != "" {
		name, err := c.named(ctx, in.Conversation)
		if err != nil {
			return answer{}, err
		}
		id := events.ConversationID{Tenant: c.tenant, ID: name}
		if err := c.permit(ctx, id); err != nil {
			return answer{}, err
		}
		a, err := c.ofConversation(ctx, id, in)
		if errors.Is(err, graph.ErrNotFound) {
			err = c.noConversation(id)
		}
		return a, err
	}
	if in.Project == "" && c.conversation != "" {
		id := events.ConversationID{Tenant: c.tenant, ID: c.conversation}
		err := c.permit(ctx, id)
		var other refusal
		if err == nil {
			var a answer
			if a, err = c.ofConversation(ctx, id, in); err == nil {
				return a, nil
			}
		}
		if !errors.Is(err, graph.ErrNotFound) && !errors.As(err, &other) {
			return answer{}, err
		}
	}
	if in.Project == everything {
		return answer{}, refuse("a context is of one project: name it, or search all with memory_search")
	}
	return c.ofProject(ctx, in)
}

func (c *call) ofConversation(ctx context.Context, id events.ConversationID, in contextArguments) (answer, error) {
	v, err := c.pins.OpenWithFiles(ctx, id, view.At{AsOf: in.AsOf})
	if err != nil {
		return answer{}, c.past(err)
	}
	conversation := v.Lineage().Conversation()
	if conversation.MessageCount == 0 && in.Conversation == "" {
		return answer{}, graph.ErrNotFound // nothing has been said yet
	}
	request := window.Request{Conversation: id, Query: in.Query, MaxChars: in.MaxChars - headRoom, AsOf: in.AsOf}
	var earlier window.Earlier
	if c.Earlier != nil {
		if earlier, err = c.Earlier(ctx, c.pins, v, request.MaxChars); err != nil {
			return answer{}, c.past(err)
		}
	}
	if err := v.Load(ctx); err != nil {
		return answer{}, err
	}
	if err := v.Begin(ctx); err != nil {
		return answer{}, err
	}
	request.Rerank.Wanted = c.Cache != nil && c.Cache.RerankAlways
	if c.Condense != nil {
		request.Condense = c.Condense(conversation.Profile)
	}
	source := v.Source(ctx)
	source.Earlier = earlier
	made, err := c.Build(ctx, source, request)
	v.Release()
	if err != nil {
		return answer{}, err
	}
	name, err := c.projectOf(ctx, id)
	if err != nil {
		return answer{}, err
	}
	return answer{text: head(name, id.ID, made.AsOf, made.Chars, in.MaxChars) + made.Markdown(), id: made.Mark(), seq: made.AsOf}, nil
}

func (c *call) ofProject(ctx context.Context, in contextArguments) (answer, error) {
	name, err := c.projectName(ctx, in.Project)
	if err != nil {
		return answer{}, err
	}
	r, ofProjects, err := c.pins.Projects(ctx)
	if err != nil {
		return answer{}, err
	}
	g, ofGraph, err := c.pins.Graph(ctx)
	if err != nil {
		return answer{}, err
	}
	for _, m := range []view.Model{ofProjects, ofGraph} {
		if err := c.Views.AwaitAllAsOf(ctx, view.At{AsOf: in.AsOf}, m); err != nil {
			return answer{}, c.past(err)
		}
	}
	leave, err := c.Views.Enter(ctx, c.tenant)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	source := projects.Source{Projects: r}
	if c.Cache != nil {
		source.Past = c.Cache.OfProjects(g)
	}
	made, err := projects.Build(ctx, source, projects.Request{
		Tenant: c.tenant, Project: name, Query: in.Query, MaxChars: in.MaxChars - headRoom, AsOf: in.AsOf, Except: c.conversation,
	})
	if errors.Is(err, graph.ErrNotFound) {
		return answer{text: head(name, "no conversation yet", in.AsOf, 0, in.MaxChars) + "Nothing is recorded of this project yet, except perhaps this session.\n", seq: in.AsOf}, nil
	}
	if err != nil {
		return answer{}, err
	}
	return answer{text: head(made.Project, "all conversations", made.AsOf, made.Chars, in.MaxChars) + made.Markdown(), id: made.Mark(), seq: made.AsOf}, nil
}

// past refuses a sequence that the log does not have.
func (c *call) past(err error) error {
	if beyond, ok := errors.AsType[*view.BeyondError](err); ok {
		return refusal(beyond.Error())
	}
	return err
}
