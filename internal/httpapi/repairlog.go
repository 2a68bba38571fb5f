package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/salvage"
)

type repairLogInput struct {
	Body struct {
		DryRun bool `json:"dry_run,omitempty" doc:"only report"`
		Accept bool `json:"accept,omitempty" doc:"give up what is still missing or unreadable at the end: warnings about it then stop"`
	}
}

// LogRepair is the result of a repair of the log.
type LogRepair struct {
	DryRun        bool              `json:"dry_run"`
	Missing       uint64            `json:"missing" doc:"events missing from the log although no removal was recorded"`
	Left          uint64            `json:"left" doc:"how many of these are still missing or, in a dry run, would be"`
	Events        int               `json:"events" doc:"events that only the read model graph holds"`
	Restored      int               `json:"restored" doc:"how many of these events were written back to the log or, in a dry run, could be"`
	Inexact       int               `json:"inexact" doc:"how many of the restored events have the same identity but lack content that the read model does not keep"`
	Conversations []RepairedHistory `json:"conversations"`
	NeedsForce    bool              `json:"needs_force,omitempty" doc:"whether, even after the loss was accepted, only a forced rebuild goes on without the events that were not written back: the log does not have the last event that the read model applied"`
}

// RepairedHistory is one conversation's part of a repair.
type RepairedHistory struct {
	Tenant       string         `json:"tenant"`
	Conversation string         `json:"conversation"`
	Restored     int            `json:"restored"`
	Inexact      int            `json:"inexact"`
	Unrestorable []Unrestorable `json:"unrestorable,omitempty"`
}

// Unrestorable is an event that cannot be written back.
type Unrestorable struct {
	Seq    uint64 `json:"seq" doc:"its sequence in the log before it was lost"`
	Kind   string `json:"kind"`
	ID     string `json:"id" doc:"id of the event"`
	Reason string `json:"reason"`
}

func (a *api) registerRepairLog(h huma.API) {
	repair := operation("repair-log", http.MethodPost, "/v1/log/repair", "Write events back to the log that only the read model holds", "operations", 415, 422, 503)
	repair.Description = "For a log that has lost events. Compares all conversations that are not deleted; events that the read model holds in full are published again with their old identity, " +
		"at the end of the log. A repair takes about as long as reading the log and the read model once, and can be repeated."
	serve(a, h, repair, a.repairLog)
}

func (a *api) repairLog(ctx context.Context, in *repairLogInput) (*output[LogRepair], error) {
	if err := a.limits.admitLog(ctx); err != nil {
		return nil, err
	}
	g, _, err := a.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, err
	}
	report, err := salvage.Repair(ctx, a.Log, g, salvage.Options{DryRun: in.Body.DryRun, Accept: in.Body.Accept})
	if err != nil && report.Events > 0 && !in.Body.DryRun {
		return nil, huma.Error503ServiceUnavailable(fmt.Sprintf("%d events were written back, then: %v", report.Restored, err))
	}
	if err != nil {
		return nil, err
	}
	out := &output[LogRepair]{LogRepair{
		DryRun: in.Body.DryRun, Missing: report.Missing, Left: report.Left, Events: report.Events, Restored: report.Restored, Inexact: report.Inexact,
		NeedsForce: report.NeedsForce,
	}}
	out.Body.Conversations = each(report.Conversations, func(c salvage.ConversationReport) RepairedHistory {
		return RepairedHistory{
			Tenant: c.Conversation.Tenant, Conversation: c.Conversation.ID, Restored: c.Restored, Inexact: c.Inexact,
			Unrestorable: each(c.Unrestorable, func(u salvage.Unrestorable) Unrestorable { return Unrestorable(u) }),
		}
	})
	return out, nil
}
