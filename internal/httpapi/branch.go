package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

type branchInput struct {
	ConversationParam
	IdempotencyParam
	Body struct {
		Description
		MessageID string `json:"message_id" minLength:"1" maxLength:"512" doc:"the last message that the branch sees: one of this conversation's own or one that it inherited"`
	}
}

func (a *api) registerBranches(h huma.API) {
	branch := operation("create-branch", http.MethodPost, "/v1/conversations/{id}/branches", "Branch a conversation at a message", "conversations", 404, 409, 413, 415, 422, 503, 504, 507)
	branch.Description = "The branch sees everything up to and including the message, as it was then, and continues with its own events. " +
		"Agent, model, cwd, project, profile and max_context_chars default to the values that the conversation had at the message; title and tags are not copied."
	branch.DefaultStatus = http.StatusCreated
	branch.MaxBodyBytes = events.MaxEventBytes
	serve(a, h, branch, a.branch)
}

func (a *api) branch(ctx context.Context, in *branchInput) (*output[Written], error) {
	started, err := a.branchedAt(ctx, in.id(), in.Body.MessageID)
	if err != nil {
		return nil, err
	}
	asked := in.Body.started()
	started.Title, started.Tags = asked.Title, asked.Tags
	started.Agent, started.Model = cmp.Or(asked.Agent, started.Agent), cmp.Or(asked.Model, started.Model)
	started.Cwd, started.Project = cmp.Or(asked.Cwd, started.Cwd), cmp.Or(asked.Project, started.Project)
	started.Profile, started.MaxContextChars = cmp.Or(asked.Profile, started.Profile), cmp.Or(asked.MaxContextChars, started.MaxContextChars)
	id := events.ConversationID{Tenant: in.Tenant, ID: in.Body.ID}
	return a.start(ctx, id, in.Key, started)
}

// branchedAt returns the first event of a branch. It copies the parent's properties as of
// the message, so that a repeated request makes the same event. All the parent's events
// in the log must be applied, or an existing message could seem unknown.
func (a *api) branchedAt(ctx context.Context, parent events.ConversationID, messageID string) (*events.ConversationStarted, error) {
	g, _, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, err
	}
	last, _, err := a.Log.Last(ctx, parent.Tenant, parent.ID)
	if err != nil {
		return nil, err
	}
	v, err := a.view(ctx, parent, WaitParams{AtLeast: last}, AsOfParam{})
	if err != nil {
		return nil, err
	}
	lineage := v.Lineage()
	if len(lineage.Ancestors()) >= graph.MaxAncestors {
		return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("conversation %q already has %d ancestors, the maximum: a branch of it would not see all of them", parent.ID, graph.MaxAncestors),
			&huma.ErrorDetail{Location: "path.id", Message: "has too many ancestors", Value: parent.ID})
	}
	ref := graph.Ref{ID: messageID}
	found, err := v.Graph().MessagesByID(ctx, parent, []graph.Ref{ref}, graph.Latest)
	if err != nil {
		return nil, err
	}
	at, ok := found[ref]
	if !ok {
		return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("conversation %q has no message %q", parent.ID, messageID),
			&huma.ErrorDetail{Location: "body.message_id", Message: "is unknown", Value: messageID})
	}
	then, err := g.Conversation(ctx, parent, max(at.Seq, lineage.Own().FirstSeq)) // an inherited message is older than the conversation
	if err != nil {
		return nil, err
	}
	return &events.ConversationStarted{
		Agent: then.Agent, Model: then.Model, Cwd: then.Cwd, Project: then.Project, Profile: then.Profile, MaxContextChars: then.MaxContextChars,
		BranchedFrom: &events.BranchedAt{ConversationID: parent.ID, MessageID: messageID},
	}, nil
}
