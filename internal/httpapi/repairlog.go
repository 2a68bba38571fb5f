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
		Accept bool `json:"accept,omitempty" doc:"give up what is still missing or unreadable at the end: nothing warns of it any longer"`
	}
}

type repairLogOutput struct{ Body LogRepair }

// LogRepair is what a repair of the log found and did.
type LogRepair struct {
	DryRun        bool              `json:"dry_run"`
	Missing       uint64            `json:"missing" doc:"events that had left the log unknown to anybody"`
	Left          uint64            `json:"left" doc:"of them, those that are still missing"`
	Events        int               `json:"events" doc:"events that only the read model graph holds"`
	Restored      int               `json:"restored" doc:"of events: written back to the log, or restorable in a dry run"`
	Inexact       int               `json:"inexact" doc:"of restored: the identity is the same, the content lacks what the read model does not keep"`
	Conversations []RepairedHistory `json:"conversations"`
}

// RepairedHistory is the part of a conversation.
type RepairedHistory struct {
	Tenant       string         `json:"tenant"`
	Conversation string         `json:"conversation"`
	Restored     int            `json:"restored"`
	Inexact      int            `json:"inexact"`
	Unrestorable []Unrestorable `json:"unrestorable,omitempty"`
}

// Unrestorable is an event that cannot be written back.
type Unrestorable struct {
	Seq    uint64 `json:"seq" doc:"that it had in the log"`
	Kind   string `json:"kind"`
	ID     string `json:"id" doc:"of the event"`
	Reason string `json:"reason"`
}

func (a *api) registerRepairLog(h huma.API) {
	repair := operation("repair-log", http.MethodPost, "/v1/log/repair", "Write back to the log what only the read model holds", "operations", 415, 422, 503)
	repair.Description = "For a log that has lost events. Conversations that are not deleted are compared; events of which the read model holds the whole are published again with their old identity, " +
		"and stand at the end of the log. It takes about as long as reading the log and the read model once, and can be repeated."
	huma.Register(h, repair, a.repairLog)
}

func (a *api) repairLog(ctx context.Context, in *repairLogInput) (*repairLogOutput, error) {
	if err := admit(ctx, a.limits.verifying, 1); err != nil {
		return nil, a.problem(err)
	}
	g, _, err := a.pinnedGraph(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	report, err := salvage.Repair(ctx, a.Log, g, salvage.Options{DryRun: in.Body.DryRun, Accept: in.Body.Accept})
	if err != nil && report.Events > 0 {
		return nil, huma.Error503ServiceUnavailable(fmt.Sprintf("%d events were written back, then: %v", report.Restored, err))
	}
	if err != nil {
		return nil, a.problem(err)
	}
	out := &repairLogOutput{LogRepair{
		DryRun: in.Body.DryRun, Missing: report.Missing, Left: report.Left, Events: report.Events, Restored: report.Restored, Inexact: report.Inexact,
	}}
	out.Body.Conversations = each(report.Conversations, func(c salvage.ConversationReport) RepairedHistory {
		return RepairedHistory{
			Tenant: c.Conversation.Tenant, Conversation: c.Conversation.ID, Restored: c.Restored, Inexact: c.Inexact,
			Unrestorable: each(c.Unrestorable, func(u salvage.Unrestorable) Unrestorable { return Unrestorable(u) }),
		}
	})
	return out, nil
}
