package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
)

// lessonWait is how long a withdrawal waits until the read model has applied the conversation.
const lessonWait = 5 * time.Second

type withdrawInput struct {
	ProjectParam
	Seq    uint64 `path:"seq" minimum:"1" doc:"sequence of the event that taught it: seq of an item of the section what_was_learnt in the context of the project"`
	Reason string `query:"reason" maxLength:"4096" doc:"kept in the log with the withdrawal"`
}

func (a *api) registerLessons(h huma.API) {
	op := operation("withdraw-lesson", http.MethodDelete, "/v1/projects/{project}/lessons/{seq}", "Withdraw what an event taught", "projects", 404, 409, 422, 503, 504, 507)
	op.Description = "From then on the context of the project does not show the lines of this event under What Was Learnt. Contexts as of an earlier sequence do not change, and the log keeps the event. " +
		"To withdraw it again changes nothing, and answers with duplicate=true."
	serve(a, h, op, a.withdrawLesson)
}

func (a *api) withdrawLesson(ctx context.Context, in *withdrawInput) (*output[Written], error) {
	taught, err := a.recordedAt(ctx, in.Tenant, in.Seq)
	if err != nil {
		return nil, err
	}
	id := events.ConversationID{Tenant: in.Tenant, ID: taught.Subject}
	r, model, err := a.pins(ctx).Projects(ctx)
	if err != nil {
		return nil, err
	}
	last, partition, err := a.Log.Last(ctx, id.Tenant, id.ID)
	if err != nil {
		return nil, err
	}
	if err := a.views.AwaitPartition(ctx, lessonWait, model, partition, last); err != nil {
		return nil, err
	}
	p, err := project.Find(ctx, r, in.Tenant, in.Project, graph.Latest)
	if err != nil {
		return nil, err
	}
	digests, err := r.Digests(ctx, []events.ConversationID{id}, graph.Latest)
	if err != nil {
		return nil, err
	}
	d := digests[0]
	if d == nil || !slices.Contains(p.Names, d.Place.Name) {
		return nil, huma.Error404NotFound(fmt.Sprintf("the event at sequence %d belongs to no conversation of project %q", in.Seq, in.Project))
	}
	w := &write{api: a, id: id}
	if w.event, err = project.NewWithdrawal(id.ID, taught.Source, taught.ID, in.Reason); err != nil {
		return nil, err
	}
	if !d.Teaches(in.Seq) {
		before, err := project.WithdrawnAt(ctx, r, id, &w.event)
		if before != 0 {
			return w.stored(eventlog.Ack{Seq: before, Duplicate: true}, nil)
		}
		if err != nil {
			return nil, err
		}
		return nil, huma.Error404NotFound(fmt.Sprintf("the event at sequence %d taught nothing that is shown: the items of the section what_was_learnt, in the context of the project as JSON, have the sequences that can be withdrawn", in.Seq))
	}
	if w.graph, _, err = a.pins(ctx).Graph(ctx); err != nil {
		return nil, err
	}
	w.event.Time = time.Now().UTC()
	return w.change(ctx)
}
