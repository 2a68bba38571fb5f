package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

type failedInput struct {
	Projection   ProjectionName `query:"projection" doc:"only this projection"`
	Tenant       string         `query:"tenant" maxLength:"128" doc:"only of this tenant; all tenants if absent"`
	Conversation string         `query:"conversation" doc:"only of this conversation, by its id or short form; tenant is then required"`
	Class        string         `query:"class" enum:"invalid,error" doc:"only of this class"`
	After        uint64         `query:"after" doc:"only sequences above this one"`
	Limit        int            `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"maximum number of events of each projection"`
}

type failedOutput struct {
	Body struct {
		Failed []FailedEvent `json:"failed" doc:"by projection, then by sequence"`
	}
}

// FailedEvent is an event that a projection skipped.
type FailedEvent struct {
	Projection   string `json:"projection"`
	Seq          uint64 `json:"seq"`
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	EventID      string `json:"event_id"`
	Type         string `json:"type"`
	Class        string `json:"class" enum:"invalid,error"`
	Reason       string `json:"reason"`
}

func failedEvent(f projection.Failed) FailedEvent {
	return FailedEvent{
		Projection: f.Projection, Seq: f.Seq, Tenant: f.Conversation.Tenant, Conversation: f.Conversation.ID,
		EventID: f.EventID, Type: f.Type, Class: string(f.Class), Reason: f.Reason,
	}
}

type showFailedInput struct {
	Seq uint64 `path:"seq" minimum:"1" doc:"sequence in the log"`
}

// FailedDetail is a skipped event as the log holds it, with the projections that skipped it.
type FailedDetail struct {
	Seq     uint64              `json:"seq"`
	Failed  []FailedEvent       `json:"failed" doc:"one for each projection that skipped it"`
	Subject string              `json:"subject,omitempty" doc:"NATS subject under which it is stored"`
	Headers map[string][]string `json:"headers,omitempty"`
	Data    string              `json:"data,omitempty" doc:"the data as published, if it is text"`
	Binary  []byte              `json:"data_base64,omitempty" doc:"the data as published, if it is not text"`
	Absent  string              `json:"absent,omitempty" doc:"why the event itself is not shown"`
}

func (a *api) registerFailed(h huma.API) {
	serve(a, h, operation("list-failed", http.MethodGet, "/v1/failed", "Events that a projection skipped", "operations", 422, 503), a.failed)
	serve(a, h, operation("show-failed", http.MethodGet, "/v1/failed/{seq}", "A skipped event as the log holds it", "operations", 404, 422, 503), a.showFailed)
	retry := operation("retry-failed", http.MethodPost, "/v1/retries", "Try skipped events again", "operations", 404, 422, 503)
	retry.Description = "Repairs the conversations of these events from the log, each in one transaction of the process that drives its partition. " +
		"Until it is done, reads see the conversation as it was."
	serve(a, h, retry, a.retry)
}

// failedModels returns the read models to ask: the named one, or all that exist. Summaries
// and embeddings do not exist if no summarizer ever ran.
func (a *api) failedModels(ctx context.Context, name string) ([]view.Model, error) {
	var list []view.Model
	for _, m := range a.pins(ctx).All(ctx) {
		if name != "" && name != m.Name {
			continue
		}
		if mayBeAbsent(m.Name) && errors.Is(m.Err, a.NotReady) {
			continue
		}
		if m.Err != nil {
			return nil, m.Err
		}
		list = append(list, m)
	}
	return list, nil
}

func (a *api) failed(ctx context.Context, in *failedInput) (*failedOutput, error) {
	if in.Conversation != "" && in.Tenant == "" {
		return nil, tenantMissing("query.tenant")
	}
	models, err := a.failedModels(ctx, string(in.Projection))
	if err != nil {
		return nil, err
	}
	out := &failedOutput{}
	out.Body.Failed = []FailedEvent{}
	for _, m := range models {
		list, err := m.Store.Failed(ctx, projection.FailedQuery{
			Tenant: in.Tenant, Conversation: in.Conversation, Class: projection.Class(in.Class), After: in.After, Limit: in.Limit,
		})
		if err != nil {
			return nil, err
		}
		out.Body.Failed = append(out.Body.Failed, each(list, failedEvent)...)
	}
	return out, nil
}

func tenantMissing(location string) error {
	return huma.Error422UnprocessableEntity("name the conversation's tenant: several tenants can have this conversation id",
		&huma.ErrorDetail{Location: location, Message: "is missing"})
}

func (a *api) showFailed(ctx context.Context, in *showFailedInput) (*output[FailedDetail], error) {
	models, err := a.failedModels(ctx, "")
	if err != nil {
		return nil, err
	}
	out := &output[FailedDetail]{Body: FailedDetail{Seq: in.Seq}}
	for _, m := range models {
		list, err := failedAt(ctx, m, projection.FailedQuery{}, in.Seq)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(f projection.Failed) bool { return !access.MayRead(ctx, f.Conversation.Tenant) })
		out.Body.Failed = append(out.Body.Failed, each(list, failedEvent)...)
	}
	if len(out.Body.Failed) == 0 {
		return nil, notListed(in.Seq)
	}
	return out, a.whatFailed(ctx, &out.Body)
}

// whatFailed adds the event itself, unless its conversation is deleted.
func (a *api) whatFailed(ctx context.Context, d *FailedDetail) error {
	stored, err := a.Log.Get(ctx, d.Seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		d.Absent = "the log no longer holds it"
		return nil
	}
	if err != nil {
		return err
	}
	if address, err := events.ParseSubject(stored.Subject); err == nil {
		deleted, err := a.deleted(ctx, events.ConversationID{Tenant: address.Tenant, ID: address.Conversation})
		if err != nil {
			return err
		}
		if deleted {
			d.Absent = "its conversation was deleted"
			return nil
		}
	}
	d.Subject, d.Headers = stored.Subject, stored.Header
	if utf8.Valid(stored.Data) {
		d.Data = string(stored.Data)
	} else {
		d.Binary = stored.Data
	}
	return nil
}

// failedAt returns what a read model lists for a query at a sequence: one failed event or none.
func failedAt(ctx context.Context, m view.Model, q projection.FailedQuery, seq uint64) ([]projection.Failed, error) {
	q.After, q.Limit = seq-1, 1
	list, err := m.Store.Failed(ctx, q)
	if err != nil || len(list) == 0 || list[0].Seq != seq {
		return nil, err
	}
	return list, nil
}

func notListed(seq uint64) error {
	return huma.Error404NotFound(fmt.Sprintf("no projection has a failed event at sequence %d: mneme failed list shows them", seq))
}
