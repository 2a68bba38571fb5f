package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/oklog/ulid/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// sourceOfAPI is the CloudEvents source of the events that the API itself creates.
const sourceOfAPI = "mneme/context-api"

// IdempotencyParam makes a repeated request harmless.
type IdempotencyParam struct {
	Key string `header:"Idempotency-Key" maxLength:"512" doc:"becomes the event's id: repeating the same request with the same key changes nothing and returns the same sequence"`
}

// Description holds the properties that a new conversation can be given.
type Description struct {
	ID              string   `json:"id,omitempty" minLength:"1" maxLength:"512" doc:"at most 512 bytes; the server makes one if it is absent"`
	Title           string   `json:"title,omitempty"`
	Tags            []string `json:"tags,omitempty" nullable:"false"`
	Agent           string   `json:"agent,omitempty" doc:"the program that runs the conversation, such as claude-code"`
	Model           string   `json:"model,omitempty"`
	Cwd             string   `json:"cwd,omitempty" doc:"the directory to which relative paths of tool calls refer"`
	Project         string   `json:"project,omitempty"`
	Profile         string   `json:"profile,omitempty" doc:"name of the settings profile that this conversation uses"`
	MaxContextChars int      `json:"max_context_chars,omitempty" minimum:"0" doc:"size in characters of the contexts that the agent reads: decides when summaries are due; the limit of a context is its max_chars"`
}

func (d *Description) started() *events.ConversationStarted {
	return &events.ConversationStarted{
		Title: d.Title, Tags: d.Tags, Agent: d.Agent, Model: d.Model, Cwd: d.Cwd, Project: d.Project, Profile: d.Profile, MaxContextChars: d.MaxContextChars,
	}
}

// Change holds the properties of a conversation that can be changed. Absent ones stay as
// they are.
type Change struct {
	Title  *string   `json:"title,omitempty"`
	Tags   *[]string `json:"tags,omitempty" nullable:"false"`
	Status string    `json:"status,omitempty" enum:"active,archived"`
}

// TransformSchema implements huma.SchemaTransformer. The handler itself checks that there
// is a change, because its error can say what to send.
func (Change) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Extensions = map[string]any{"minProperties": 1}
	return s
}

type createInput struct {
	TenantParam
	IdempotencyParam
	Body Description
}

type updateInput struct {
	ConversationParam
	IdempotencyParam
	Body Change
}

type deleteInput struct {
	ConversationParam
	IdempotencyParam
	Reason string `query:"reason" doc:"kept in the log with the deletion"`
}

// Written identifies the event that a change became.
type Written struct {
	ConversationID string `json:"conversation_id"`
	EventID        string `json:"event_id"`
	Seq            uint64 `json:"seq" doc:"the event's sequence: pass it as at_least to see the change"`
	Duplicate      bool   `json:"duplicate" doc:"the change was made before, with the same Idempotency-Key; nothing was stored again"`
}

func (a *api) registerManage(h huma.API) {
	create := operation("create-conversation", http.MethodPost, "/v1/conversations", "Create a conversation", "conversations", 409, 413, 415, 422, 503, 507)
	create.Description = "Needed only to describe a conversation: the first event of an unknown one also creates it. The check that the log has no event of the conversation and the storing of the first event are " +
		"one atomic step. If several clients create the same conversation at once, one succeeds and the others get 409, as they do after a deletion."
	create.DefaultStatus = http.StatusCreated
	create.MaxBodyBytes = events.MaxEventBytes
	serve(a, h, create, a.create)

	update := operation("update-conversation", http.MethodPatch, "/v1/conversations/{id}", "Change title, tags or status", "conversations", 404, 409, 413, 415, 422, 503, 507)
	update.Description = "If two changes set the same property, the one with the higher sequence wins. No change is stored after the deletion of the conversation."
	update.MaxBodyBytes = events.MaxEventBytes
	serve(a, h, update, a.update)

	remove := operation("delete-conversation", http.MethodDelete, "/v1/conversations/{id}", "Delete a conversation", "conversations", 404, 409, 413, 422, 503, 507)
	remove.Description = "Deletes everything derived from the conversation; later events of it are skipped. Its branches, and their branches, lose everything that they inherited through it: its own messages, and those that it inherited from its ancestors, although the ancestors still exist. The events stay in the log."
	serve(a, h, remove, a.remove)
}

func (a *api) create(ctx context.Context, in *createInput) (*output[Written], error) {
	id := events.ConversationID{Tenant: in.Tenant, ID: in.Body.ID}
	return a.start(ctx, id, in.Key, in.Body.started())
}

func (a *api) update(ctx context.Context, in *updateInput) (*output[Written], error) {
	if in.Body.Title == nil && in.Body.Tags == nil && in.Body.Status == "" {
		return nil, huma.Error422UnprocessableEntity("nothing to change: give title, tags or status", &huma.ErrorDetail{Location: "body", Message: "is empty"})
	}
	return a.change(ctx, in.id(), in.Key, &events.ConversationUpdated{Title: in.Body.Title, Tags: in.Body.Tags, Status: in.Body.Status})
}

func (a *api) remove(ctx context.Context, in *deleteInput) (*output[Written], error) {
	return a.change(ctx, in.id(), in.Key, &events.ConversationDeleted{Reason: in.Reason})
}

// start begins a conversation that has no event yet. Without an id it makes one; from a key
// it derives the id, because otherwise a repeat would begin another conversation.
func (a *api) start(ctx context.Context, id events.ConversationID, key string, payload *events.ConversationStarted) (*output[Written], error) {
	switch {
	case id.ID != "":
	case key != "":
		id.ID = ulid.ULID(events.DigestOf("conversation", id.Tenant, key)).String()
	default:
		id.ID = ulid.Make().String()
	}
	w, err := a.newWrite(ctx, id, key, payload)
	if err != nil {
		return nil, err
	}
	known, err := w.known(ctx)
	if known != nil || err != nil {
		return known, err
	}
	// The log would refuse it too, unless the conversation was purged from it.
	if _, err := w.graph.Conversation(ctx, id, graph.Latest); err == nil {
		return w.knownBy(ctx, w.exists())
	} else if !errors.Is(err, graph.ErrNotFound) {
		return nil, err
	}
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	ack, err := a.Log.PublishAfter(ctx, id.Tenant, w.event, "*", 0)
	if errors.Is(err, eventlog.ErrConflict) {
		// The conversation exists: this is a repeat that the read model does not know yet, or another client made it.
		m, err := a.Log.LastOfKind(ctx, id.Tenant, id.ID, events.Kind(events.TypeConversationStarted))
		if err == nil && w.is(&m) {
			return w.repeated(&m)
		}
		return nil, w.exists()
	}
	return w.stored(ack, err)
}

// change stores a change of a conversation that exists and is not deleted.
func (a *api) change(ctx context.Context, id events.ConversationID, key string, payload events.Payload) (*output[Written], error) {
	w, err := a.newWrite(ctx, id, key, payload)
	if err != nil {
		return nil, err
	}
	return w.change(ctx)
}

// change stores the event, which changes a conversation that exists and is not deleted.
func (w *write) change(ctx context.Context) (*output[Written], error) {
	known, err := w.known(ctx)
	if known != nil || err != nil {
		return known, err
	}
	if err := w.mustExist(ctx); err != nil {
		if errors.Is(err, graph.ErrNotFound) {
			return w.knownBy(ctx, err)
		}
		return nil, err
	}
	// The read model may not have applied a deletion yet; the log knows it.
	deletion := events.Kind(events.TypeConversationDeleted)
	for try := range maxTries {
		var before uint64
		m, err := w.Log.LastOfKind(ctx, w.id.Tenant, w.id.ID, deletion)
		if err == nil {
			if w.is(&m) {
				return w.repeated(&m)
			}
			if _, _, invalid := m.Decode(); invalid == nil {
				return nil, w.deleted()
			}
			before = m.Seq // an invalid event on the deletion's subject deletes nothing
		} else if !errors.Is(err, eventlog.ErrNotFound) {
			return nil, err
		}
		if try == 0 {
			if err := w.take(ctx); err != nil {
				return nil, err
			}
		}
		ack, err := w.Log.PublishAfter(ctx, w.id.Tenant, w.event, deletion, before)
		w.deletions.forget(w.id)
		if errors.Is(err, eventlog.ErrConflict) {
			continue
		}
		return w.stored(ack, err)
	}
	return nil, eventlog.ErrConflict
}

// maxTries is how often a change tries to publish while others publish deletions.
const maxTries = 3

// write is one event that the API is about to store.
type write struct {
	*api
	id    events.ConversationID
	event events.Event
	graph graph.Reader
}

func (a *api) newWrite(ctx context.Context, id events.ConversationID, key string, payload events.Payload) (*write, error) {
	g, _, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, err
	}
	if key == "" {
		key = ulid.Make().String()
	}
	e, err := events.New(id.ID, sourceOfAPI, key, payload)
	if invalid, ok := errors.AsType[*events.Invalid](err); ok {
		return nil, huma.Error422UnprocessableEntity(invalid.Error(), &huma.ErrorDetail{Location: locationOf(invalid.Field), Message: invalid.Reason})
	}
	if err != nil {
		return nil, err
	}
	e.Time = time.Now().UTC()
	return &write{api: a, id: id, event: e, graph: g}, nil
}

// locationOf returns the part of the request that became this field of the event.
func locationOf(field string) string {
	switch field {
	case "id":
		return "header.Idempotency-Key"
	case "subject":
		return "body.id"
	case "data.branched_from.message_id":
		return "body.message_id"
	}
	return "body" + field[len("data"):]
}

// take counts the event against its tenant's quotas, until the request ends. It comes right before the event is stored, so
// a repeat costs nothing.
func (w *write) take(ctx context.Context) error { return w.api.take(ctx, w.id.Tenant, w.event) }

// known looks in the read model for an event with the identity of this one. If there is
// one it returns the answer for a repeat, otherwise nil.
func (w *write) known(ctx context.Context) (*output[Written], error) {
	held, err := w.graph.Holders(ctx, []projection.Claim{{Conversation: w.id, Key: w.event.Identity(w.id.Tenant)}})
	if err != nil {
		return nil, err
	}
	holder, ok := held[0]
	switch {
	case !ok:
		return nil, nil
	case !holder.Content.IsZero():
		return w.again(holder.Seq, holder.Content == w.event.Content())
	}
	m, err := w.Log.Get(ctx, holder.Seq)
	if err == nil && w.is(&m) { // a repeat of this deletion
		return w.repeated(&m)
	}
	return nil, w.deleted()
}

// knownBy calls known again, because the read model may have applied this very event since
// the first call. If it has not, knownBy returns problem.
func (w *write) knownBy(ctx context.Context, problem error) (*output[Written], error) {
	known, err := w.known(ctx)
	if known != nil || err != nil {
		return known, err
	}
	return nil, problem
}

// mustExist returns [graph.ErrNotFound] if the conversation has no event. It also asks the
// log, because the read model may not have applied the first event yet.
func (w *write) mustExist(ctx context.Context) error {
	_, unknown := w.graph.Conversation(ctx, w.id, graph.Latest)
	if !errors.Is(unknown, graph.ErrNotFound) {
		return unknown
	}
	last, partition, err := w.Log.Last(ctx, w.id.Tenant, w.id.ID)
	if err != nil {
		return err
	}
	done, err := view.Applied(ctx, w.graph, partition, last)
	if err != nil || !done {
		return err
	}
	_, unknown = w.graph.Conversation(ctx, w.id, graph.Latest) // by now it has applied all the events
	return unknown
}

// is reports whether a message of the log has the identity of this event.
func (w *write) is(m *eventlog.Message) bool {
	r, _, err := m.Decode()
	return err == nil && r.Identity(w.id.Tenant) == w.event.Identity(w.id.Tenant)
}

// repeated returns the answer for a message of the log with the identity of this event.
func (w *write) repeated(m *eventlog.Message) (*output[Written], error) {
	r, _, err := m.Decode()
	if err != nil {
		return nil, err
	}
	return w.again(m.Seq, r.Content() == w.event.Content())
}

func (w *write) again(seq uint64, same bool) (*output[Written], error) {
	if !same {
		return nil, conflicting(seq, fmt.Sprintf("the Idempotency-Key %q was used for another request, stored as the event at sequence %d", w.event.ID, seq),
			&huma.ErrorDetail{Location: "header.Idempotency-Key", Message: "was used for another request", Value: w.event.ID})
	}
	return w.stored(eventlog.Ack{Seq: seq, Duplicate: true}, nil)
}

func (w *write) stored(ack eventlog.Ack, err error) (*output[Written], error) {
	if other, ok := errors.AsType[*eventlog.OtherContentError](err); ok {
		return w.again(other.Seq, false)
	}
	if err != nil {
		return nil, err
	}
	return &output[Written]{Body: Written{ConversationID: w.id.ID, EventID: w.event.ID, Seq: ack.Seq, Duplicate: ack.Duplicate}}, nil
}

func (w *write) exists() error {
	return huma.Error409Conflict(fmt.Sprintf("conversation %q has events already, or was deleted: choose another id, or change it with PATCH", w.id.ID),
		&huma.ErrorDetail{Location: "body.id", Message: "is taken", Value: w.id.ID})
}

// deleted returns the problem for a conversation that has a tombstone.
func (w *write) deleted() error {
	if w.event.Type == events.TypeConversationStarted {
		return w.exists()
	}
	return huma.Error404NotFound(fmt.Sprintf("conversation %q was deleted", w.id.ID))
}
