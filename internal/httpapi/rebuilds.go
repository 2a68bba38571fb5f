package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/salvage"
)

// Rebuilds starts, cancels and lists rebuilds.
type Rebuilds interface {
	Ask(ctx context.Context, projection string, force bool) ([]rebuild.Progress, error)
	Cancel(ctx context.Context, projection string) ([]rebuild.Progress, error)
	List(ctx context.Context) ([]rebuild.Progress, error)
}

// Rebuild is the progress of a projection's rebuild.
type Rebuild struct {
	Projection string    `json:"projection"`
	Generation int       `json:"generation" doc:"the generation being built"`
	From       int       `json:"from" doc:"the generation that served when the rebuild was requested"`
	AskedAt    time.Time `json:"asked_at"`
	State      string    `json:"state" enum:"building,serving,canceled,failed,unreadable" doc:"serving: done; canceled: the new generation is being removed, after which the rebuild is no longer listed; unreadable: the record of the last rebuild can't be read, error says why, and the next rebuild replaces it"`
	Applied    uint64    `json:"applied,omitempty" doc:"while building: how many sequences of the log are applied, as a mean over the partitions"`
	Total      uint64    `json:"total,omitempty" doc:"while building: how many sequences of the log there are to apply, as a mean over the partitions"`
	Rate       float64   `json:"rate,omitempty" doc:"while building: sequences per second over the last seconds; absent if none were applied"`
	ETASeconds *float64  `json:"eta_seconds,omitempty" doc:"remaining time at that rate"`
	Error      string    `json:"error,omitempty" doc:"why it failed, or why its record can't be read; the old generation keeps serving"`
}

type rebuildInput struct {
	Body struct {
		Projection rebuildName `json:"projection"`
		Force      bool        `json:"force,omitempty" doc:"rebuild even if the log lacks events of existing conversations that the serving read model holds"`
	}
}

type rebuildParam struct {
	Projection rebuildName `path:"projection"`
}

type rebuildsOutput struct {
	Body struct {
		Rebuilds []Rebuild `json:"rebuilds"`
	}
}

func (a *api) registerRebuilds(h huma.API) {
	ask := operation("rebuild", http.MethodPost, "/v1/rebuilds", "Rebuild a read model while the old one serves", "operations", 404, 409, 415, 422, 503, 504)
	ask.Description = "Applies the log to a new generation, including events published during the rebuild. Reads see the old generation until the new one has caught up. " +
		"Events that were skipped with class error are tried again. With projection all, nothing starts if any projection is already being rebuilt. " +
		"If the log has lost events that the read model graph still holds, the rebuild is refused unless force is set; the old generation then stays until POST /v1/log/repair resolves the missing events."
	ask.DefaultStatus = http.StatusAccepted
	serve(a, h, ask, a.rebuild)

	list := operation("list-rebuilds", http.MethodGet, "/v1/rebuilds", "List the rebuilds and their progress", "operations", 503, 504)
	list.Description = "The last rebuild of each projection that was ever rebuilt."
	serve(a, h, list, a.listRebuilds)

	cancel := operation("cancel-rebuild", http.MethodDelete, "/v1/rebuilds/{projection}", "Cancel a rebuild", "operations", 404, 409, 503, 504)
	cancel.Description = "Removes the new generation. A rebuild that has finished by then is kept."
	serve(a, h, cancel, a.cancelRebuild)
}

func (a *api) rebuild(ctx context.Context, in *rebuildInput) (*rebuildsOutput, error) {
	if grant := access.Of(ctx); in.Body.Force && grant != nil && grant.Role < access.Admin {
		return nil, forbidden("force can lose the last copy of events: it needs the role admin, and this token has "+grant.Role.String(), "body.force")
	}
	if !in.Body.Force { // the check reads the whole log
		if err := a.limits.acquireLog(ctx); err != nil {
			return nil, err
		}
		defer a.limits.verifying.Release(1)
	}
	return a.rebuilds(a.Rebuilds.Ask(ctx, string(in.Body.Projection), in.Body.Force))
}

func (a *api) cancelRebuild(ctx context.Context, in *rebuildParam) (*rebuildsOutput, error) {
	return a.rebuilds(a.Rebuilds.Cancel(ctx, string(in.Projection)))
}

func (a *api) listRebuilds(ctx context.Context, _ *struct{}) (*rebuildsOutput, error) {
	return a.rebuilds(a.Rebuilds.List(ctx))
}

func (a *api) rebuilds(list []rebuild.Progress, err error) (*rebuildsOutput, error) {
	var other *rebuild.UnderWayError
	var loss *salvage.LossError
	switch {
	case errors.As(err, &loss):
		return nil, huma.Error409Conflict(err.Error() + ". To keep them, " + loss.Remedy() + "; --force (force in the body) rebuilds without them")
	case errors.As(err, &other):
		if other.Wish.State == rebuild.Canceled {
			return nil, huma.Error409Conflict(err.Error() + ": ask again when that is done")
		}
		return nil, huma.Error409Conflict(err.Error() + a.howFar(other) + ": wait for it, or cancel it")
	case errors.Is(err, rebuild.ErrUnknown):
		return nil, huma.Error404NotFound(err.Error())
	case errors.Is(err, rebuild.ErrNotRebuilding):
		return nil, huma.Error409Conflict(err.Error())
	case err != nil:
		return nil, err
	}
	out := &rebuildsOutput{}
	out.Body.Rebuilds = each(list, rebuildOf)
	return out, nil
}

func rebuildOf(p rebuild.Progress) Rebuild {
	r := Rebuild{
		Projection: p.Projection, Generation: p.Generation, From: p.From, AskedAt: p.AskedAt, State: string(p.State),
		Applied: p.Applied, Total: p.Total, Rate: p.Rate, Error: p.Error,
	}
	if p.ETA != nil {
		r.ETASeconds = new(p.ETA.Seconds())
	}
	return r
}

// howFar returns the progress of a running rebuild for an error text, or "" if it is
// unknown.
func (a *api) howFar(other *rebuild.UnderWayError) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	list, err := a.Rebuilds.List(ctx)
	if err != nil {
		return ""
	}
	for _, p := range list {
		if p.Projection == other.Projection && p.State == rebuild.Building {
			return fmt.Sprintf(", at sequence %d of %d", p.Applied, p.Total)
		}
	}
	return ""
}
