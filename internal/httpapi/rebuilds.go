package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/salvage"
)

// Rebuilds begins rebuilds and tells how far they are.
type Rebuilds interface {
	Ask(ctx context.Context, projection string, force bool) ([]rebuild.Progress, error)
	Cancel(ctx context.Context, projection string) ([]rebuild.Progress, error)
	List(ctx context.Context) ([]rebuild.Progress, error)
}

// Rebuild is how far the rebuild of a projection is.
type Rebuild struct {
	Projection string    `json:"projection"`
	Generation int       `json:"generation" doc:"that is built"`
	From       int       `json:"from" doc:"generation that served when it was asked for"`
	AskedAt    time.Time `json:"asked_at"`
	State      string    `json:"state" enum:"building,serving,canceled,failed,unreadable" doc:"serving: it is done; canceled: what was built is being removed, and then it is no longer listed; unreadable: the record of the last rebuild can't be read, error says why, and the next rebuild replaces it"`
	Applied    uint64    `json:"applied,omitempty" doc:"while it builds: sequences of the log that are applied, the mean over the partitions"`
	Total      uint64    `json:"total,omitempty" doc:"while it builds: sequences of the log, the mean over the partitions"`
	Rate       float64   `json:"rate,omitempty" doc:"while it builds: sequences a second in the last seconds; absent if nothing was applied"`
	ETASeconds *float64  `json:"eta_seconds,omitempty" doc:"how long it will still take at that rate"`
	Error      string    `json:"error,omitempty" doc:"why it failed, or why its record can't be read; the generation that served goes on"`
}

type rebuildInput struct {
	Body struct {
		Projection string `json:"projection" doc:"graph, files, summaries, embeddings, or all"`
		Force      bool   `json:"force,omitempty" doc:"rebuild although the log holds less of living conversations than the read model that serves"`
	}
}

type rebuildParam struct {
	Projection string `path:"projection" doc:"graph, files, summaries, embeddings, or all"`
}

type rebuildsOutput struct {
	Body struct {
		Rebuilds []Rebuild `json:"rebuilds"`
	}
}

func (a *api) registerRebuilds(h huma.API) {
	ask := operation("rebuild", http.MethodPost, "/v1/rebuilds", "Rebuild a read model beside the one that serves", "operations", 404, 409, 415, 422, 503, 504)
	ask.Description = "The log is applied into a new generation, behind what is published meanwhile. Reads go on and see the old generation until the new one has caught up, then the new one. " +
		"Events that were skipped with class error are tried again. Of all projections none is begun if one is being rebuilt. " +
		"It is refused, unless force is set, where the log has lost events that the read model graph still holds; the old generation then stays until POST /v1/log/repair says what became of them."
	ask.DefaultStatus = http.StatusAccepted
	huma.Register(h, ask, a.rebuild)

	list := operation("list-rebuilds", http.MethodGet, "/v1/rebuilds", "How far rebuilds are", "operations", 503, 504)
	list.Description = "The last rebuild of each projection; those that never had one are left out."
	huma.Register(h, list, a.listRebuilds)

	cancel := operation("cancel-rebuild", http.MethodDelete, "/v1/rebuilds/{projection}", "Cancel a rebuild", "operations", 404, 409, 503, 504)
	cancel.Description = "What was built is removed. A rebuild that is done by then stays."
	huma.Register(h, cancel, a.cancelRebuild)
}

func (a *api) rebuild(ctx context.Context, in *rebuildInput) (*rebuildsOutput, error) {
	if !in.Body.Force { // the check reads the whole log
		if err := acquire(ctx, a.limits.verifying, 1); err != nil {
			return nil, a.problem(err)
		}
		defer a.limits.verifying.Release(1)
	}
	return a.rebuilds(a.Rebuilds.Ask(ctx, in.Body.Projection, in.Body.Force))
}

func (a *api) cancelRebuild(ctx context.Context, in *rebuildParam) (*rebuildsOutput, error) {
	return a.rebuilds(a.Rebuilds.Cancel(ctx, in.Projection))
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
		return nil, a.problem(err)
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

// howFar says how far a rebuild is that is under way, as far as anybody knows.
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
