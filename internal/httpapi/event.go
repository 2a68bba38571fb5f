package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

type eventInput struct {
	TenantParam
	Seq uint64 `path:"seq" minimum:"1" doc:"sequence in the log"`
}

type eventOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (a *api) registerEvent(h huma.API) {
	show := operation("show-event", http.MethodGet, "/v1/events/{seq}", "Show an event of the log", "events", 404, 422, 503, 504)
	show.Description = "The whole event as it was published, in structured mode. Events of other tenants and of deleted conversations answer 404."
	show.Responses = declareAnswer("The event", events.ContentTypeEvent, &huma.Schema{Type: huma.TypeObject})
	serve(a, h, show, a.event)
}

func (a *api) event(ctx context.Context, in *eventInput) (*eventOutput, error) {
	recorded, err := a.recordedAt(ctx, in.Tenant, in.Seq)
	if err != nil {
		return nil, err
	}
	body, err := events.EncodeStructured(recorded.Event)
	if err != nil {
		return nil, err
	}
	return &eventOutput{ContentType: events.ContentTypeEvent, Body: append(body, '\n')}, nil
}

// recordedAt reads a tenant's event from the log. The error is a problem, also for one of a deleted conversation.
func (a *api) recordedAt(ctx context.Context, tenant string, seq uint64) (recorded events.Recorded, err error) {
	missing := huma.Error404NotFound(fmt.Sprintf("the log holds no event of this tenant at sequence %d", seq))
	stored, err := a.Log.Get(ctx, seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return recorded, missing
	}
	if err != nil {
		return recorded, err
	}
	recorded, address, invalid := stored.Decode()
	if address.Tenant != tenant { // this also covers a subject that can't be parsed
		return recorded, missing
	}
	deleted, err := a.deleted(ctx, events.ConversationID{Tenant: tenant, ID: address.Conversation})
	if err != nil {
		return recorded, err
	}
	if deleted {
		return recorded, missing
	}
	if invalid != nil {
		return recorded, huma.Error404NotFound(fmt.Sprintf("the log's message at sequence %d is not a readable event: %v", seq, invalid))
	}
	return recorded, nil
}

// deleted reports whether a conversation has a tombstone, which holds all of the
// conversation's keys with empty content.
func (a *api) deleted(ctx context.Context, id events.ConversationID) (bool, error) {
	g, _, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return false, err
	}
	held, err := g.Holders(ctx, []projection.Claim{{Conversation: id}})
	if err != nil {
		return false, err
	}
	tombstone, ok := held[0]
	return ok && tombstone.Content.IsZero(), nil
}

// source reads the payload of the event that made a row. It checks that the log holds that
// event at the row's sequence; otherwise the read model was built from another log.
func source[P events.Payload](ctx context.Context, a *api, tenant string, p graph.Position, o graph.Origin) (payload P, err error) {
	stored, err := a.Log.Get(ctx, p.Seq)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return payload, err
	}
	if err == nil {
		recorded, _, invalid := stored.Decode()
		var ok bool
		payload, ok = recorded.Payload.(P)
		if invalid == nil && ok && recorded.Tenant == tenant && recorded.Source == o.Source && recorded.ID == o.EventID {
			return payload, nil
		}
	}
	return payload, changed(p.Seq)
}

// whole returns a body with its full text, which it takes from the event that made the row.
func whole(b graph.Body, text string, seq uint64) (graph.Body, error) {
	if !b.Recorded() && events.DigestOf(text) != b.Hash {
		return b, changed(seq)
	}
	return graph.Body{Text: text, Bytes: len(text)}, nil
}

func changed(seq uint64) error {
	return huma.Error503ServiceUnavailable(fmt.Sprintf("the log no longer holds the event at sequence %d from which the read model was built: see mneme status and mneme verify", seq))
}
