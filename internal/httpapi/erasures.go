package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/erasure"
)

// Erasures erases conversations permanently.
type Erasures interface {
	Look(ctx context.Context, s erasure.Scope) ([]erasure.Found, error)
	Ask(ctx context.Context, s erasure.Scope) (erasure.Record, error)
	Last(ctx context.Context) (erasure.Record, error)
	Ages() map[string]time.Duration
}

type erasureInput struct{ Body ErasureRequest }

// ErasureRequest says what to erase. Exactly one of conversation, project, all and before is required.
type ErasureRequest struct {
	Tenant       string    `json:"tenant" minLength:"1" maxLength:"128" doc:"there is no default"`
	Conversation string    `json:"conversation,omitempty" doc:"this conversation"`
	Project      string    `json:"project,omitempty" doc:"conversations of this project, or of the repository that this folder is in; deleted ones included"`
	All          bool      `json:"all,omitempty" doc:"the whole tenant"`
	Before       time.Time `json:"before,omitempty" doc:"conversations without an event since this time, by the producers' clocks"`
	DryRun       bool      `json:"dry_run,omitempty" doc:"only list what would be erased"`
}

// Erasure is the state of an erasure.
type Erasure struct {
	ID     string          `json:"id,omitempty" doc:"absent if there was none, and in a dry run"`
	State  string          `json:"state" enum:"none,dry run,unreadable,marking,waiting,overwriting,cleaning,done" doc:"marking: conversations are marked as deleted; waiting: until the read models have applied that; overwriting: events are overwritten in the log; cleaning: the read models overwrite what they deleted"`
	Doing  string          `json:"doing,omitempty" doc:"what it waits for, or the error after which it tries again"`
	Erased uint64          `json:"erased" doc:"events erased so far"`
	Todo   uint64          `json:"todo" doc:"events in the log at the time of the request"`
	Report *erasure.Report `json:"report,omitempty" doc:"what was removed; sha256 covers the report without it. It holds no content and no ids but those of the request: conversations appear as hashes"`
	// Conversations is what a dry run found.
	Conversations []ErasedConversation `json:"conversations,omitempty" doc:"of a dry run"`
}

// ErasedConversation is a conversation that would be erased.
type ErasedConversation struct {
	ID     string `json:"id"`
	Events uint64 `json:"events" doc:"that the log holds"`
}

type erasureOutput struct {
	Status int
	Body   Erasure
}

func (a *api) registerErasures(h huma.API) {
	ask := operation("erase", http.MethodPost, "/v1/erasures", "Erase conversations permanently", "operations", 404, 409, 415, 422, 503, 504)
	ask.Description = "Marks the conversations as deleted, overwrites their events in the log, and has every read model overwrite their rows. It continues by itself, even after a restart: GET /v1/erasure shows it. " +
		"Backups are not reached. What stays is a tombstone with the conversation's id, which keeps it from coming back."
	ask.DefaultStatus = http.StatusAccepted
	serve(a, h, ask, a.erase)
	last := operation("show-erasure", http.MethodGet, "/v1/erasure", "The running erasure, or the last one", "operations", 503, 504)
	serve(a, h, last, a.lastErasure)
}

func (a *api) erase(ctx context.Context, in *erasureInput) (*erasureOutput, error) {
	r := &in.Body
	scope := erasure.Scope{Tenant: r.Tenant, Conversation: r.Conversation, Project: r.Project, All: r.All, Before: r.Before}
	if err := scope.Check(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error(), &huma.ErrorDetail{Location: "body", Message: err.Error()})
	}
	if scope.Before.After(time.Now()) {
		return nil, huma.Error422UnprocessableEntity("before is in the future", &huma.ErrorDetail{Location: "body.before", Message: "must be in the past", Value: r.Before})
	}
	if r.DryRun {
		list, err := a.Erasures.Look(ctx, scope)
		if err != nil {
			return nil, err
		}
		out := &erasureOutput{Status: http.StatusOK, Body: Erasure{State: "dry run"}}
		for _, f := range list {
			out.Body.Todo += f.Events
			out.Body.Conversations = append(out.Body.Conversations, ErasedConversation(f))
		}
		return out, nil
	}
	record, err := a.Erasures.Ask(ctx, scope)
	switch {
	case errors.Is(err, erasure.ErrNothing):
		return nil, huma.Error404NotFound(err.Error())
	case errors.Is(err, erasure.ErrUnreadable):
		return nil, huma.Error409Conflict(err.Error())
	case errors.Is(err, erasure.ErrRunning):
		return nil, huma.Error409Conflict(fmt.Sprintf("an erasure has been running since %s: wait for it, mneme status shows how far it is", record.Report.AskedAt.Format(time.RFC3339)))
	case err != nil:
		return nil, err
	}
	return &erasureOutput{Status: http.StatusAccepted, Body: erasureOf(&record)}, nil
}

func (a *api) lastErasure(ctx context.Context, _ *struct{}) (*erasureOutput, error) {
	record, err := a.Erasures.Last(ctx)
	if errors.Is(err, erasure.ErrUnreadable) {
		return &erasureOutput{Status: http.StatusOK, Body: Erasure{State: "unreadable", Doing: err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	return &erasureOutput{Status: http.StatusOK, Body: erasureOf(&record)}, nil
}

func erasureOf(r *erasure.Record) Erasure {
	if r.ID == "" {
		return Erasure{State: "none"}
	}
	return Erasure{ID: r.ID, State: string(r.State), Doing: r.Doing, Erased: r.Erased(), Todo: r.Todo, Report: &r.Report}
}

// Retention is the age after which a tenant's conversations are erased.
type Retention struct {
	Tenant string `json:"tenant"`
	Days   int    `json:"days"`
}

// erasing adds the running erasure and the retentions to the status.
func (a *api) erasing(ctx context.Context, s *Status) error {
	if a.Erasures == nil {
		return nil
	}
	record, err := a.Erasures.Last(ctx)
	if errors.Is(err, erasure.ErrUnreadable) {
		s.Erasure, err = &Erasure{State: "unreadable", Doing: err.Error()}, nil
	}
	if err != nil {
		return err
	}
	if record.Running() {
		s.Erasure = new(erasureOf(&record))
	}
	ages := a.Erasures.Ages()
	for _, tenant := range slices.Sorted(maps.Keys(ages)) {
		s.Retention = append(s.Retention, Retention{tenant, int(ages[tenant] / (24 * time.Hour))})
	}
	return nil
}
